"""A learner whose copies draw decisions on several machines.

All copies fold the same numbered events in the same order, so they agree to the last bit. An event that a copy had not
folded when it drew was outstanding for its decision. So lag is delay (docs/theory/certificate.md, "Replicas").
"""

import math
from array import array
from bisect import bisect_left
from collections.abc import Sequence
from enum import Enum
from typing import Any, Self, final

import numpy as np
from numpy.typing import NDArray

from belated import kernels
from belated.arrays import Floats, Integers
from belated.errors import InvalidInput
from belated.learner import changes, rounds, snapshots
from belated.learner.arms import Arms
from belated.learner.certificates import Measured
from belated.learner.changes import Bets
from belated.learner.ftrl import FTRL, check_plain, learner_of, state_of
from belated.learner.mixing import Mix, drawn_from
from belated.learner.state import ROUND
from belated.replicated.lag import DrawContext, Drawn, Lag, drawn_now, lag_since
from belated.tunings import Tuning
from belated.validation import as_arms, as_bold_advantages, as_loss, as_probabilities, as_probability

LAST_ROUND = 2**62  # later than any


class Freshness(Enum):
    """How the state that decisions were drawn from relates to the present one."""

    CURRENT = "nothing has happened since"
    IN_FORCE = "only decisions have happened since, so the distribution in force is the same"
    MORE = "they were drawn together with the decisions entered last"
    STALE = "it is older"
    MORE_STALE = "it is older, and they were drawn together with the decisions entered last"

    @property
    def is_more(self) -> bool:
        """Whether they were drawn together with the decisions entered last."""
        return self in (Freshness.MORE, Freshness.MORE_STALE)

    @property
    def is_stale(self) -> bool:
        """Whether the state they were drawn from must be known to enter them."""
        return self in (Freshness.STALE, Freshness.MORE_STALE)


@final
class WaitingRounds:
    """The rounds without a report, by the event number of their decision. 16 bytes each."""

    def __init__(self, seqs: bytes = b"", rounds: bytes = b"") -> None:
        self._seqs, self._rounds, self._gone = _array(seqs), _array(rounds), 0

    def __len__(self) -> int:
        return len(self._seqs) - self._gone

    def add(self, seqs: Sequence[int], first: int) -> None:
        """Add the rounds from `first` on."""
        self._seqs.extend(seqs)
        self._rounds.extend(range(first, first + len(seqs)))

    def have(self, seqs: Integers) -> NDArray[np.bool_]:
        """Whether each of the decisions with these numbers waits."""
        own, rounds = np.frombuffer(self._seqs, np.int64), np.frombuffer(self._rounds, np.int64)
        if not len(own):
            return np.zeros(len(seqs), bool)
        found = np.minimum(np.searchsorted(own, seqs), len(own) - 1)
        waiting: NDArray[np.bool_] = (own[found] == seqs) & (rounds[found] > 0)
        return waiting

    def take(self, seq: int) -> int:
        """Remove the decision with this number and return its round. 0 if it was not waiting."""
        found = bisect_left(self._seqs, seq)
        if found == len(self._seqs) or self._seqs[found] != seq:
            return 0
        round, self._rounds[found] = self._rounds[found], 0
        if round:
            self._gone += 1
            if self._gone > 64 and 2 * self._gone > len(self._seqs):
                self._seqs, self._rounds = map(_array, self.state())
                self._gone = 0
        return round

    def state(self) -> tuple[bytes, bytes]:
        """The waiting ones as bytes."""
        seqs, rounds = np.array(self._seqs, np.int64), np.array(self._rounds, np.int64)
        return seqs[rounds > 0].tobytes(), rounds[rounds > 0].tobytes()


def _array(numbers: bytes) -> "array[int]":
    return array("q", numbers)


