"""The contract of a learner: what a caller may rely on."""

import copy
import math
import pickle
from abc import ABC, abstractmethod
from decimal import Decimal
from fractions import Fraction

import numpy as np
import pytest

from belated.errors import BelatedError, DuplicateReport, InvalidInput, UnknownRound
from belated.extras import needs
from belated.learner.decisions import Decision, Learner

with needs("testing"):
    from hypothesis import HealthCheck, given, settings
    from hypothesis import strategies as st

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


def behaviour(learner: Learner) -> tuple[list[Decision], int]:
    """What a copy of the learner would do next, and how many reports are outstanding."""
    twin = copy.deepcopy(learner)
    coming = []
    for _ in range(30):
        coming.append(twin.ask())
        twin.tell(coming[-1].round, 0.25)
    return coming, learner.outstanding


class LearnerContract(ABC):
    """Tests that every learner must pass. A subclass makes the learner."""

    ignores_seed = False  # set this to True for a learner without randomness

    @abstractmethod
    def make(self, n_arms: int, seed: int) -> Learner:
        """A new learner."""

    @pytest.mark.parametrize("k", [1, 2, 10, 100])
    def test_decisions_are_numbered_arms_with_their_probability(self, k: int) -> None:
        learner = self.make(k, 3)
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

    def test_the_same_seed_gives_the_same_decisions(self) -> None:
        runs = []
        for _ in range(2):
            learner, decisions = self.make(5, 11), list[Decision]()
            for t in range(1, 300):
                decisions.append(learner.ask())
                if t > 20:
                    learner.tell(t - 20, float(decisions[t - 21].arm) / 5)
            runs.append(decisions)
        assert runs[0] == runs[1]
        other = self.make(5, 12)
        arms = [decision.arm for decision in runs[0][:20]]
        assert self.ignores_seed or arms != [other.ask().arm for _ in range(20)]

    def test_reports_come_in_any_order(self) -> None:
        learner = self.make(4, 1)
        rounds = [learner.ask().round for _ in range(100)]
        for t in np.random.default_rng(0).permutation(rounds).tolist():
            learner.tell(t, 0.5)
        assert learner.outstanding == 0
        assert learner.ask().round == 101

    @pytest.mark.parametrize(("round", "loss", "error"), BAD_REPORTS)
    def test_a_bad_report_is_refused_and_changes_nothing(self, round: int, loss: float, error: type) -> None:
        learner = self.make(3, 2)
        for _ in range(10):
            learner.ask()
        learner.tell(4, 0.0)
        before = behaviour(learner)
        with pytest.raises(error) as caught:
            learner.tell(round, loss)
        assert isinstance(caught.value, BelatedError)
        assert str(round) in str(caught.value) or str(loss) in str(caught.value)  # the message names the value
        assert behaviour(learner) == before
        assert str(pickle.loads(pickle.dumps(caught.value))) == str(caught.value)  # noqa: S301  (errors cross processes)

    def test_numpy_numbers_and_whole_losses_are_welcome(self) -> None:
        learner = self.make(3, 2)
        numbers = np.float32(0.25), 0, 1, np.int64(1), True, np.True_, np.array(0.5), Decimal("0.5"), Fraction(1, 3)
        for loss in numbers:
            learner.tell(np.int64(learner.ask().round), loss)  # type: ignore[arg-type]
        assert learner.outstanding == 0

    @settings(max_examples=10, deadline=None, suppress_health_check=[HealthCheck.differing_executors])
    @given(st.data())
    def test_any_mixture_of_asks_and_tells_keeps_the_count(self, data: st.DataObject) -> None:
        learner, n = self.make(data.draw(st.integers(1, 70)), 1), 0
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


class LearningContract(ABC):
    """One more test, for learners that find the best arm within 3,000 rounds."""

    @abstractmethod
    def make(self, n_arms: int, seed: int) -> Learner:
        """A new learner."""

    def test_it_learns_which_arm_is_best(self) -> None:
        learner, best = self.make(3, 5), 1
        late: list[tuple[int, int]] = []
        for _ in range(3000):
            decision = learner.ask()
            late.append((decision.round, decision.arm))
            if len(late) > 10:
                round, arm = late.pop(0)
                learner.tell(round, 0.1 if arm == best else 0.9)
        assert np.mean([learner.ask().arm == best for _ in range(300)]) > 0.6
