"""The problems for the theorems, and the ratio of measured regret to a bound on each.

A bound can only fail where more than the bound can be lost. So every problem has a witness, a bad learner whose regret
there is known. A problem is *informative* for a bound if the witness breaks the bound. Only informative problems are
judged.
"""

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import cache
from typing import NamedTuple, final

import numpy as np

from belated import lab
from belated.arrays import Floats, Integers
from belated.lab.algorithms import setting_of
from belated.lab.intervals import half_width
from belated.paper.claim import SEVERITY, Check, Effort, Verdict, judge_mean
from belated.paper.saboteurs import totals_of
from belated.reports import Figure, Table, columns_of, strip
from belated.tunings import Tsallis, Tuning

Bound = Callable[[int, Integers], float]
Witness = Callable[[lab.Problem, range], Floats]  # its regret for every seed

DELAYS: dict[str, lab.Delays] = {
    "none": lab.NoDelay(),
    "fixed 10": lab.Fixed(10),
    "fixed 50": lab.Fixed(50),
    "geometric 20": lab.Geometric(20),
    "Pareto 0.5": lab.Pareto(0.5),
    "1% never": lab.Lost(0.01, 10),
    "bursts": lab.Bursts(40),
    "unbalanced": lab.Unbalanced(),
}
LOSSES: dict[str, lab.Losses] = {  # with large gaps, because a bound of half the rounds says nothing about a small one
    "coin flips, gap 0.9": lab.Bernoulli(gap=0.9, mean=0.95),
    "coin flips, gap 0.5": lab.Bernoulli(gap=0.5),
    "constrained adversary": lab.Constrained(gap=0.8),
}

HEAVY: dict[str, lab.Losses] = {  # the regret differs much from seed to seed, so these need more seeds
    "shifting best arm": lab.Shifting(gap=0.5, phases=2),
    "early comeback": lab.Comeback(after=0.2),
}


@final
@dataclass(frozen=True)
class LateWave(lab.Losses):
    """Nothing is lost at first. Then two halves of the arms swap losses 0 and 1 every 2 d rounds, first after d.

    So the totals of both halves swing around the same value. A learner that ignores delays follows half a period late,
    for about n = d^2 rounds. The quiet start keeps it from giving up an arm while its rate is still high.
    """

    after: float = 0.15

    def blocks(self, n_arms: int, n_rounds: int, delay: int, generator: np.random.Generator) -> Iterator[Floats]:
        first_half = np.arange(n_arms) < n_arms // 2
        for start, stop in lab.spans(n_rounds, n_arms):
            since = np.arange(start, stop) - math.floor(self.after * n_rounds)
            is_swapped = (since + delay) // (2 * delay) % 2 == 1
            yield ((first_half == is_swapped[:, None]) & (since >= 0)[:, None]).astype(np.float64)


class Case(NamedTuple):
    """A problem with its delays and losses in words, the seeds, and the regret of a bad learner on it."""

    delays: str
    losses: str
    problem: lab.Problem
    seeds: range
    witness: Witness


@cache
def worst_arm(problem: lab.Problem, seeds: range) -> Floats:
    """What always playing the worst arm loses."""
    totals = [totals_of(setting_of(problem, seed)) for seed in seeds]
    return np.array([of_seed.max() - of_seed.min() for of_seed in totals])


@cache
def ignoring_delays(problem: lab.Problem, seeds: range) -> Floats:
    """What Tsallis-INF loses, which ignores delays."""
    return np.asarray(lab.play(Tsallis(), problem, seeds, checkpoints=[problem.n_rounds]).expected[:, -1])


# These ruin a learner that divides late reports by the wrong probability. The later the comeback, the rarer and heavier
# the draws that decide the game. The careful simple tuning is hurt only by a late one, the advanced by an early one.
LATE_COMEBACK = lab.Problem(lab.Comeback(0.2), lab.Held(0.02, 0.2), 10, 80_000)
EARLY_COMEBACK = lab.Problem(lab.Comeback(0.05), lab.Held(0.02, 0.05), 10, 40_000)
# This ruins a learner that ignores delays.
LONG_WAVE = lab.Problem(LateWave(), lab.Fixed(1_000), 2, 500_000)


def problems(effort: Effort) -> Iterator[Case]:
    """The problems of the whole grid of k, n, delays and losses."""
    short, long = effort.pick((4_000, 16_000), (16_000, 100_000))
    for n_arms, n_rounds in ((2, short), (2, long), (10, short), (10, long), (50, long)):
        for delay_name, delays in DELAYS.items():
            for loss_name, losses in LOSSES.items():
                problem = lab.Problem(losses, delays, n_arms, n_rounds)
                yield Case(delay_name, loss_name, problem, effort.seeds(4, 32), worst_arm)
            for loss_name, losses in HEAVY.items():
                if effort.is_full or n_rounds == short:  # long games with so many seeds take too long in quick mode
                    problem = lab.Problem(losses, delays, n_arms, n_rounds)
                    yield Case(delay_name, loss_name, problem, effort.seeds(96, 256), worst_arm)