@final
class SharedLearner:
    """FTRL over numbered events. `seen` of a decision is the last event that its copy had folded when it drew.

    >>> shared = SharedLearner(FTRL(2, seed=0), last=0)
    >>> context = shared.draw_context()
    >>> shared.enter([1], 0, [1], [float(context.x[1])], context.drawn)
    >>> shared.tell(2, decision=1, loss=0.5)
    >>> shared.learner.round, shared.last
    (1, 2)
    """

    def __init__(self, learner: FTRL, last: int) -> None:
        self.learner, self.last = learner, last  # the number of the newest event
        self._state = state_of(learner)
        if self._state.refresh != 1:
            raise InvalidInput(f"a shared learner solves for every draw: refresh must be 1, got {self._state.refresh}")
        check_plain(learner, "a shared learner")
        self._solved, self._moved = last, 0  # the events that the distribution in force knows, and the first after them
        self._seen = -1  # of the decisions entered last, while nothing else has happened
        self._lag: Lag | None = None  # and their lag, if they had one
        self._waiting = WaitingRounds()
        self._changed = last  # when the arms changed last
        self._stage_began = last  # the first decision of the learner's stage has this number or a later one
        self._kept_since = [last] * self._state.n_arms  # by arm: what decisions before this said is forgotten

    def draw_context(self) -> DrawContext:
        """What a copy draws from, and what `enter` needs if others write meanwhile."""
        with self._state.lock:
            policies, played = rounds.coming_policies(self._state)
            drawn = drawn_now(self._state.clock[0])
        careful = min(1, len(policies) - 1)
        x = drawn_from(self._state.clock[0], policies[played, kernels.X].copy())
        lead = policies[0, kernels.X] - policies[careful, kernels.X]
        return DrawContext(x, np.divide(lead, x, out=np.zeros_like(x), where=x > 0), drawn)

    @property
    def mix(self) -> Mix:
        """What is mixed into the distribution."""
        return self._state.mix

    @property
    def in_force(self) -> Floats:
        """The distribution of the decisions entered last, if they were not stale. The next solve changes this view."""
        return self._state.drawn

    def freshness(self, seen: int) -> Freshness:
        """How old the state is that decisions with this `seen` were drawn from."""
        if seen == self._seen:
            return Freshness.MORE if self._lag is None else Freshness.MORE_STALE
        if seen >= self.last:
            return Freshness.CURRENT
        return Freshness.IN_FORCE if self._solved <= seen < self._moved else Freshness.STALE

    def enter(
        self,
        seqs: Sequence[int],
        seen: int,
        arms: Sequence[int],
        probabilities: Sequence[float],
        drawn: Drawn | None,
        bold_advantages: Sequence[float] = (),
        *,
        freshness: Freshness | None = None,
    ) -> None:
        """Enter decisions that were drawn together. Splitting a batch does not change the result.

        drawn, bold_advantages: from the `draw_context` of their copy. Needed if they are stale.
        freshness: of `seen`, if the caller has determined it already
        """
        state, freshness = self._state, freshness or self.freshness(seen)
        chosen, chances = as_arms(arms, state.n_arms), as_probabilities(probabilities)
        if not len(seqs) == chosen.size == chances.size:
            raise InvalidInput(
                f"each decision needs an arm and a probability, got {len(seqs)} decisions, {chosen.size} arms, "
                f"{chances.size} probabilities"
            )
        if not seqs:
            return
        with state.lock:
            first, stage = state.counters[ROUND] + 1 + state.offset, self._stage
            if freshness.is_stale:
                advantages = as_bold_advantages(bold_advantages, chosen.size)
                if not state.has_shadow:
                    advantages = np.zeros(0)  # all are 0 without a shadow
                self._enter_stale(seqs[0], seen, drawn, freshness, (chosen, chances, advantages))
            elif freshness is Freshness.CURRENT:
                if len(seqs) == 1:
                    rounds.record(state, int(chosen[0]), float(chances[0]))  # the same, at a third of the cost
                else:
                    rounds.record_batch(state, chosen, chances)
                self._begin(seqs[0], seen, None)
            else:
                rounds.record_batch(state, chosen, chances, is_in_force=True)
                self._seen, self._lag = seen, None
            if self._stage != stage:
                self._stage_began = seqs[0]
        self._waiting.add(seqs, first)
        self.last = seqs[-1]

    @property
    def _stage(self) -> tuple[int, int]:
        """How the learner decides (kernels/means.py), and whether an alarm was raised, also without means."""
        clock = self._state.clock[0]
        return int(clock["means"]["stage"]), int(clock["shadow"]["alarm"])

    def _enter_stale(
        self, seq: int, seen: int, drawn: Drawn | None, freshness: Freshness, batch: tuple[Any, Any, Any]
    ) -> None:
        """One kernel call, which solves before the first of them."""
        state, size = self._state, batch[0].size
        if freshness is Freshness.STALE:
            if drawn is None:
                raise InvalidInput(f"the decision at entry {seq} was drawn after entry {seen}, from an unknown state")
            lag = lag_since(drawn, state.clock[0], state.tuning, state.n_arms)
            rates = rounds.checked(state, rounds.coming_rates(state))
            rounds.make_room(state, size)
            fall = lag.dip * math.log(state.n_arms)
            arrays = state.clock, state.ledger, state.policies, state.cdf
            surcharge = kernels.enter_stale(
                *arrays, state.patience, *batch, *rates, fall, drawn.alarm, lag.alpha, lag.beta, lag.dip, lag.missed
            )
            self._begin(seq, seen, lag._replace(surcharge=surcharge))
        else:
            if self._lag is None:
                raise InvalidInput(f"no stale decisions after entry {seen} came just before. Ask `freshness({seen})`")
            rounds.make_room(state, size)
            arrays_ = state.clock, state.ledger, state.policies
            kernels.enter_more_stale(*arrays_, state.patience, *batch, *tuple[Any, ...](self._lag))

    def _begin(self, seq: int, seen: int, lag: Lag | None) -> None:
        self._solved, self._moved, self._seen, self._lag = self.last, seq, seen, lag

    def _happened(self, seq: int) -> None:
        self.last, self._seen, self._lag = seq, -1, None

    def _take(self, seq: int, decision: int) -> int:
        round = self._waiting.take(decision)
        if not round:
            raise InvalidInput(f"the decision at entry {decision} is not waiting for a report")
        self._happened(seq)
        return round

    def tell(self, seq: int, decision: int, loss: float) -> None:
        """Report the loss in [0, 1] of the decision with this number."""
        value = as_loss(loss)
        self.learner.tell(self._take(seq, decision), value)

    def give_up(self, seq: int, decision: int) -> None:
        """Stop waiting for the decision with this number."""
        with self._state.lock:
            rounds.give_up(self._state, self._take(seq, decision))

    def amend(self, seq: int, decision: int, arm: int, probability: float, old: float | None, new: float) -> None:
        """Correct the loss of a decision that was reported, or bring that of one that was given up (old is None).

        The journal cannot be wrong, so the round is not checked. Rounding errors, which may contradict the sums after
        many amendments, are cut off.
        """
        state = self._state
        before, after = kernels.NO_LOSS if old is None else as_loss(old), as_loss(new)
        [index], chance = as_arms([arm], state.n_arms).tolist(), as_probability(probability)
        rounds.check_amendable(state, f"at entry {seq}")
        self._happened(seq)
        with state.lock:
            if decision < self._changed:
                if decision >= self._kept_since[index]:
                    rounds.amend_earlier(state, 0, index, before, after)
                return
            round = LAST_ROUND if decision >= self._stage_began else 0
            arrays = state.clock, state.ledger, state.policies, state.bets
            kernels.amend(*arrays, round, index, chance, before, after, False)  # noqa: FBT003

    def set_mix(self, seq: int, mix: Mix) -> None:
        """Mix differently into the distribution of decisions that know this event."""
        with self._state.lock:
            self._state.set_mix(mix)
        self._happened(seq)

    def assume(self, seq: int, provisional: float) -> None:
        """Count open decisions with another loss from now on, or with none. It needs a learner on means."""
        with self._state.lock:
            changes.assume(self._state, provisional)
        self._happened(seq)

    def change_arms(self, seq: int, n_arms: int, moved: dict[int, int], mix: Mix | None = None) -> None:
        """Go on with n_arms arms. `moved` has the new index of every arm that stays, and `mix` that of its control."""
        state, kept_since = self._state, [seq] * n_arms
        with state.lock:
            had_means = state.has_means
            state.mix = state.mix if mix is None else mix
            changes.change(state, Arms(n_arms), moved)
        if had_means and state.has_means:
            for before, now in moved.items():
                kept_since[now] = self._kept_since[before]
        self._kept_since = kept_since
        self._solved, self._moved = seq, 0
        self._changed = self._stage_began = seq
        self._happened(seq)

    def measured(self) -> Measured:
        """The measured certificate in two parts."""
        with self._state.lock:
            return changes.measured(self._state)

    def bets(self) -> Bets:
        """What the bound on this run's regret is computed from, later and in another thread."""
        with self._state.lock:
            return changes.bets_of(self._state)

    @property
    def n_waiting(self) -> int:
        """How many decisions have no report."""
        return len(self._waiting)

    def waiting(self) -> Integers:
        """The numbers of the decisions without a report, in order."""
        return np.frombuffer(self._waiting.state()[0], np.int64)

    def are_waiting(self, decisions: Integers) -> NDArray[np.bool_]:
        """Whether each of the decisions with these numbers waits for a report."""
        return self._waiting.have(decisions)

    def state(self) -> dict[str, Any]:
        """All of it, as plain data with bytes."""
        with self._state.lock:
            learner = snapshots.encode(self._state, is_packed=True)
        return {
            "learner": learner,
            "waiting": self._waiting.state(),
            "at": (self.last, self._solved, self._moved, self._seen, self._changed, self._stage_began),
            "lag": self._lag,
            "kept_since": self._kept_since,
        }

    @classmethod
    def restore(cls, state: dict[str, Any], tuning: Tuning | None = None) -> Self:
        """The same, to the last bit. `tuning` as for a learner."""
        shared = cls(learner_of(snapshots.decode(state["learner"], tuning)), 0)
        shared._waiting = WaitingRounds(*state["waiting"])
        shared.last, shared._solved, shared._moved, shared._seen, shared._changed, shared._stage_began = state["at"]
        shared._lag = None if state["lag"] is None else Lag(*state["lag"])
        shared._kept_since = list(state["kept_since"])
        return shared
