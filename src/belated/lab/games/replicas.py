"""Games of replicas, which are copies of one learner that hear of each other `lag` rounds later.

In `OneJournal` all copies fold one journal in its order, as in a service. In `Apart` each copy knows its own events at
once. Both are learners with ask and tell (docs/replicas.md).

An event of round w is known in round t if w + lag < t. Without lag that is from the next round on.
"""

from collections import deque
from collections.abc import Callable, Sequence
from functools import partial
from typing import Literal, NamedTuple, final

import numpy as np

from belated import kernels
from belated.arrays import Floats
from belated.errors import DuplicateReport, UnknownRound
from belated.lab.games.certify import Certified, certify
from belated.lab.games.curves import Curves
from belated.lab.games.play import play as play_games
from belated.lab.problems.problem import Problem
from belated.learner.decisions import Decision, MakeLearner, as_round
from belated.learner.ftrl import FTRL
from belated.replicated.lag import DrawContext
from belated.replicated.shared_learner import SharedLearner
from belated.tunings import Tuning, as_tuning
from belated.validation import as_loss, whole_number


def play(
    tuning: Tuning,
    problem: Problem,
    seeds: int | Sequence[int] | range,
    *,
    replicas: int = 2,
    lag: int = 20,
    checkpoints: Sequence[int] | None = None,
) -> Certified:
    """Regret and certificates of replicas of a service, which fold one journal, at the checkpoints."""
    return certify(_maker(OneJournal, tuning, replicas, lag), problem, seeds, checkpoints=checkpoints)


def play_apart(
    tuning: Tuning,
    problem: Problem,
    seeds: int | Sequence[int] | range,
    *,
    replicas: int = 2,
    lag: int = 20,
    checkpoints: Sequence[int] | None = None,
) -> Curves:
    """Regret of replicas that know their own events at once. No certificate is proven for them."""
    return play_games(_maker(Apart, tuning, replicas, lag), problem, seeds, checkpoints=checkpoints)


def _maker(kind: "type[OneJournal | Apart]", tuning: Tuning, replicas: int, lag: int) -> MakeLearner:
    as_tuning(tuning)
    whole_number("replicas", replicas, 1)
    whole_number("lag", lag, 0)
    return lambda n_arms, seed: kind(n_arms, tuning, seed=seed, replicas=replicas, lag=lag)


class _Written(NamedTuple):
    """An entry of the journal, with the round in which it was written and its effect on a copy that folds it."""

    round: int
    fold: Callable[[SharedLearner], None]


@final
class OneJournal:
    """Copies that fold one journal. In round t they have folded what was written before t - lag.

    A copy cannot know its own newest event without the events of the others before it. So all draw from the same
    states, and one learner that is `lag` rounds behind stands for two or more copies. A single copy has no lag.
    """

    def __init__(self, n_arms: int, tuning: Tuning, *, seed: int, replicas: int, lag: int) -> None:
        self.n_arms, self.round = n_arms, 0
        self._lag = lag if replicas > 1 else 0
        self._tuning, self._generator = tuning, np.random.default_rng(seed)
        self._behind = SharedLearner(FTRL(n_arms, tuning, seed=0), 0)
        self._ahead: deque[_Written] = deque()  # not folded yet
        self._last = 0  # number of the newest entry
        self._seqs: dict[int, int] = {}  # entry numbers of decisions that wait for a report
        self._context: DrawContext | None = None

    @property
    def outstanding(self) -> int:
        return len(self._seqs)

    def _write(self, fold: Callable[[SharedLearner], None]) -> None:
        self._ahead.append(_Written(self.round, fold))
        self._context = None

    def _look(self) -> DrawContext:
        while self._ahead and self._ahead[0].round + self._lag <= self.round:
            self._ahead.popleft().fold(self._behind)
            self._context = None
        if self._context is None:
            self._context = self._behind.draw_context()
        return self._context

    def distribution(self) -> Floats:
        """The distribution x of the next round."""
        return self._look().x

    def ask(self) -> Decision:
        """Decide the next round. It does not matter which replica does it."""
        x, bold_advantages, drawn = self._look()
        arm = _draw(x, float(self._generator.random()))
        self.round, self._last = self.round + 1, self._last + 1
        given = [self._last], self._behind.last, [arm], [float(x[arm])], drawn, [float(bold_advantages[arm])]
        self._write(lambda shared: shared.enter(*given))
        self._seqs[self.round] = self._last
        return Decision(self.round, arm, float(x[arm]))

    def tell(self, decision: Decision | int, loss: float) -> None:
        """Report the loss of an earlier decision or its round, once. Any order is fine."""
        round, checked = as_round(decision), as_loss(loss)
        seq = self._seqs.pop(_open(round, self.round, self._seqs))
        self._last += 1
        self._write(partial(SharedLearner.tell, seq=self._last, decision=seq, loss=checked))

    def whole(self) -> FTRL:
        """The learner after the whole journal, as every replica will be after the lag."""
        copy = SharedLearner.restore(self._behind.state(), self._tuning)
        for written in self._ahead:
            written.fold(copy)
        return copy.learner

    def certificate(self, delays: Literal["fixed", "any"] = "fixed") -> float:
        """The certificate of the whole journal (docs/theory/certificate.md, "Replicas")."""
        return self.whole().certificate(delays)

    def measured_certificate(self) -> float:
        """The measured certificate of the whole journal."""
        return self.whole().measured_certificate()

    def regret_bound(self, confidence: float = 0.95) -> float:
        """The bound on the regret of the whole journal."""
        return self.whole().regret_bound(confidence)


