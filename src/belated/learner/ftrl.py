"""The learner: Follow the Regularized Leader over decisions and reports that come whenever they come.

ZS20: Zimmert & Seldin, An Optimal Algorithm for Adversarial Bandits with Arbitrary Delays, AISTATS 2020, Algorithm 1.
"""

import math
from collections.abc import Callable
from functools import cached_property
from threading import RLock
from typing import Any, NamedTuple, Protocol, Self, final, overload

import numpy as np
from numpy.typing import ArrayLike

from belated import kernels
from belated.arrays import Floats
from belated.errors import DuplicateReport, InvalidInput, UnknownRound
from belated.learner import snapshots
from belated.learner.state import State, blank
from belated.replicated.lag import Drawn, Lag, Outlook, drawn_now, lag_since
from belated.tunings import Tuning, as_tuning, proper_patience, proper_rates
from belated.validation import (
    as_arm,
    as_arms,
    as_bold_advantages,
    as_decision,
    as_loss,
    as_probabilities,
    as_probability,
    as_round,
    whole_number,
)

UNIFORMS = 128  # drawn from the generator at a time: one call for each would cost as much as the argmin
FIRST_ROWS = 64


class Decision(NamedTuple):
    """What was chosen: keep `round` to report the outcome under, and `probability` for your logs."""

    round: int
    arm: int
    probability: float


class Learner(Protocol):
    """Anything that decides with `ask` and learns with `tell`."""

    @property
    def n_arms(self) -> int: ...

    @property
    def outstanding(self) -> int:
        """Decisions whose feedback has not come."""

    def ask(self) -> Decision:
        """Decide the next round."""

    def tell(self, round: int, loss: float) -> None:
        """Report the loss in [0, 1] of an earlier round, in any order, once."""


