"""The problems for the theorems, and the ratio of measured regret to a bound on each."""

from collections.abc import Callable, Iterator, Sequence
from typing import NamedTuple

import numpy as np

from belated import lab
from belated.arrays import Floats, Integers
from belated.lab.intervals import half_width
from belated.paper.claim import SEVERITY, Check, Effort, judge_mean
from belated.reports import Figure, Table, columns_of, strip
from belated.tunings import Tuning

Case = tuple[str, str, lab.Problem, range]  # delays and losses in words, the problem, the seeds
Bound = Callable[[int, Integers], float]

DELAYS: dict[str, lab.Delays] = {
    "none": lab.NoDelay(),
    "fixed 10": lab.Fixed(10),
    "fixed 200": lab.Fixed(200),
    "geometric 100": lab.Geometric(100),
    "Pareto 0.5": lab.Pareto(0.5),
    "5% never": lab.Lost(0.05, 50),
    "bursts": lab.Bursts(200),
    "unbalanced": lab.Unbalanced(),
}
LOSSES: dict[str, lab.Losses] = {
    "coin flips, gap 0.1": lab.Bernoulli(gap=0.1),
    "coin flips, gap 0.5": lab.Bernoulli(gap=0.5),
    "constrained adversary": lab.Constrained(),
    "shifting best arm": lab.Shifting(),
    "resonant wave": lab.Wave(),
    "drifting sine": lab.Sine(),
    "block coins": lab.BlockCoins(),
}
# These ruin a learner that divides late reports by the wrong probability. The later the comeback, the rarer and heavier
# the draws that decide the game. The careful simple tuning is hurt only by a late one, the advanced by an early one.
LATE_COMEBACK = lab.Problem(lab.Comeback(0.2), lab.Held(0.02, 0.2), 10, 80_000)
EARLY_COMEBACK = lab.Problem(lab.Comeback(0.05), lab.Held(0.02, 0.05), 10, 40_000)


class Cell(NamedTuple):
    """A tuning on a problem, with regret / bound of every seed."""

    delays: str
    losses: str
    n_arms: int
    n_rounds: int
    regret: float
    bound: float
    ratios: Floats

    @property
    def ratio(self) -> float:
        """The mean of the ratios."""
        return float(self.ratios.mean())

    @property
    def where(self) -> str:
        """The problem in words."""
        return f"{self.losses}, delays {self.delays}, k = {self.n_arms}, n = {self.n_rounds:,}"


class ProblemRegrets(NamedTuple):
    """A problem and the regret of every seed on it."""

    delays: str
    losses: str
    problem: lab.Problem
    seeds: range
    regrets: Floats


def play(tuning: Tuning, delays: str, losses: str, problem: lab.Problem, seeds: range, workers: int) -> ProblemRegrets:
    """Play a problem to its end."""
    curves = lab.play(tuning, problem, seeds, checkpoints=[problem.n_rounds], workers=workers)
    return ProblemRegrets(delays, losses, problem, seeds, curves.expected[:, -1])


def against(games: Sequence[ProblemRegrets], bound: Bound) -> list[Cell]:
    """The regret of each seed divided by the bound for its delays."""
    measured = []
    for name, losses, problem, seeds, regrets in games:
        k, n = problem.n_arms, problem.n_rounds
        drawn = [problem.draw_delays(seed) for seed in seeds]
        by_delays = {delays.tobytes(): delays for delays in drawn}  # most rules draw the same for every seed
        bounds = {key: bound(k, delays) for key, delays in by_delays.items()}
        limits = np.array([bounds[delays.tobytes()] for delays in drawn])
        measured.append(Cell(name, losses, k, n, float(regrets.mean()), float(limits.mean()), regrets / limits))
    return measured


def problems(effort: Effort) -> Iterator[Case]:
    """The problems of the whole grid of k, n, delays and losses."""
    for n_arms in (2, 10, 50):
        for n_rounds in effort.pick((1_000, 8_000), (1_000, 10_000, 100_000)):
            for delay_name, delays in DELAYS.items():
                for loss_name, losses in LOSSES.items():
                    yield delay_name, loss_name, lab.Problem(losses, delays, n_arms, n_rounds), effort.seeds(4, 32)


def play_all(tuning: Tuning, effort: Effort, comeback: lab.Problem) -> list[ProblemRegrets]:
    """Play the tuning on the whole grid and on one of the comebacks."""
    return [play(tuning, *case, effort.workers) for case in (*problems(effort), case_of(comeback, effort))]


def case_of(comeback: lab.Problem, effort: Effort) -> Case:
    """A comeback with more seeds than elsewhere, because rare draws of the arm that comes back decide its games."""
    return "held back", "comeback", comeback, effort.seeds(24, 128)


def worst(measured: Sequence[Cell]) -> Cell:
    """The cell with the largest ratio to its bound."""
    return max(measured, key=lambda cell: cell.ratio)


def judge(what: str, measured: Sequence[Cell]) -> Check:
    """Check that every cell's mean ratio is at most 1, and describe the worst cell."""
    shown = max(measured, key=lambda cell: (SEVERITY.index(judge_mean(cell.ratios, 1.0)), cell.ratio))
    half = float(half_width(shown.ratios))
    text = f"{len(measured)} problems, worst {shown.ratio:.2f} ± {half:.2f} of the bound ({shown.where})"
    return Check(what, text, judge_mean(shown.ratios, 1.0))


def figure(name: str, title: str, measured: Sequence[Cell]) -> Figure:
    """A figure with a dot for each problem."""
    names = ("delays", "losses", "arms", "rounds", "regret", "bound", "regret / bound", "half width")
    rows = [
        (*cell[:2], f"k = {cell.n_arms}", *cell[3:6], cell.ratio, float(half_width(cell.ratios))) for cell in measured
    ]
    columns = columns_of(names, rows)
    return Figure(name, title, columns, strip("regret / bound", "delays", "arms", limit=1.0))


def table(title: str, measured: Sequence[Cell], rows: int = 5) -> Table:
    """A table of the cells nearest to their bounds."""
    nearest = sorted(measured, key=lambda cell: -cell.ratio)[:rows]
    return Table(
        title,
        ("problem", "regret", "bound", "ratio"),
        [(cell.where, f"{cell.regret:,.0f}", f"{cell.bound:,.0f}", f"{cell.ratio:.2f}") for cell in nearest],
    )