@final
class Apart:
    """Copies that know their own reports at once and those of the others after the lag.

    The replica that decides is drawn uniformly. Every copy counts all rounds, and a round is outstanding until its
    report reaches the copy. So each copy is a learner on the delays of lab.Replicated, but only its own rounds are
    drawn from its distribution.
    """

    def __init__(self, n_arms: int, tuning: Tuning, *, seed: int, replicas: int, lag: int) -> None:
        self.n_arms, self.round = n_arms, 0
        self._lag = lag
        self._copies = [
            FTRL(n_arms, tuning, seed=0) for _ in range(replicas if lag else 1)
        ]  # without lag all copies are the same
        self._generator = np.random.default_rng(seed)
        self._deciders = np.random.default_rng(np.random.SeedSequence(seed, spawn_key=(2,)))  # 0, 1: the problem's
        self._decider = self._next_decider()
        self._x: Floats | None = None  # of the next round, until a report arrives
        self._deciders_of: dict[int, int] = {}  # of rounds that wait for a report
        self._news: deque[tuple[int, int, int, float]] = deque()  # written in round, by, about, loss

    @property
    def outstanding(self) -> int:
        return len(self._deciders_of)

    def _next_decider(self) -> int:
        return int(self._deciders.integers(len(self._copies)))

    def _hear(self) -> None:
        while self._news and self._news[0][0] + self._lag <= self.round:
            _, by, about, loss = self._news.popleft()
            self._x = None
            for number, copy in enumerate(self._copies):
                if number != by:
                    copy.tell(about, loss)

    def distribution(self) -> Floats:
        """The distribution x of the next round, from the replica whose turn it is."""
        self._hear()
        if self._x is None:
            self._x = self._copies[self._decider].distribution()
        return self._x

    def ask(self) -> Decision:
        """Decide the next round, by a replica drawn uniformly."""
        x = self.distribution()
        arm = _draw(x, float(self._generator.random()))
        for copy in self._copies:  # the copy uses them only when it gets the report
            copy.record(arm, float(x[arm]))
        self.round, self._x = self.round + 1, None
        self._deciders_of[self.round], self._decider = self._decider, self._next_decider()
        return Decision(self.round, arm, float(x[arm]))

    def tell(self, decision: Decision | int, loss: float) -> None:
        """Report the loss of an earlier decision or its round, once. Any order is fine."""
        round, checked = as_round(decision), as_loss(loss)
        by = self._deciders_of.pop(_open(round, self.round, self._deciders_of))
        self._copies[by].tell(round, checked)
        self._x = None
        if len(self._copies) > 1:
            self._news.append((self.round, by, round, checked))


def _open(round: int, asked: int, waiting: dict[int, int]) -> int:
    """The round, if it waits for its report."""
    if not 1 <= round <= asked:
        raise UnknownRound(round, asked)
    if round not in waiting:
        raise DuplicateReport(round)
    return round


def _draw(x: Floats, uniform: float) -> int:
    """Draw an arm as FTRL does."""
    cdf = np.empty(-(-x.size // kernels.BLOCK))
    kernels.accumulate(x, cdf)
    return int(kernels.draw(x, cdf, uniform))
