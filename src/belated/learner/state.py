"""All that a learner keeps between rounds. Functions in rounds.py change it, each with one kernel call."""

import math
from collections.abc import Callable
from functools import cached_property
from threading import RLock
from typing import Any, NamedTuple, final

import numpy as np

from belated import kernels
from belated.arrays import Floats, Integers
from belated.learner.arms import Arms
from belated.learner.mixing import NO_MIX, Mix, drawn_from, share_of, write_mix
from belated.learner.outcomes import OutcomeRange
from belated.proper import proper_patience
from belated.tunings import Means, RootTuning, Shadow, Tuning

FIRST_ROWS = 64  # of the ledger
# where `State.counters` has these fields of the clock. Every field up to the last of them is one word
ROUND, LEFT, COUNTED, BACKLOG, LATE = map(
    (kernels.CLOCK.names or ()).index, ("round", "left", "counted", "backlog", "late_counted")
)
NOT_PROVISIONAL = -1.0  # an open decision does not count


def blank(n_arms: int, tuning: Tuning, provisional: float = NOT_PROVISIONAL) -> tuple[Any, Floats]:
    """The clock and the policies before the first round. A shadow has two policies, means have three, others one."""
    clock, size = np.zeros(1, kernels.CLOCK), 1
    if isinstance(tuning, Means | Shadow) and n_arms > 1:
        clock["shadow"]["switch_threshold"] = tuning.switch_threshold
        size = 2
    policies = np.zeros((size, kernels.ROWS, n_arms))
    policies[:, kernels.V] = 0.5 * math.log(n_arms)
    if isinstance(tuning, Means) and n_arms > 1:
        means = clock["means"]
        means["boldness"], means["provisional"] = tuning.boldness, provisional
        means["leader"] = kernels.ON_MEANS
        means["scale"] = proper_patience(tuning, n_arms)  # patience sqrt(D_t) = beta_t
        policies = np.concatenate([policies, np.zeros((1, kernels.ROWS, n_arms))])
    return clock, policies


def has_shadow(policies: Floats) -> bool:
    """Whether these are a bold and a careful policy."""
    return len(policies) > 1


def has_means(policies: Floats) -> bool:
    """Whether there is a policy on means beside a bold and a careful one."""
    return len(policies) > kernels.ON_MEANS


def blank_ledger() -> Any:
    """A ledger without decisions."""
    return np.zeros(FIRST_ROWS, kernels.LEDGER)


def blank_bets(n_arms: int) -> Floats:
    """The bets before the first report (kernels/bets.py)."""
    bets = np.zeros((n_arms + 1, 2, kernels.GRID.size))
    bets[:, 0] = 1.0
    return bets


class Stretch(NamedTuple):
    """What a learner keeps of the time before its arms changed last."""

    offset: int  # decisions before
    rounds: Integers  # those of them that waited when the arms changed, oldest first
    arms: Integers  # the index of the arm of each, GONE if it was retired, or TAKEN if it does not wait any more
    kept_since: Integers  # by arm of this stretch: its mean knows nothing of decisions up to this round
    proven: float  # the certificates of the earlier stretches
    measured: float
    proven_any: float  # the one for any delays
    bounds: tuple[
        tuple[float, ...], ...
    ]  # of each earlier stretch: ln k, and for each g the lowest logarithm of the bets
    head_start: float  # the largest estimate that an arm of this stretch began with, on plain estimates

    @property
    def waiting(self) -> int:
        """How many of the earlier decisions still wait."""
        return int(np.count_nonzero(self.arms != kernels.TAKEN))

    def find(self, round: int) -> int:
        """The row of an earlier decision that still waits, or -1."""
        row = int(self.rounds.searchsorted(round))
        is_there = row < self.rounds.size and self.rounds[row] == round
        return row if is_there and self.arms[row] != kernels.TAKEN else -1


def first_stretch(n_arms: int) -> Stretch:
    """The stretch of a learner whose arms have never changed."""
    none, kept_since = np.zeros(0, np.int64), np.zeros(n_arms, np.int64)
    return Stretch(0, none, none, kept_since, 0.0, 0.0, 0.0, (), 0.0)


