"""Follow the Regularized Leader over decisions and late reports.

ZS20: Zimmert & Seldin, An Optimal Algorithm for Adversarial Bandits with Arbitrary Delays, AISTATS 2020, Algorithm 1.
"""

import math
from collections.abc import Sequence
from typing import Any, Generic, Literal, NamedTuple, Self, final, overload

import numpy as np

from belated import kernels
from belated.arrays import Floats, Integers
from belated.errors import DuplicateReport, InvalidInput, SnapshotError, UnknownRound
from belated.kernels.means import COUNT, SUM
from belated.learner import changes, rounds, snapshots
from belated.learner.arms import parse_arms
from belated.learner.decisions import Arm, Decision, as_decision, as_round
from belated.learner.mixing import NO_CONTROL, Mix, as_floor
from belated.learner.outcomes import OutcomeRange, as_outcomes, loss_in, loss_of
from belated.learner.rounds import ask as draw
from belated.learner.state import (
    NOT_PROVISIONAL,
    ROUND,
    State,
    blank,
    blank_bets,
    blank_ledger,
    first_stretch,
    has_means,
)
from belated.tunings import Means, Tuning, as_tuning
from belated.validation import as_confidence, as_probability, whole_number


class Status(NamedTuple):
    """A learner's settings and its numbers, as a copy that does not change."""

    arms: tuple[int, ...] | tuple[str, ...]
    tuning: Tuning
    refresh: int
    outcomes: OutcomeRange | None
    provisional: float | None  # the loss from 0 to 1 that an open decision counts with
    plays: str  # what decides: "means", "bold" or "careful", or "rates" for a tuning that has only one policy
    alpha: float  # the rates of the distribution in force, 0 before the first, and while means decide
    beta: float
    backlog: int  # D_t: the outstanding rounds that the tuning counted, summed over all rounds so far
    estimated_losses: Floats  # Lobs: each arm's total loss over the rounds reported so far, unbiased
    reports: Integers | None  # taken in for each arm. None for a learner without means
    means: Floats | None  # the mean loss from 0 to 1 of these reports, NaN for an arm without one
    waiting: Integers  # open decisions for each arm
    open_cost: float  # what decisions without a report add to the measured certificate
    floor: float  # the probability that every arm has at least


POLICIES = ("bold", "careful", "means")  # the rows of a learner's policies


