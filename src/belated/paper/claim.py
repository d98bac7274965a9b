"""A claim, the function that tries it, and its findings, as plain data."""

import math
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import NamedTuple, TypeVar, final

import numpy as np

from belated import lab
from belated.arrays import Floats, Integers
from belated.lab.algorithms import Algorithm, Setting
from belated.lab.games.compiled import Compiled
from belated.lab.intervals import half_width
from belated.paper.saboteurs import Saboteur, VisibleGame
from belated.reports import Figure, Table
from belated.tunings import Tuning

T = TypeVar("T")
OBLIVIOUS = "Losses in [0, 1] and delays are fixed in advance, and the learner draws its own arms."
SEEDS_APART = 1000
Samples = Sequence[float] | Floats  # one for each seed
STANDARD_ERRORS = 5.0  # an equality of means fails beyond this. By chance alone, one report in a thousand fails


class ClaimKind(StrEnum):
    """The kind of a claim. The command fails only if a theorem fails."""

    THEOREM = "theorem"
    MEASUREMENT = "measurement"
    EXPERIMENT = "experiment"  # no verdict


class Verdict(StrEnum):
    """The verdict on a claim, from good to bad."""

    SHOWN = "shown"  # an experiment, with nothing to judge
    HOLDS = "holds"
    UNDECIDED = "undecided"  # the limit is inside the interval, so more seeds are needed
    FAILS = "fails"


SEVERITY = tuple(Verdict)


class Effort(NamedTuple):
    """How hard to try, and who plays. Quick takes about a minute, full gives tight intervals."""

    is_full: bool = False
    seed: int = 0
    workers: int = 2
    saboteur: Saboteur | None = None  # plays in the place of the learner
    tell_progress: Callable[[float], None] = lambda _: None  # the part of the present claim that is done

    def pick(self, quick: T, full: T) -> T:
        """`full` in full mode, otherwise `quick`."""
        return full if self.is_full else quick

    def seeds(self, quick: int, full: int) -> range:
        """A range of seeds. Another effort.seed gives entirely different ones."""
        return range(SEEDS_APART * self.seed, SEEDS_APART * self.seed + self.pick(quick, full))

    def watch(self, work: Iterable[T]) -> Iterator[T]:
        """The same work. The progress bar moves with each piece."""
        pieces = list(work)
        for number, piece in enumerate(pieces):
            self.tell_progress(number / len(pieces))
            yield piece

    def play(
        self, player: Tuning | Algorithm, problem: lab.Problem, seeds: range, checkpoints: Sequence[int] | None = None
    ) -> lab.Curves:
        """Play what a claim is about, or the saboteur in its place. Only the end is kept without checkpoints."""
        cast = player if self.saboteur is None else self.saboteur.in_place_of(player)
        return lab.play(cast, problem, seeds, checkpoints=checkpoints or [problem.n_rounds], workers=self.workers)

    def game(self, tuning: Tuning, problem: lab.Problem, delays: Integers, seed: int) -> VisibleGame:
        """A game of a tuning, or of the saboteur in its place, whose estimates and probabilities can be seen."""
        if self.saboteur is None:
            return Compiled(tuning, problem, delays, seed)
        return self.saboteur.game(tuning, Setting(problem, seed, delays))


class Check(NamedTuple):
    """A statement with its verdict."""

    what: str
    measured: str
    verdict: Verdict


@final
@dataclass(frozen=True)
class Finding:
    """The results of trying a claim."""

    headline: str
    checks: Sequence[Check] = ()
    figures: Sequence[Figure] = ()
    tables: Sequence[Table] = ()
    remarks: Sequence[str] = ()


@final
@dataclass(frozen=True)
class Claim:
    """A claim of the paper in words, and the function that tries it."""

    name: str  # as on the command line
    title: str
    kind: ClaimKind
    statement: Sequence[str]
    investigate: Callable[[Effort], Finding]
    assumption: str  # what the numbers rest on, printed beside them
    cost: float = 1.0  # seconds in quick mode, roughly, for the progress bar
    is_beyond: bool = False  # not in the paper but Belated's own


def digits(value: float) -> str:
    """A number with as many digits as are meaningful."""
    return f"{value:,.0f}" if abs(value) >= 100 else f"{value:.3g}"


def exactly(what: str, is_true: bool, measured: str) -> Check:
    """Check a statement that does not depend on chance."""
    return Check(what, measured, Verdict.HOLDS if is_true else Verdict.FAILS)


def judge_mean(samples: Samples, limit: float) -> Verdict:
    """Whether the mean is at most the limit. Undecided if the limit is inside the 95% interval."""
    mean, half = float(np.mean(samples)), float(half_width(samples))
    if not math.isfinite(mean):
        return Verdict.FAILS
    if mean + half <= limit:
        return Verdict.HOLDS
    return Verdict.FAILS if mean - half > limit else Verdict.UNDECIDED


def at_most(what: str, samples: Samples, limit: float) -> Check:
    """Check that the mean of the samples is at most the limit."""
    text = f"{digits(float(np.mean(samples)))} ± {digits(float(half_width(samples)))}, limit {digits(limit)}"
    return Check(what, text, judge_mean(samples, limit))


def near(what: str, samples: Samples, value: float) -> Check:
    """Check that the mean of the samples is the value, within STANDARD_ERRORS."""
    values = np.asarray(samples, np.float64)
    if not np.isfinite(values).all():
        return Check(what, "not a number", Verdict.FAILS)
    error = float(values.std(ddof=1) / np.sqrt(values.size))
    distance = abs(float(values.mean()) - value) / error if error > 0 else float(abs(values.mean() - value) > 1e-9) * 99
    text = f"{digits(float(values.mean()))} against {digits(value)}, {distance:.1f} standard errors apart"
    return Check(what, text, Verdict.HOLDS if distance <= STANDARD_ERRORS else Verdict.FAILS)
