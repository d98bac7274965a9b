"""ONE contract for every learner of the package (catalogue.py): what a caller may rely on."""

import copy
import math
import pickle
from collections.abc import Callable
from decimal import Decimal
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from belated import BelatedError, Learner
from belated.errors import DuplicateReport, InvalidInput, UnknownRound
from tests.support.catalogue import DETERMINISTIC, LEARNERS, NOT_LEARNING

Make = Callable[[int, int], Learner]
every_learner = pytest.mark.parametrize("make", LEARNERS.values(), ids=LEARNERS.keys())


@every_learner
@pytest.mark.parametrize("k", [1, 2, 10, 100])
def test_decisions_are_numbered_arms_with_their_probability(make: Make, k: int) -> None:
    learner = make(k, 3)
    assert learner.n_arms == k
    for t in range(1, 200):
        decision = learner.ask()
        assert decision.round == t
        assert type(decision.arm) is int
        assert 0 <= decision.arm < k
        assert type(decision.probability) is float
        assert 0 < decision.probability <= 1
        if t % 3:
            learner.tell(decision.round, (t % 7) / 7)
    assert learner.outstanding == 199 // 3


@pytest.mark.parametrize("name", LEARNERS)
def test_the_same_seed_gives_the_same_decisions(name: str) -> None:
    make, runs = LEARNERS[name], []
    for _ in range(2):
        learner = make(5, 11)
        decisions = []
        for t in range(1, 300):
            decisions.append(learner.ask())
            if t > 20:
                learner.tell(t - 20, float(decisions[t - 21].arm) / 5)
        runs.append(decisions)
    assert runs[0] == runs[1]
    other = make(5, 12)
    assert name in DETERMINISTIC or [decision.arm for decision in runs[0][:20]] != [other.ask().arm for _ in range(20)]


@every_learner
def test_reports_come_in_any_order(make: Make) -> None:
    learner = make(4, 1)
    rounds = [learner.ask().round for _ in range(100)]
    for t in np.random.default_rng(0).permutation(rounds).tolist():
        learner.tell(t, 0.5)
    assert learner.outstanding == 0
    assert learner.ask().round == 101


@pytest.mark.parametrize("name", [name for name in LEARNERS if name not in NOT_LEARNING])
def test_it_learns_which_arm_is_best(name: str) -> None:
    learner, best = LEARNERS[name](3, 5), 1
    late: list[tuple[int, int]] = []
    for _ in range(3000):
        decision = learner.ask()
        late.append((decision.round, decision.arm))
        if len(late) > 10:
            round, arm = late.pop(0)
            learner.tell(round, 0.1 if arm == best else 0.9)
    assert np.mean([learner.ask().arm == best for _ in range(300)]) > 0.6


def state(learner: Learner) -> object:
    """Everything observable: what it would do next, on a copy."""
    twin = copy.deepcopy(learner)
    coming = []
    for _ in range(30):
        coming.append(twin.ask())
        twin.tell(coming[-1].round, 0.25)
    return coming, learner.outstanding


BAD_REPORTS = [
    (1, -0.1, InvalidInput),
    (1, 1.0000001, InvalidInput),
    (1, math.nan, InvalidInput),
    (1, math.inf, InvalidInput),
    (1, "0.5", InvalidInput),
    (1, None, InvalidInput),
    (1, 0.5 + 0j, InvalidInput),
    (1, 10**400, InvalidInput),
    (1, np.array([0.5, 0.5]), InvalidInput),
    ("1", 0.5, InvalidInput),
    (1.0, 0.5, InvalidInput),
    (True, 0.5, InvalidInput),
    (0, 0.5, UnknownRound),
    (-3, 0.5, UnknownRound),
    (11, 0.5, UnknownRound),
    (2**70, 0.5, UnknownRound),
    (4, 0.5, DuplicateReport),
]


@every_learner
@pytest.mark.parametrize(("round", "loss", "error"), BAD_REPORTS)
def test_a_bad_report_is_refused_and_changes_nothing(make: Make, round: int, loss: float, error: type) -> None:
    learner = make(3, 2)
    for _ in range(10):
        learner.ask()
    learner.tell(4, 0.0)
    before = state(learner)
    with pytest.raises(error) as caught:
        learner.tell(round, loss)
    assert isinstance(caught.value, BelatedError)
    assert str(round) in str(caught.value) or str(loss) in str(caught.value)  # it names the value
    assert state(learner) == before
    assert str(pickle.loads(pickle.dumps(caught.value))) == str(caught.value)  # noqa: S301  (errors cross processes)


@every_learner
def test_numpy_numbers_and_whole_losses_are_welcome(make: Make) -> None:
    learner = make(3, 2)
    for loss in (np.float32(0.25), 0, 1, np.int64(1), True, np.True_, np.array(0.5), Decimal("0.5"), Fraction(1, 3)):
        learner.tell(np.int64(learner.ask().round), loss)  # type: ignore[arg-type]
    assert learner.outstanding == 0


@settings(max_examples=20, deadline=None)
@given(st.data())
def test_any_mixture_of_asks_and_tells_keeps_the_count(data: st.DataObject) -> None:
    make = data.draw(st.sampled_from(list(LEARNERS.values())))
    learner, n = make(data.draw(st.integers(1, 70)), 1), 0
    waiting: list[int] = []
    for wants_ask in data.draw(st.lists(st.booleans(), max_size=80)):
        if wants_ask or not waiting:
            n += 1
            assert learner.ask().round == n
            waiting.append(n)
        else:
            round = waiting.pop(data.draw(st.integers(0, len(waiting) - 1)))
            learner.tell(round, data.draw(st.floats(0, 1)))
            with pytest.raises(DuplicateReport):
                learner.tell(round, 0.5)
        assert learner.outstanding == len(waiting)
