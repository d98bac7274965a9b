"""A claim: what it says, how to find out, and what was found. Plain data."""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import NamedTuple, TypeVar, final

import numpy as np

from belated.arrays import Floats
from belated.lab.intervals import half_width
from belated.reports import Figure, Table

T = TypeVar("T")
SEEDS_APART = 1000
Samples = Sequence[float] | Floats  # one for each seed
STANDARD_ERRORS = 5.0  # an equality of means fails beyond so many: chance alone does it in one report of a thousand


class ClaimKind(StrEnum):
    """What a claim is: only a theorem that fails makes the command fail."""

    THEOREM = "theorem"
    MEASUREMENT = "measurement"
    EXPERIMENT = "experiment"  # no verdict


class Verdict(StrEnum):
    """What became of a claim, from good to bad."""

    SHOWN = "shown"  # an experiment: there is nothing to judge
    HOLDS = "holds"
    UNDECIDED = "undecided"  # the interval has the limit in it: more seeds would tell
    FAILS = "fails"


SEVERITY = tuple(Verdict)


class Effort(NamedTuple):
    """How hard to try: quick is for two minutes, full for tight intervals."""

    is_full: bool = False
    seed: int = 0
    workers: int = 2

    def pick(self, quick: T, full: T) -> T:
        """One of the two."""
        return full if self.is_full else quick

    def seeds(self, quick: int, full: int) -> range:
        """So many seeds; those of another effort.seed are all different."""
        return range(SEEDS_APART * self.seed, SEEDS_APART * self.seed + self.pick(quick, full))


class Check(NamedTuple):
    """One statement that was judged."""

    what: str
    measured: str
    verdict: Verdict


@final
@dataclass(frozen=True)
class Finding:
    """What a claim's run has brought to light."""

    headline: str
    checks: Sequence[Check] = ()
    figures: Sequence[Figure] = ()
    tables: Sequence[Table] = ()
    remarks: Sequence[str] = ()


@final
@dataclass(frozen=True)
class Claim:
    """A claim of the paper, in words, and the function that tries it."""

    name: str  # as on the command line
    title: str
    kind: ClaimKind
    statement: Sequence[str]
    investigate: Callable[[Effort], Finding]
    cost: float = 1.0  # seconds in quick mode, about: for the progress bar
    is_beyond: bool = False  # not in the paper: Belated's own


def digits(value: float) -> str:
    """As many as mean something."""
    return f"{value:,.0f}" if abs(value) >= 100 else f"{value:.3g}"


def exactly(what: str, is_true: bool, measured: str) -> Check:
    """A statement without chance in it."""
    return Check(what, measured, Verdict.HOLDS if is_true else Verdict.FAILS)


def judge_mean(samples: Samples, limit: float) -> Verdict:
    """Whether the mean is at most the limit: undecided if its 95% interval has the limit inside."""
    mean, half = float(np.mean(samples)), float(half_width(samples))
    if not math.isfinite(mean):
        return Verdict.FAILS
    if mean + half <= limit:
        return Verdict.HOLDS
    return Verdict.FAILS if mean - half > limit else Verdict.UNDECIDED


def at_most(what: str, samples: Samples, limit: float) -> Check:
    """The mean of the samples is at most the limit."""
    text = f"{digits(float(np.mean(samples)))} ± {digits(float(half_width(samples)))}, limit {digits(limit)}"
    return Check(what, text, judge_mean(samples, limit))


def near(what: str, samples: Samples, value: float) -> Check:
    """The mean of the samples is the value, within STANDARD_ERRORS."""
    values = np.asarray(samples, np.float64)
    if not np.isfinite(values).all():
        return Check(what, "not a number", Verdict.FAILS)
    error = float(values.std(ddof=1) / np.sqrt(values.size))
    distance = abs(float(values.mean()) - value) / error if error > 0 else float(abs(values.mean() - value) > 1e-9) * 99
    text = f"{digits(float(values.mean()))} against {digits(value)}: {distance:.1f} standard errors"
    return Check(what, text, Verdict.HOLDS if distance <= STANDARD_ERRORS else Verdict.FAILS)