def comeback_case(problem: lab.Problem, effort: Effort) -> Case:
    """A comeback with more seeds than elsewhere, because rare draws of the arm that comes back decide its games."""
    return Case("held back", "comeback", problem, effort.seeds(24, 128), worst_arm)


def wave_case(effort: Effort) -> Case:
    """The long wave in resonance with its delay."""
    return Case("fixed 1,000", "long wave", LONG_WAVE, effort.seeds(4, 16), ignoring_delays)


class Cell(NamedTuple):
    """A tuning on a problem, with regret / bound of every seed."""

    delays: str
    losses: str
    n_arms: int
    n_rounds: int
    regret: float
    bound: float
    witness: float  # what the bad learner loses
    ratios: Floats

    @property
    def is_informative(self) -> bool:
        """Whether the bad learner breaks the bound."""
        return self.bound < self.witness

    @property
    def ratio(self) -> float:
        """The mean of the ratios."""
        return float(self.ratios.mean())

    @property
    def where(self) -> str:
        """The problem in words."""
        return f"{self.losses}, delays {self.delays}, k = {self.n_arms}, n = {self.n_rounds:,}"


class ProblemRegrets(NamedTuple):
    """A case, the regret of every seed on it, and that of the bad learner."""

    case: Case
    regrets: Floats
    witness: Floats


def play(tuning: Tuning, case: Case, effort: Effort) -> ProblemRegrets:
    """Play a problem to its end."""
    regrets = effort.play(tuning, case.problem, case.seeds).expected[:, -1]
    return ProblemRegrets(case, regrets, case.witness(case.problem, case.seeds))


def play_all(tuning: Tuning, effort: Effort, comeback: lab.Problem) -> list[ProblemRegrets]:
    """Play the tuning on the whole grid, on one of the comebacks and on the long wave."""
    cases = (*problems(effort), comeback_case(comeback, effort), wave_case(effort))
    return [play(tuning, case, effort) for case in effort.watch(cases)]


def against(games: Sequence[ProblemRegrets], bound: Bound) -> list[Cell]:
    """The regret of each seed divided by the bound for its delays."""
    measured = []
    for (name, losses, problem, seeds, _), regrets, witness in games:
        k, n = problem.n_arms, problem.n_rounds
        drawn = [problem.draw_delays(seed) for seed in seeds]
        by_delays = {delays.tobytes(): delays for delays in drawn}  # most rules draw the same for every seed
        bounds = {key: bound(k, delays) for key, delays in by_delays.items()}
        limits = np.array([bounds[delays.tobytes()] for delays in drawn])
        regret, limit, lost = (float(values.mean()) for values in (regrets, limits, witness))
        measured.append(Cell(name, losses, k, n, regret, limit, lost, regrets / limits))
    return measured


def informative(measured: Sequence[Cell]) -> list[Cell]:
    """The cells whose bound a bad learner breaks."""
    return [cell for cell in measured if cell.is_informative]


def worst(measured: Sequence[Cell]) -> Cell:
    """The informative cell with the largest ratio to its bound, or any cell if none is informative."""
    return max(informative(measured) or measured, key=lambda cell: cell.ratio)


def judge(what: str, measured: Sequence[Cell]) -> Check:
    """Check that the mean ratio of every informative cell is at most 1, and describe the worst one."""
    counted = informative(measured)
    if not counted:
        return Check(what, f"0 of {len(measured)} problems are informative", Verdict.UNDECIDED)
    shown = max(counted, key=lambda cell: (SEVERITY.index(judge_mean(cell.ratios, 1.0)), cell.ratio))
    half = float(half_width(shown.ratios))
    nearest = f"worst {shown.ratio:.2f} ± {half:.2f} of the bound ({shown.where})"
    text = f"{len(counted)} of {len(measured)} problems are informative, {nearest}"
    return Check(what, text, judge_mean(shown.ratios, 1.0))


def figure(name: str, title: str, measured: Sequence[Cell]) -> Figure:
    """A figure with a dot for each informative problem."""
    names = ("delays", "losses", "arms", "rounds", "regret", "bound", "bad learner", "regret / bound", "half width")
    rows = [
        (*cell[:2], f"k = {cell.n_arms}", *cell[3:7], cell.ratio, float(half_width(cell.ratios)))
        for cell in informative(measured)
    ]
    columns = columns_of(names, rows)
    return Figure(name, title, columns, strip("regret / bound", "delays", "arms", limit=1.0))


def table(title: str, measured: Sequence[Cell], rows: int = 5) -> Table:
    """A table of the informative cells nearest to their bounds."""
    nearest = sorted(informative(measured), key=lambda cell: -cell.ratio)[:rows]
    return Table(
        title,
        ("problem", "regret", "bound", "regret / bound", "a bad learner loses"),
        [
            (cell.where, f"{cell.regret:,.0f}", f"{cell.bound:,.0f}", f"{cell.ratio:.2f}", f"{cell.witness:,.0f}")
            for cell in nearest
        ],
    )