@final
class FTRL(Generic[Arm]):
    """Follow the Regularized Leader with ZS20's hybrid regularizer, for feedback with any delay.

    x_t = argmin over the simplex of  <x, Lobs_t> - 2 alpha_t sum_i sqrt(x_i) + beta_t sum_i x_i ln x_i
    Lobs_t = sum of loss_s / x_s[A_s] on arm A_s over the rounds s reported so far             (ZS20, Algorithm 1)

    arms:        the number of arms, or their names
    tuning:      the rule for alpha_t and beta_t. Means() by default, which plays by the arms' means before it uses them
    seed:        a whole number makes the decisions repeatable
    refresh:     compute x only after this many decisions. The certificate counts it as delay
    outcomes:    the range of outcomes in your own units. Without it losses and rewards go from 0 to 1
    provisional: the outcome that an open decision counts with until its report comes, such as "no sale". It is a loss
                 from 0 to 1, or an outcome in the units of the range. None means that it does not count yet
    floor:       the probability that every arm has at least, in every decision (docs/theory/mixing.md)

    >>> learner = FTRL(["blue", "green"], seed=1)
    >>> decision = learner.ask()
    >>> decision.arm
    'green'
    >>> learner.tell(decision, reward=0.8)
    >>> learner.round, learner.outstanding
    (1, 0)
    """

    @overload
    def __init__(
        self: "FTRL[int]",
        arms: int,
        tuning: Tuning | None = None,
        *,
        seed: int | None = None,
        refresh: int = 1,
        outcomes: OutcomeRange | None = None,
        provisional: float | None = None,
        floor: float = 0.0,
    ) -> None: ...
    @overload
    def __init__(
        self: "FTRL[str]",
        arms: Sequence[str],
        tuning: Tuning | None = None,
        *,
        seed: int | None = None,
        refresh: int = 1,
        outcomes: OutcomeRange | None = None,
        provisional: float | None = None,
        floor: float = 0.0,
    ) -> None: ...
    def __init__(
        self,
        arms: int | Sequence[str],
        tuning: Tuning | None = None,
        *,
        seed: int | None = None,
        refresh: int = 1,
        outcomes: OutcomeRange | None = None,
        provisional: float | None = None,
        floor: float = 0.0,
    ) -> None:
        parsed, rule, every = parse_arms(arms), as_tuning(tuning), whole_number("refresh", refresh, 1)
        generator = np.random.default_rng(None if seed is None else whole_number("seed", seed, 0, math.inf))
        units = as_outcomes(outcomes)
        assumed = NOT_PROVISIONAL if provisional is None else loss_in(units, "provisional", provisional)
        if provisional is not None and not isinstance(rule, Means):
            raise InvalidInput(f"only Means() takes provisional outcomes, got the tuning {rule!r}. Leave one out")
        clock, policies = blank(parsed.n, rule, assumed)
        arrays = clock, policies, blank_ledger(), blank_bets(parsed.n)
        mix = Mix(as_floor(floor, parsed.n))
        self._state = State(parsed, rule, every, units, assumed, *arrays, generator, [], first_stretch(parsed.n), mix)

    @property
    def n_arms(self) -> int:
        """The number of arms k."""
        return self._state.n_arms

    @property
    def round(self) -> int:
        """Decisions made so far."""
        with self._state.lock:
            return self._state.counters[ROUND] + self._state.offset

    @property
    def outstanding(self) -> int:
        """Decisions without a report."""
        state = self._state
        with state.lock:
            return int(state.clock["outstanding"][0]) + state.stretch.waiting

    @property
    def status(self) -> Status:
        """Settings, rates and estimates as plain data."""
        state = self._state
        with state.lock:
            clock, policies = state.clock[0].copy(), state.policies.copy()
            arms, waiting, open_cost = state.arms.all, rounds.waiting_by_arm(state), changes.measured(state).open
        on_means = has_means(policies)
        source = clock["means"] if on_means else clock
        decides = clock["means"]["leader"] if on_means else clock["shadow"]["played"]
        plays = POLICIES[int(decides)] if len(policies) > 1 else "rates"
        alpha, beta = float(source["alpha"]), 0.0 if plays in ("means", "bold") else float(source["beta"])
        losses, reports, means = np.array(policies[0, kernels.LOSSES]), None, None
        if on_means:
            counts, sums = policies[kernels.ON_MEANS, COUNT], policies[kernels.ON_MEANS, SUM]
            reports = np.rint(counts).astype(np.int64)
            means = np.divide(sums, counts, out=np.full(len(arms), math.nan), where=counts > 0)
            losses = policies[kernels.ON_MEANS, kernels.LOSSES] + float(clock["means"]["centres"])
        assumed = None if state.provisional == NOT_PROVISIONAL else state.provisional
        backlog, settings = int(clock["backlog"]), (arms, state.tuning, state.refresh, state.outcomes, assumed)
        told = losses, reports, means, waiting
        return Status(*settings, plays, alpha, beta, backlog, *told, open_cost, state.mix.floor)

    def __repr__(self) -> str:
        state = self._state
        arms = list(state.arms.names) or state.n_arms
        settings = f"arms={arms!r}, tuning={state.tuning!r}, refresh={state.refresh}"
        settings += "" if state.outcomes is None else f", outcomes={state.outcomes!r}"
        settings += "" if state.provisional == NOT_PROVISIONAL else f", provisional={self._provisional_outcome()!r}"
        settings += "" if state.mix.floor == 0 else f", floor={state.mix.floor!r}"
        return f"FTRL({settings}): round {self.round}, {self.outstanding} outstanding"

    def _provisional_outcome(self) -> float:
        outcomes, loss = self._state.outcomes, self._state.provisional
        return loss if outcomes is None else float(f"{outcomes.value(loss):.12g}")  # not 9.999999999999998

    @overload
    def ask(self) -> Decision[Arm]: ...
    @overload
    def ask(self, size: int) -> list[Decision[Arm]]: ...
    def ask(self, size: int | None = None) -> Decision[Arm] | list[Decision[Arm]]:
        """Decide the next round, or the next `size` rounds from one distribution."""
        state = self._state
        if size is not None:
            return self._ask_batch(whole_number("size", size, 0))
        with state.lock:
            decision: tuple[int, Any, float] = draw(state)
            if state.names or state.offset:
                decision = decision[0] + state.offset, state.arms.name_of(decision[1]), decision[2]
        return tuple.__new__(Decision, decision)  # Decision(*decision), without its detour through Python

    def _ask_batch(self, size: int) -> list[Decision[Arm]]:
        state = self._state
        with state.lock:
            first, arms, probabilities = rounds.ask_batch(state, size)
            first, names = first + state.offset, list(map(state.arms.name_of, arms))
        return list(map(Decision, range(first, first + size), names, probabilities))

    def record(self, arm: Arm, probability: float) -> Decision[Arm]:
        """Enter a round that was decided elsewhere. Nothing is drawn.

        Its report counts with the given probability, so the estimates stay unbiased. The certificates cover it only if
        it was drawn from the learner's own distribution.
        """
        state, chance = self._state, as_probability(probability)
        with state.lock:
            index = state.arms.index_of(arm)
            return Decision(rounds.record(state, index, chance) + state.offset, state.arms.name_of(index), chance)

    def tell(self, decision: Decision[Arm] | int, loss: float | None = None, *, reward: float | None = None) -> None:
        """Report the outcome of a decision or its round, in any order, at any time, once.

        Give a loss or a reward from 0 to 1. A learner with `outcomes` takes the word and the units of its range.

        >>> learner = FTRL(2, seed=0, outcomes=OutcomeRange(0, 50, better="higher"))
        >>> learner.tell(learner.ask(), reward=35)
        """
        state = self._state
        if not (type(loss) is float and 0.0 <= loss <= 1.0 and reward is None and state.outcomes is None):
            loss = loss_of(state.outcomes, loss, reward)
        round = decision if type(decision) is int else as_round(decision)
        with state.lock:
            own, asked = round - state.offset, state.counters[ROUND]
            if own < 1:
                rounds.tell_earlier(state, round, loss)
            elif own > asked:
                raise UnknownRound(round, asked + state.offset)
            elif not state.report(own, loss):
                raise DuplicateReport(round)

    def give_up(self, decision: Decision[Arm] | int) -> None:
        """Stop waiting for a decision or its round. It costs 1 in the certificates, and no memory.

        It says nothing about its arm, so the arm counts as average in this round. With a provisional outcome it goes on
        counting as that. The tuning no longer counts it. If the report comes after all, `amend(decision, None, loss)`
        takes it. A decision of another learner is refused if it does not fit the round.
        """
        round = as_round(decision)
        with self._state.lock:
            if isinstance(decision, Decision):
                rounds.check_own(self._state, round, decision)
            rounds.give_up(self._state, round)

    def amend(self, decision: Decision[Arm], old: float | None, new: float) -> None:
        """Correct the outcome of a reported decision. The estimates become what `new` would have made them.

        old and new are losses from 0 to 1, or outcomes in the units of the learner's range if it has one. After
        tell(decision, reward=r) without a range, pass old = 1 - r, and new as a loss too. Bring the decision and the
        old outcome from your own records, because a learner forgets a round once it is reported. A change that
        contradicts the sums is refused. The certificate still counts the round as reported at first.

        old is None for a decision that was given up. Its loss counts from now on, and in the certificate still 1.
        """
        state = self._state
        after = loss_in(state.outcomes, "new", new)
        before = kernels.NO_LOSS if old is None else loss_in(state.outcomes, "old", old)
        with state.lock:
            round, arm, probability = as_decision(decision)
            has_left = round <= state.offset and state.arms.may_have_left(arm)
            index = kernels.GONE if has_left else state.arms.index_of(arm)
            rounds.check_amendable(state, round)
            problem = rounds.amend(state, (round, index, probability), before, after)
            if problem:
                raise InvalidInput(rounds.refusal(state, problem, round, index, old, new))

    @overload
    def change_arms(self: "FTRL[int]", *, add: int = 0, retire: Sequence[int] = ()) -> tuple[int, ...]: ...
    @overload
    def change_arms(self: "FTRL[str]", *, add: Sequence[str] = (), retire: Sequence[str] = ()) -> tuple[str, ...]: ...
    def change_arms(self, *, add: Any = (), retire: Any = ()) -> tuple[Any, ...]:
        """Add and retire arms. Returns the arms from now on.

        Give names to add, or how many if arms have numbers. A number is never given again. Arms that stay keep what was
        learned, and reports of earlier decisions still teach them. The certificates add up over the stretches between
        changes (docs/theory/means.md). With a floor there may be at most 1 / floor arms.

        >>> learner = FTRL(["blue", "green"], seed=1)
        >>> learner.change_arms(add=["red"], retire=["blue"])
        ('green', 'red')
        """
        with self._state.lock:
            changes.add_and_retire(self._state, add, retire)
            return self._state.arms.all

    def distribution(self) -> Floats:
        """The probability of each arm in the coming round. Changes nothing."""
        with self._state.lock:
            return rounds.coming_distribution(self._state)

    def certificate(self, delays: Literal["fixed", "any"] = "fixed") -> float:
        """A number that the mean regret over runs provably does not exceed. Losses are fixed in advance.

        "fixed" assumes that delays are fixed in advance too. They must not depend on the arm or its outcome. It is at
        most the number of rounds, unless there was an alarm. "any" assumes nothing about delays. It is a random number
        whose mean is valid, and it may exceed the number of rounds (docs/theory/any-delays.md).
        """
        if delays not in ("fixed", "any"):
            raise InvalidInput(f'delays must be "fixed" or "any", got {delays!r}')
        with self._state.lock:
            return changes.proven(self._state) if delays == "fixed" else changes.proven_any(self._state)

    def measured_certificate(self) -> float:
        """A number whose mean over runs is at least the mean regret. It assumes nothing about delays.

        It is this run's own evidence. A single run's number may be below its regret. A decision without a report
        counts with its worst outcome, and `status.open_cost` is what these add (docs/theory/any-delays.md).
        """
        with self._state.lock:
            return sum(changes.measured(self._state))

    def regret_bound(self, confidence: float = 0.95, *, against: Arm | None = None) -> float:
        """A number that the regret of this run does not exceed, at any time, with this confidence.

        It assumes nothing about delays, and losses may react to the past. You may look at it whenever you like. It is
        at most the number of rounds. `against` names one arm, which gives a smaller number than all arms at once.
        """
        level, state = as_confidence(confidence), self._state
        with state.lock:
            if against is not None and state.offset:
                raise InvalidInput(f"against={against!r} needs arms that have never changed. Leave it out")
            arm = None if against is None else state.arms.index_of(against)
            bets = changes.bets_of(state)
        return changes.run_bound(bets, level, arm)

    def snapshot(self) -> dict[str, Any]:
        """The whole state, including the generator, as plain data that survives JSON."""
        with self._state.lock:
            return snapshots.encode(self._state)

    @classmethod
    def restore(cls, snapshot: Any, tuning: Tuning | None = None) -> Self:
        """The learner of a snapshot, to the last bit. `tuning` is needed only if it is your own class."""
        state = snapshots.decode(snapshot, tuning)
        if state.mix.holdout > 0 and state.mix.control != NO_CONTROL:
            raise SnapshotError(
                "the snapshot has a holdout that always draws one arm, its control. Only the service and SharedLearner "
                "draw such a holdout"
            )
        return cls._of(state)

    @classmethod
    def _of(cls, state: State) -> Self:
        learner = cls.__new__(cls)
        learner._state = state
        return learner

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self).restore, (self.snapshot(), self._state.tuning)


def state_of(learner: FTRL[Any]) -> State:
    """The state of a learner, for the parts of this package that work on it directly."""
    return learner._state


def learner_of(state: State) -> FTRL[Any]:
    """The learner of a state, which may have a control. Such a learner only enters decisions that others draw."""
    return FTRL._of(state)


def check_plain(learner: Any, user: str) -> None:
    """Refuse a learner with names or a range of outcomes. `user` works with arm numbers and losses from 0 to 1."""
    if isinstance(learner, FTRL) and (learner._state.names or learner._state.outcomes is not None):
        raise InvalidInput(
            f"{user} has numbered arms and losses from 0 to 1, without names or outcomes, got {learner!r}"
        )
