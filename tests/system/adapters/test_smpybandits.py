"""Policies of SMPyBandits in the lab."""

import random
import sys
import threading
from pathlib import Path
from typing import Any

import cloudpickle
import numpy as np
import pytest
from scipy import special

from belated import Learner, lab
from belated.adapters import smpybandits
from belated.errors import InvalidInput
from belated.testing.learner_contract import LearnerContract, LearningContract
from tests.support.late_games import by_hand, through
from tests.support.processes import run_python

POLICIES = ["UCB", "UCBalpha", "MOSS", "Exp3", "EpsilonGreedy", "Uniform", "klUCB", "BayesUCB"]


def shared_state() -> str:
    """The generators that all of Python and NumPy share."""
    numpys: Any = np.random.get_state()  # noqa: NPY002
    return repr((random.getstate(), numpys[1].tolist(), numpys[2:]))


class OfSMPyBandits:
    @pytest.fixture(autouse=True)
    def which(self, name: str) -> None:
        self.maker = smpybandits.learner(name)

    def make(self, n_arms: int, seed: int) -> Learner:
        return self.maker(n_arms, seed)


@pytest.mark.parametrize("name", ["Thompson"])
class TestContract(OfSMPyBandits, LearnerContract):
    pass


@pytest.mark.parametrize("name", ["UCB", "Exp3", "EpsilonGreedy"])
class TestContractOfThoseThatVisitInTurn(OfSMPyBandits, LearnerContract):
    ignores_seed = True  # without a report they play one arm

    @pytest.fixture(autouse=True)
    def known_to_fail(self, name: str, request: pytest.FixtureRequest) -> None:
        if name == "EpsilonGreedy" and request.node.callspec.params.get("k") == 1:
            pytest.skip("SMPyBandits' EpsilonGreedy fails with one arm")


@pytest.mark.parametrize("name", ["UCB", "Thompson"])
class TestLearning(OfSMPyBandits, LearningContract):
    pass


@pytest.mark.parametrize("name", POLICIES)
def test_it_plays_as_by_hand_with_seeded_generators(name: str) -> None:
    np.random.seed(5)  # noqa: NPY002
    random.seed(5)
    with np.errstate(all="ignore"):
        policy: Any = getattr(smpybandits.policies, name)(3)
        policy.startGame()
        arms = by_hand(policy.choice, policy.getReward)
    np.random.seed(17)  # noqa: NPY002
    random.seed(17)
    before = shared_state()
    assert through(smpybandits.learner(name)(3, 5)) == arms
    assert shared_state() == before


@pytest.mark.parametrize("name", ["Thompson", "EpsilonGreedy", "UCB", "Exp3"])
def test_threads_change_no_game(name: str) -> None:
    problem = lab.Problem(lab.Sine(), lab.Geometric(mean=10), n_arms=4, n_rounds=300)
    alone, together = (lab.play(smpybandits.learner(name), problem, seeds=range(6), workers=w) for w in (1, 3))
    assert (alone.suffered == together.suffered).all()
    assert len(set(alone.suffered[:, -1])) > 1


def test_a_game_in_another_thread_does_not_move_pythons_generator() -> None:
    learner = smpybandits.learner("EpsilonGreedy", epsilon=0.5)(4, 1)
    player = threading.Thread(target=through, args=(learner, 3000))
    random.seed(3)
    expected = [random.random() for _ in range(3000)]  # noqa: S311
    random.seed(3)
    player.start()
    assert [random.random() for _ in range(3000)] == expected  # noqa: S311
    player.join()


def test_settings_and_classes() -> None:
    by_name = smpybandits.learner("Exp3", gamma=0.5)(3, 1)
    by_class = smpybandits.learner(smpybandits.policies.Exp3, gamma=0.5)(3, 1)
    other = smpybandits.learner("Exp3", gamma=1.0)(3, 1)
    arms = through(by_name)
    assert arms == through(by_class)
    assert arms != through(other)


@pytest.mark.parametrize("bad", ["Nothing", 3, dict, None, "with_proba"])
def test_what_is_no_policy_is_refused(bad: Any) -> None:
    with pytest.raises(InvalidInput, match="a policy of SMPyBandits"):
        smpybandits.learner(bad)


def test_a_seed_that_numpy_cannot_take_is_refused() -> None:
    with pytest.raises(InvalidInput, match="seed"):
        smpybandits.learner("UCB")(3, 2**32)


def test_the_import_leaves_scipy_as_it_was() -> None:
    assert hasattr(special, "betaincinv")
    assert not hasattr(special, "btdtri")


def test_the_import_leaves_the_process_as_it_was() -> None:
    code = """
import sys, matplotlib
path, settings = list(sys.path), dict(matplotlib.rcParams)
from belated.adapters import smpybandits
print(sys.path == path, [key for key, value in settings.items() if matplotlib.rcParams[key] != value])
"""
    assert run_python(code) == "True []"


def test_without_smpybandits_the_command_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "SMPyBandits.Policies", None)
    with pytest.raises(ModuleNotFoundError, match="pip install SMPyBandits"):
        smpybandits._load()


def test_the_fingerprint_tells_policies_apart() -> None:
    names = [("UCBalpha", {"alpha": 1}), ("UCBalpha", {"alpha": 2}), ("UCB", {})]
    found = [smpybandits.learner(name, **settings).fingerprint for name, settings in names]
    assert len(set(found)) == 3
    assert found[2] == smpybandits.learner(smpybandits.policies.UCB).fingerprint


def test_another_process_can_unpickle_it(tmp_path: Path) -> None:
    (tmp_path / "maker").write_bytes(cloudpickle.dumps(smpybandits.learner(smpybandits.policies.Thompson)))
    code = f"import pickle; make = pickle.load(open({str(tmp_path / 'maker')!r}, 'rb')); print(make(3, 1).ask().arm)"
    assert run_python(code) == str(smpybandits.learner("Thompson")(3, 1).ask().arm)