@final
class State:
    """Settings, arrays and the generator, with the compiled functions that work on these arrays.

    Everything that changes lives in the arrays, and a kernel changes them in one step. So an exception between two
    lines of Python (a KeyboardInterrupt, say) cannot leave half a decision behind.
    """

    arms: Arms
    n_arms: int
    names: tuple[Any, ...]
    patience: float
    clock: Any
    policies: Floats
    ledger: Any
    bets: Floats
    cdf: Floats
    stretch: Stretch
    offset: int
    counters: "memoryview[int]"
    ask_next: Callable[[float], tuple[int, int, float]] | None  # None if the tuning's rates are computed in Python
    decide: Callable[[float], tuple[int, int, float]]
    solve_and_decide: Callable[[float, float, float, int], tuple[int, int, float]]
    compact: Callable[[], None]
    report: Callable[[int, float], bool]

    def __init__(
        self,
        arms: Arms,
        tuning: Tuning,
        refresh: int,
        outcomes: OutcomeRange | None,
        provisional: float,
        clock: Any,
        policies: Floats,
        ledger: Any,
        bets: Floats,
        generator: np.random.Generator,
        uniforms: list[float],
        stretch: Stretch,
        mix: Mix = NO_MIX,
    ) -> None:
        self.tuning, self.refresh, self.outcomes = tuning, refresh, outcomes
        self.provisional = provisional  # the loss that an open decision counts with, or NOT_PROVISIONAL
        self.mix, self.discard = mix, bool(tuning.discard)
        self.generator = generator
        self.uniforms = uniforms  # drawn ahead, in reverse order of use
        self.lock = RLock()
        self.begin(arms, clock, policies, ledger, bets, stretch)

    def begin(self, arms: Arms, clock: Any, policies: Floats, ledger: Any, bets: Floats, stretch: Stretch) -> None:
        """Take these arrays for a stretch of rounds with the same arms, in one step that nothing can interrupt."""
        write_mix(clock[0], self.mix, arms.n)
        cdf = np.empty(-(-arms.n // kernels.BLOCK))
        kernels.accumulate(policies[int(clock["shadow"]["played"][0]), kernels.X], cdf)
        new: dict[str, Any] = {
            "arms": arms,
            "n_arms": arms.n,
            "names": arms.names,
            "patience": proper_patience(self.tuning, arms.n),
            "clock": clock,
            "policies": policies,
            "ledger": ledger,
            "bets": bets,
            "cdf": cdf,
            "stretch": stretch,
            "offset": stretch.offset,
            "counters": memoryview(clock.view(np.int64)),  # an item of it is read twice as fast as one of an array
        }
        vars(self).update(new, **self._kernels(new))

    def _kernels(self, new: dict[str, Any]) -> dict[str, Any]:
        """The kernels that work on these arrays. Two decide by a rule in Python. One has the rule of a `RootTuning`."""
        clock, ledger, policies, bets, cdf = (new[name] for name in ("clock", "ledger", "policies", "bets", "cdf"))
        drawing, bound = (clock, ledger, policies, cdf, new["patience"]), self._bound
        found = {
            "compact": bound(kernels.compact, (clock, ledger)),
            "report": bound(kernels.report, (clock, ledger, policies, bets, self.discard), 1, 1.0),
        }
        if isinstance(self.tuning, RootTuning) and new["n_arms"] > 1:
            fixed = *drawing, self.refresh, self.tuning.scale, math.log(new["n_arms"])
            return {**found, "ask_next": bound(kernels.ask_next, fixed, 0.5)}
        found["decide"] = bound(kernels.decide, drawing, 0.5)
        found["solve_and_decide"] = bound(kernels.solve_and_decide, drawing, 0.5, 1.0, 1.0, 1)
        return {**found, "ask_next": None}

    def _bound(self, kernel: Callable[..., Any], fixed: tuple[Any, ...], *examples: Any) -> Callable[..., Any]:
        return kernels.bound(kernel, fixed, *examples, switch=self._switch)

    def _switch(self) -> None:
        """Take the kernels that have been compiled by now. Callers hold the lock."""
        vars(self).pop("recorders", None)
        vars(self).update(self._kernels(vars(self)))

    @property
    def has_shadow(self) -> bool:
        """Whether it has a careful policy beside a bold one."""
        return has_shadow(self.policies)

    @property
    def has_means(self) -> bool:
        """Whether it has a policy on means."""
        return has_means(self.policies)

    @property
    def played(self) -> int:
        """The policy that decides."""
        return int(self.clock["shadow"]["played"][0])

    @property
    def drawn(self) -> Floats:
        """The probability of each arm in the distribution in force."""
        return drawn_from(self.clock[0], self.policies[self.played, kernels.X])

    def set_mix(self, mix: Mix) -> None:
        """Mix differently from the next decision on."""
        share = share_of(mix, self.n_arms)
        if share > self.clock["mixed"][0] and self.clock["charged"][0]:
            kernels.raise_charges(self.clock, self.ledger, self.policies, share)
        self.mix = mix
        write_mix(self.clock[0], mix, self.n_arms)

    @cached_property
    def recorders(self) -> tuple[Callable[..., int], Callable[..., int]]:
        """The kernels for decisions made elsewhere. They are loaded on first use, because few learners need them."""
        arrays = self.clock, self.ledger, self.policies
        return (
            self._bound(kernels.record, (), *arrays, 1.0, 0, 0.5),
            self._bound(kernels.solve_and_record, (), *arrays, self.cdf, 1.0, 0, 0.5, 1.0, 1.0, 1),
        )
