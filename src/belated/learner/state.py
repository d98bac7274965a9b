"""All that a learner keeps between rounds. Functions in rounds.py change it, each with one kernel call."""

import math
from collections.abc import Callable
from functools import cached_property
from threading import RLock
from typing import Any, final

import numpy as np

from belated import kernels
from belated.arrays import Floats
from belated.learner.arms import Arms
from belated.learner.outcomes import OutcomeRange
from belated.tunings import Shadow, Tuning, proper_patience

FIRST_ROWS = 64  # of the ledger


def blank(n_arms: int, tuning: Tuning) -> tuple[Any, Floats]:
    """The clock and the policies before the first round. With a shadow there are two policies, else one."""
    clock, policies = np.zeros(1, kernels.CLOCK), np.zeros((1, kernels.ROWS, n_arms))
    if isinstance(tuning, Shadow) and n_arms > 1:
        clock["shadow"]["switch_threshold"] = tuning.switch_threshold
        policies = np.zeros((2, kernels.ROWS, n_arms))
    policies[:, kernels.V] = 0.5 * math.log(n_arms)
    return clock, policies


def has_shadow(policies: Floats) -> bool:
    """Whether these are a bold and a careful policy."""
    return len(policies) > 1


def blank_ledger() -> Any:
    """A ledger without decisions."""
    return np.zeros(FIRST_ROWS, kernels.LEDGER)


@final
class State:
    """Settings, arrays and the generator, with the compiled functions that work on these arrays.

    Everything that changes lives in the arrays, and a kernel changes them in one step. So an exception between two
    lines of Python (a KeyboardInterrupt, say) cannot leave half a decision behind.
    """

    def __init__(
        self,
        arms: Arms,
        tuning: Tuning,
        refresh: int,
        outcomes: OutcomeRange | None,
        clock: Any,
        policies: Floats,
        ledger: Any,
        generator: np.random.Generator,
        uniforms: list[float],
    ) -> None:
        self.arms, self.n_arms, self.names = arms, arms.n, arms.names
        self.tuning, self.refresh, self.outcomes = tuning, refresh, outcomes
        self.patience, self.discard = proper_patience(tuning, arms.n), bool(tuning.discard)
        self.clock, self.policies, self.ledger = clock, policies, ledger
        self.generator = generator
        self.uniforms = uniforms  # drawn ahead, in reverse order of use
        self.lock = RLock()
        self.cdf = np.empty(-(-arms.n // kernels.BLOCK))
        kernels.accumulate(policies[self.played, kernels.X], self.cdf)
        views = (clock[name] for name in ("round", "left", "backlog", "counted", "late_counted"))  # read with item()
        self.round, self.left, self.backlog, self.counted, self.late = views
        example = clock, ledger, policies, self.cdf, 1.0, 0.5
        self.decide = kernels.entry_point(kernels.decide, *example)
        self.solve_and_decide = kernels.entry_point(kernels.solve_and_decide, *example, 1.0, 1.0, 1)
        self.compact = kernels.entry_point(kernels.compact, clock, ledger)
        self.report = kernels.entry_point(kernels.report, clock, ledger, policies, self.discard, 1, 1.0)

    @property
    def has_shadow(self) -> bool:
        """Whether it has a careful policy beside a bold one."""
        return has_shadow(self.policies)

    @property
    def played(self) -> int:
        """The policy that decides."""
        return int(self.clock["shadow"]["played"][0])

    @cached_property
    def recorders(self) -> tuple[Callable[..., int], Callable[..., int]]:
        """The kernels for decisions made elsewhere. They are loaded on first use, because few learners need them."""
        arrays = self.clock, self.ledger, self.policies
        return (
            kernels.entry_point(kernels.record, *arrays, 1.0, 0, 0.5),
            kernels.entry_point(kernels.solve_and_record, *arrays, self.cdf, 1.0, 0, 0.5, 1.0, 1.0, 1),
        )
