"""What all adapters of policies share, with a policy of our own."""

from collections import Counter
from collections.abc import Callable

import numpy as np
import pytest

from belated import Learner, lab
from belated.adapters.policies import Maker, PolicyLearner, ProbabilityLearner, fingerprint_of
from belated.errors import InvalidInput
from belated.testing.learner_contract import LearnerContract, LearningContract
from tests.support.late_games import by_hand, through


class Greedy:
    """Plays the best mean so far, and in a tenth of the rounds any arm."""

    def __init__(self, n_arms: int, seed: int) -> None:
        self.generator = np.random.default_rng(seed)
        self.sums, self.counts = np.zeros(n_arms), np.zeros(n_arms)
        self.told: list[tuple[float, object]] = []

    def x(self) -> np.ndarray:
        means = np.where(self.counts > 0, self.sums / np.maximum(1, self.counts), 1.0)
        x = np.full(len(means), 0.1 / len(means))
        x[means == means.max()] += 0.9 / (means == means.max()).sum()
        return x

    def pull(self) -> int:
        return int(self.generator.choice(len(self.sums), p=self.x()))

    def pull_with_probability(self) -> tuple[int, float, object]:
        x, arm = self.x(), self.pull()
        return arm, float(x[arm]), f"note on {arm}"

    def update(self, arm: int, reward: float) -> None:
        self.sums[arm] += reward
        self.counts[arm] += 1

    def update_with_probability(self, arm: int, reward: float, probability: float, note: object) -> None:
        assert note == f"note on {arm}"
        self.told.append((probability, note))
        self.update(arm, reward)


def plain(n_arms: int, seed: int) -> PolicyLearner:
    policy = Greedy(n_arms, seed)
    return PolicyLearner("Greedy", n_arms, policy.pull, policy.update)


def with_probabilities(n_arms: int, seed: int) -> ProbabilityLearner:
    policy = Greedy(n_arms, seed)
    return ProbabilityLearner(
        "Greedy", n_arms, policy.pull_with_probability, policy.update_with_probability, distribution=policy.x
    )


@pytest.mark.parametrize("adapted", [plain, with_probabilities])
class TestContract(LearnerContract, LearningContract):
    @pytest.fixture(autouse=True)
    def which(self, adapted: Callable[[int, int], Learner]) -> None:
        self.adapted = adapted

    def make(self, n_arms: int, seed: int) -> Learner:
        return self.adapted(n_arms, seed)


@pytest.mark.parametrize("adapted", [plain, with_probabilities])
def test_the_policy_plays_as_by_hand(adapted: Callable[[int, int], Learner]) -> None:
    policy = Greedy(4, 3)
    arms = by_hand(policy.pull, policy.update)
    assert through(adapted(4, 3)) == arms
    assert Counter(arms)[2] + Counter(arms)[3] > 200  # the game teaches something


def test_a_report_brings_the_probability_of_its_decision() -> None:
    policy = Greedy(3, 1)
    learner = ProbabilityLearner("Greedy", 3, policy.pull_with_probability, policy.update_with_probability)
    decisions = [learner.ask() for _ in range(40)]
    for decision in reversed(decisions):
        learner.tell(decision, 0.5)
    assert [chance for chance, _ in policy.told] == [decision.probability for decision in reversed(decisions)]
    assert not hasattr(learner, "distribution")


def test_with_a_distribution_the_lab_measures_expected_regret() -> None:
    problem = lab.Problem(lab.Bernoulli(gap=0.3), lab.Fixed(5), n_arms=3, n_rounds=200)
    known, unknown = (lab.play(make, problem, seeds=range(2)) for make in (with_probabilities, plain))
    assert (known.suffered == unknown.suffered).all()
    assert (known.expected != known.suffered).any()
    assert (unknown.expected == unknown.suffered).all()


@pytest.mark.parametrize("arm", [-1, 3, 1.0, "0", None, True])
def test_a_policy_that_chooses_no_arm_is_refused(arm: object) -> None:
    learners: list[Learner] = [
        PolicyLearner("Odd", 3, lambda: arm, print),  # type: ignore[arg-type, return-value]
        ProbabilityLearner("Odd", 3, lambda: (arm, 1.0, None), print),  # type: ignore[arg-type, return-value]
    ]
    for learner in learners:
        with pytest.raises(InvalidInput, match=r"Odd chose .*The arms are the whole numbers 0 to 2"):
            learner.ask()
        assert learner.outstanding == 0


def test_they_say_what_they_are() -> None:
    learner = plain(2, 0)
    learner.ask()
    assert repr(learner) == "Greedy: round 1, 1 outstanding"
    maker = Maker("mine", plain)
    assert (repr(maker), maker.__name__, maker(2, 0).n_arms) == ("mine", "mine", 2)


class Shown:
    """An object whose text does not say its setting."""

    def __init__(self, setting: int) -> None:
        self.setting = setting

    def __repr__(self) -> str:
        return "shown"


def test_only_what_a_package_ships_has_a_fingerprint() -> None:
    assert fingerprint_of("numpy", np.ndarray, {"a": 1}) == f"numpy {np.__version__} ndarray {{'a': 1}}"
    settings = {"a": [(np.generic, np.float64(0.5)), None, {"b": "text"}]}  # all that a text says in full
    assert fingerprint_of("numpy", np.ndarray, settings) == f"numpy {np.__version__} ndarray {settings!r}"
    for value in (print_nothing, Shown(1), Shown, [Shown(1)], {"b": Shown(1)}, {Shown(1)}):
        assert fingerprint_of("numpy", np.ndarray, {"a": value}) is None
    assert fingerprint_of("numpy", Greedy, {}) is None
    assert fingerprint_of("numpy", lambda seed: seed, {}) is None
    assert not hasattr(Maker("mine", plain), "fingerprint")
    maker = Maker("mine", plain, "text")
    assert (maker.fingerprint, maker.load()) == ("text", plain)


def print_nothing() -> None:
    pass