@final
class FTRL:
    """Follow the Regularized Leader with ZS20's hybrid regularizer, for feedback with any delay.

    x_t = argmin over the simplex of  <x, Lobs_t> - 2 alpha_t sum_i sqrt(x_i) + beta_t sum_i x_i ln x_i
    Lobs_t = sum of loss_s / x_s[A_s] on arm A_s over the rounds s reported so far             (ZS20, Algorithm 1)

    arms:    the number of options k
    tuning:  the rule for alpha_t and beta_t; Shadow() if not given
    seed:    a whole number makes the decisions repeatable
    refresh: x is computed anew only after so many decisions: that is one more delay, and the certificate counts it
    """

    # All that changes lives in the arrays, and a kernel changes them in one step: an exception raised between two lines
    # here (a KeyboardInterrupt, say) cannot leave half a decision behind.

    def __init__(self, arms: int, tuning: Tuning | None = None, *, seed: int | None = None, refresh: int = 1) -> None:
        self._n_arms = whole_number("arms", arms, 1)
        self._tuning = as_tuning(tuning)
        self._patience = proper_patience(self._tuning, self._n_arms)
        self._discard = bool(self._tuning.discard)
        self._refresh = whole_number("refresh", refresh, 1)
        self._generator = np.random.default_rng(None if seed is None else whole_number("seed", seed, 0, math.inf))
        self._uniforms: list[float] = []  # in reverse order of use
        self._attach(*blank(self._n_arms, self._tuning), np.zeros(FIRST_ROWS, kernels.LEDGER))

    def _attach(self, clock: Any, policies: Floats, ledger: Any) -> None:
        """Make these arrays the state."""
        self._lock = RLock()
        self._clock, self._ledger, self._policies = clock, ledger, policies
        self._cdf = np.empty(-(-self._n_arms // kernels.BLOCK))
        kernels.accumulate(policies[int(clock["played"][0]), kernels.X], self._cdf)
        views = (clock[name] for name in ("round", "left", "backlog", "counted", "late_counted"))  # read with item()
        self._round, self._left, self._backlog, self._counted, self._late = views
        example = clock, ledger, policies, self._cdf, 1.0, 0.5
        self._decide = kernels.entry_point(kernels.decide, *example)
        self._solve_and_decide = kernels.entry_point(kernels.solve_and_decide, *example, 1.0, 1.0, 1)
        self._compact = kernels.entry_point(kernels.compact, clock, ledger)
        self._report = kernels.entry_point(kernels.report, clock, ledger, policies, self._discard, 1, 1.0)

    @property
    def n_arms(self) -> int:
        return self._n_arms

    @property
    def tuning(self) -> Tuning:
        return self._tuning

    @property
    def refresh(self) -> int:
        return self._refresh

    @property
    def round(self) -> int:
        """t: decisions made so far."""
        return int(self._round.item())

    @property
    def rates(self) -> tuple[float, float]:
        """(alpha, beta) of the distribution in force; (0, 0) before the first."""
        with self._lock:
            clock = self._clock[0].copy()
        is_bold = clock["switch_threshold"] > 0 and not clock["played"]
        return float(clock["alpha"]), 0.0 if is_bold else float(clock["beta"])

    @property
    def outstanding(self) -> int:
        """Decisions whose feedback has not come."""
        return int(self._clock["outstanding"][0])

    @property
    def backlog(self) -> int:
        """D_t: the outstanding rounds that the tuning counted, summed over all rounds so far."""
        return int(self._backlog.item())

    @property
    def estimated_losses(self) -> Floats:
        """Lobs: each arm's estimated total loss, unbiased over the rounds reported so far."""
        with self._lock:
            return np.array(self._policies[0, kernels.LOSSES])

    def __repr__(self) -> str:
        return (
            f"FTRL(arms={self._n_arms}, tuning={self._tuning!r}, refresh={self._refresh}): "
            f"round {self.round}, {self.outstanding} outstanding"
        )

    def _coming_rates(self) -> tuple[float, float]:
        """What the tuning gives for a solve in the coming round, not checked."""
        if self._n_arms == 1:
            return 1.0, 0.0  # as rates_of, without its detour
        counted = self._counted.item() - self._late.item()
        return self._tuning.rates(self._n_arms, self._round.item() + 1, counted, self._backlog.item() + counted)

    def _check(self, rates: tuple[float, float]) -> tuple[float, float]:
        """The rates for the coming round, or an ImproperRule."""
        before = float(self._clock["alpha"][0]), float(self._clock["beta"][0])
        return proper_rates(self._tuning, self.round + 1, before, rates)

    @overload
    def ask(self) -> Decision: ...
    @overload
    def ask(self, size: int) -> list[Decision]: ...
    def ask(self, size: int | None = None) -> Decision | list[Decision]:
        """Decide the next round, or the next `size` rounds from one distribution."""
        with self._lock:
            if size is not None:
                return self._ask_batch(whole_number("size", size, 0))
            if not self._uniforms:
                self._uniforms = self._generator.random(UNIFORMS)[::-1].tolist()
            decision = self._decide_once()
            if decision[0] == 0:
                self._make_room(1)
                decision = self._decide_once()
            self._uniforms.pop()  # an interrupt before this uses it again: its decision was never seen
            return tuple.__new__(Decision, decision)  # Decision(*decision), without its detour through Python

    def _decide_once(self) -> tuple[int, int, float]:
        """A decision with the next uniform; its round is 0 if the ledger is full."""
        uniform = self._uniforms[-1]
        if self._left.item() >= 1:
            return self._decide(self._clock, self._ledger, self._policies, self._cdf, self._patience, uniform)
        rates = self._coming_rates()
        if not (type(rates) is tuple and len(rates) == 2 and type(rates[0]) is float is type(rates[1])):
            rates = self._check(rates)
        alpha, beta = rates
        decision = self._solve_and_decide(
            self._clock, self._ledger, self._policies, self._cdf, self._patience, uniform, alpha, beta, self._refresh
        )
        if decision[0] < 0:  # the kernel has found them improper: say why
            self._check(rates)
        return decision

    def _ask_batch(self, size: int) -> list[Decision]:
        if size == 0:
            return []
        rates = self._check(self._coming_rates()) if self._left.item() < 1 else None
        self._make_room(size)
        first, uniforms = self.round + 1, self._take_uniforms(size)
        arrays = self._clock, self._ledger, self._policies, self._cdf
        if rates is None:
            arms, probabilities = kernels.decide_batch(*arrays, self._patience, uniforms)
        else:
            arms, probabilities = kernels.solve_and_decide_batch(
                *arrays, self._patience, uniforms, *rates, self._refresh
            )
        return list(map(Decision, range(first, first + size), arms.tolist(), probabilities.tolist()))

    def record(self, arm: int, probability: float) -> Decision:
        """Enter a round decided elsewhere: as `ask`, but arm and probability are given, and nothing is drawn.

        Its `tell` adds loss / probability with this probability, so the estimates stay unbiased. The certificates
        speak of decisions drawn from the learner's own distribution: of recorded ones only if they were.
        """
        arm, probability = as_arm(arm, self._n_arms), as_probability(probability)
        with self._lock:
            rates = self._check(self._coming_rates()) if self._left.item() < 1 else None
            self._make_room(1)
            record, solve_and_record = self._recorders
            arrays = self._clock, self._ledger, self._policies
            if rates is None:
                round = record(*arrays, self._patience, arm, probability)
            else:
                round = solve_and_record(*arrays, self._cdf, self._patience, arm, probability, *rates, self._refresh)
        return Decision(round, arm, probability)

    def outlook(self) -> Outlook:
        """For a copy of this learner that draws while others do too: what to draw from, and to keep for `overtake`."""
        with self._lock:
            policies, played = self._coming_policies()
            drawn = drawn_now(self._clock[0])
        x, lead = policies[played, kernels.X].copy(), policies[0, kernels.X] - policies[-1, kernels.X]
        return Outlook(x, np.divide(lead, x, out=np.zeros_like(x), where=x > 0), drawn)

    def overtake(self, drawn: Drawn) -> Lag:
        """Before decisions are entered that were drawn from an older state: solve anew, and say what they missed."""
        with self._lock:
            lag = lag_since(drawn, self._clock[0], self._tuning, self._n_arms)
            rates = self._check(self._coming_rates())
            kernels.solve(self._clock[0], self._policies, self._cdf, *rates)
            self._clock["left"] = 0
            self._clock["charge"] += lag.dip * math.log(self._n_arms)
            is_alarmed = int(self._clock["alarm"][0]) > drawn.alarm  # perhaps by this very solve
        return lag._replace(surcharge=float(is_alarmed))

    def record_batch(
        self,
        arms: ArrayLike,
        probabilities: ArrayLike,
        *,
        lag: Lag | None = None,
        bold_advantages: ArrayLike = (),
        is_more: bool = False,
    ) -> list[Decision]:
        """Enter rounds decided elsewhere from one distribution: as `ask(size)`, but nothing is drawn.

        lag:     they were drawn from an older state: what `overtake` said
        bold_advantages:   and those of their arms in that state's `outlook`
        is_more: they are more of those entered last, from the distribution in force
        """
        chosen, chances = as_arms(arms, self._n_arms), as_probabilities(probabilities)
        if chosen.size != chances.size:
            raise InvalidInput(f"each arm needs its probability, got {chosen.size} arms, {chances.size} probabilities")
        ahead = as_bold_advantages(bold_advantages, chosen.size)
        if chosen.size == 0:
            return []
        with self._lock:
            is_due = self._left.item() < 1 and lag is None and not is_more
            rates = self._check(self._coming_rates()) if is_due else None
            self._make_room(chosen.size)
            arrays = self._clock, self._ledger, self._policies
            if lag is not None:
                first = kernels.record_overtaken(*arrays, self._patience, chosen, chances, ahead, *tuple[Any, ...](lag))
            elif rates is None:
                first = kernels.record_batch(*arrays, self._patience, chosen, chances)
            else:
                first = kernels.solve_and_record_batch(
                    *arrays, self._cdf, self._patience, chosen, chances, *rates, self._refresh
                )
        return list(map(Decision, range(first, first + chosen.size), chosen.tolist(), chances.tolist()))

    @cached_property
    def _recorders(self) -> tuple[Callable[..., int], Callable[..., int]]:
        """The kernels behind `record`, loaded on first use: few learners need them."""
        arrays = self._clock, self._ledger, self._policies
        return (
            kernels.entry_point(kernels.record, *arrays, 1.0, 0, 0.5),
            kernels.entry_point(kernels.solve_and_record, *arrays, self._cdf, 1.0, 0, 0.5, 1.0, 1.0, 1),
        )

    def _take_uniforms(self, size: int) -> Floats:
        """The next uniforms of the stream that single decisions draw from."""
        kept = [self._uniforms.pop() for _ in range(min(size, len(self._uniforms)))]
        return np.append(kept, self._generator.random(size - len(kept)))

    def _make_room(self, size: int) -> None:
        """Drop the ledger's told rows if it is full; grow it by half if that leaves less than a quarter free."""
        capacity = self._ledger.size
        if capacity - int(self._clock["rows"][0]) >= size:
            return
        self._compact(self._clock, self._ledger)
        rows = int(self._clock["rows"][0])
        if capacity - rows < max(size, capacity // 4):
            self._ledger.resize(max(rows + size, capacity + capacity // 2), refcheck=False)  # in place: no second copy

    def tell(self, round: int, loss: float) -> None:
        """Report the loss in [0, 1] of an earlier round: in any order, at any time, once."""
        if not (type(loss) is float and 0.0 <= loss <= 1.0):
            loss = as_loss(loss)
        if type(round) is not int:
            round = as_round(round)
        with self._lock:
            asked: int = self._round.item()
            if not 1 <= round <= asked:
                raise UnknownRound(round, asked)
            if not self._report(self._clock, self._ledger, self._policies, self._discard, round, loss):
                raise DuplicateReport(round)

    def give_up(self, round: int) -> None:
        """Stop waiting for a round whose feedback will not come: it costs 1 in the certificates, and no memory.

        The tuning no longer counts it. Should its feedback come after all, `amend(decision, None, loss)` takes it.
        """
        round = as_round(round)
        with self._lock:
            asked: int = self._round.item()
            if not 1 <= round <= asked:
                raise UnknownRound(round, asked)
            if not kernels.give_up(self._clock, self._ledger, round):
                raise DuplicateReport(round)

    def amend(self, decision: Decision, old: float | None, new: float, *, is_checked: bool = True) -> None:
        """Correct the loss of a round that has been reported: the estimates become what `new` would have made them.

        Lobs on the decision's arm grows by (new - old) / probability. Bring the decision and the old loss from your own
        records: a learner forgets a round once it is reported. The certificate counts the round as reported at first.
        old is None for a round that was closed: its loss counts from now on, and in the certificate still 1.
        What contradicts the sums is refused. `is_checked=False` is for records that cannot be wrong: the round is not
        looked at, and rounding errors, which after many amendments may contradict the sums, are cut off.
        """
        change = as_loss(new) - (0.0 if old is None else as_loss(old))
        round, arm, probability = as_decision(decision, self._n_arms)
        if self._discard:
            raise InvalidInput(
                f"round {round} cannot be amended: with discard=True its report may have been thrown away"
            )
        with self._lock:
            asked: int = self._round.item()
            if not 1 <= round <= asked:
                raise UnknownRound(round, asked)
            arrays = self._clock, self._ledger, self._policies
            problem = kernels.amend(*arrays, round, arm, probability, change, int(old is None), is_checked)
        if problem == kernels.WAITS:
            raise InvalidInput(f"round {round} cannot be amended: it still waits for its report; use tell")
        if problem == kernels.WRONG_ARM:
            raise InvalidInput(f"round {round} cannot be amended: it did not draw arm {arm}")
        if problem == kernels.IMPOSSIBLE:
            raise InvalidInput(
                f"round {round} cannot be amended from {old!r} to {new!r}: the losses reported so far do not allow it"
            )

    def distribution(self) -> Floats:
        """x of the coming round: the probability of each arm. Changes nothing."""
        policies, played = self._coming_policies()
        return np.array(policies[played, kernels.X])

    def _coming_policies(self) -> tuple[Floats, int]:
        """Those of the coming round, and which of them decides."""
        with self._lock:
            # through its bytes: NumPy copies a structured array field by field, which takes longer than the solve
            clock = np.frombuffer(bytearray(self._clock.tobytes()), kernels.CLOCK)
            policies = self._policies.copy()
            if self._left.item() < 1:
                rates = self._check(self._coming_rates())
                kernels.solve(clock[0], policies, np.empty_like(self._cdf), *rates)
            return policies, int(clock["played"][0])

    def certificate(self) -> float:
        """The number that the expected regret so far provably does not exceed, in O(1) (docs/theory/certificate.md).

        min{ n, 2 alpha_n (sqrt(k) - 1) + beta_n ln k + sum_s min{ 1, k / (alpha_s sqrt(k) + 2 beta_s) + H_s } }
        H_s = sum of 1 / (beta_t + alpha_t / 2) over the rounds t > s decided without the feedback of s

        With a shadow beta is the careful one's, sqrt(k) / alpha_s stands for the stability, and W + 1 is added
        (docs/theory/shadow.md).
        """
        with self._lock:
            clock = self._clock[0].copy()
        return min(float(clock["round"]), self._uncapped_certificate(clock)) if self._n_arms > 1 else 0.0

    def _uncapped_certificate(self, clock: Any) -> float:
        charge = clock["charge"] + clock["charged"] * clock["drift"] - clock["base"]
        certificate = kernels.penalty(self._n_arms, clock["alpha"], clock["beta"]) + float(charge)
        return certificate + float(clock["peak_uncharged"]) + 1 if clock["switch_threshold"] > 0 else certificate

    def measured_certificate(self) -> float:
        """A number whose mean over runs is at least the mean regret after n rounds, for any n fixed in advance.

        sum of the reported losses + Phi(Lobs) - 2 alpha  +  1 for every round not reported, or thrown away
        Phi(L) = max over the simplex of -<x, L> + 2 alpha sum_i sqrt(x_i),  alpha = 2 sqrt(n)

        It is this run's own evidence (docs/theory/shadow.md): a single run's may be below its regret.
        """
        with self._lock:
            clock, policy = self._clock[0].copy(), self._policies[0].copy()
        if self._n_arms == 1 or clock["round"] == 0:
            return 0.0
        # any alpha would do: a larger one leaves chance more room, a smaller one is tighter
        alpha = 2 * math.sqrt(clock["round"])
        kernels.argmin(policy, alpha, 0.0, 0)
        lead = clock["suffered"] + kernels.potential(policy, alpha, 0.0) - 2 * alpha
        return float(lead + clock["round"] - clock["reported"])

    def snapshot(self) -> dict[str, Any]:
        """The whole state as plain data that survives JSON; the generator is part of it."""
        with self._lock:
            self._compact(self._clock, self._ledger)
            arrays = self._clock, self._policies, self._ledger
            settings = self._n_arms, self._tuning, self._refresh
            return snapshots.encode(State(*settings, *arrays, self._generator, self._uniforms))

    @classmethod
    def restore(cls, snapshot: Any, tuning: Tuning | None = None) -> Self:
        """The learner of a snapshot, to the last bit; `tuning` is needed only if it is your own class."""
        state = snapshots.decode(snapshot, tuning)
        learner = cls(state.n_arms, state.tuning, refresh=state.refresh)
        learner._attach(state.clock, state.policies, state.ledger)
        learner._generator, learner._uniforms = state.generator, state.uniforms
        return learner

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self).restore, (self.snapshot(), self._tuning)
