"""Claim 9 compares one continuous learner with doubling learners, which restart when a guess was too small."""

from typing import Any, NamedTuple

import numpy as np

from belated import lab
from belated.arrays import Floats
from belated.lab.algorithms import setting_of
from belated.lab.games.interpreted import Driver
from belated.lab.intervals import half_width
from belated.paper.claim import OBLIVIOUS, Claim, ClaimKind, Effort, Finding, at_most
from belated.reports import Figure, columns_of, lines
from belated.tunings import Advanced

OURS = "zs20-advanced"
RIVALS = ("doubling", "doubling-waiting", "exp3-doubling")
STEP = 25  # rounds from one point of the curves to the next


class Run(NamedTuple):
    """The course of one game."""

    regret: Floats
    restarts: list[bool]


def follow(make: Any, problem: lab.Problem, seed: int) -> Run:
    """Play a game. Records the regret every STEP rounds, and whether a new epoch has begun since the last point."""
    delays = problem.draw_delays(seed)
    losses = np.vstack(list(problem.loss_blocks(seed, delays)))
    game, expected, restarts = Driver(make, problem, delays, seed), [], []
    epoch = epoch_of(game.learner)
    for start in range(0, problem.n_rounds, STEP):
        expected.append(game.play(losses[start : start + STEP])[0].sum())
        restarts.append(epoch_of(game.learner) != epoch)
        epoch = epoch_of(game.learner)
    best = losses.cumsum(axis=0)[STEP - 1 :: STEP].min(axis=1)
    return Run(np.cumsum(expected) - best, restarts)


def epoch_of(learner: Any) -> int:
    """The epoch of a doubling learner, 0 for other learners."""
    epoch = getattr(learner, "epoch", 0)
    return int(getattr(epoch, "w", epoch))


def figure(runs: dict[str, list[Run]], n_rounds: int) -> Figure:
    """The mean regret of every learner. The restarts are those of the first seed."""
    rows: list[tuple[Any, ...]] = []
    for name, of_name in runs.items():
        regrets = np.array([run.regret for run in of_name])
        points = range(STEP, n_rounds + 1, STEP)
        curve = regrets.mean(axis=0).tolist(), half_width(regrets).tolist(), of_name[0].restarts
        rows += zip([name] * len(points), points, *curve, strict=True)
    columns = columns_of(("learner", "round", "regret", "half width", "restart"), rows)
    draw = lines("round", "regret", "learner", half="half width", marked="restart")
    return Figure("anytime", "Fixed delay 50, coin flips, k = 5 (dots are restarts)", columns, draw)


def investigate(effort: Effort) -> Finding:
    """Play the same problem with every learner."""
    problem = lab.Problem(lab.Bernoulli(gap=0.2), lab.Fixed(50), 5, effort.pick(8_000, 40_000))
    makers: dict[str, Any] = {name: lab.find(name).player(setting_of(problem, effort.seed)) for name in RIVALS}
    seeds = effort.seeds(4, 24)
    points = range(STEP, problem.n_rounds + 1, STEP)
    ours = effort.play(Advanced(), problem, seeds, points)  # it has no epochs, so it can be played compiled
    runs = {OURS: [Run(regret, [False] * len(points)) for regret in ours.expected]}
    runs |= {name: [follow(make, problem, seed) for seed in seeds] for name, make in makers.items()}
    ends = {name: np.array([run.regret[-1] for run in of_name]) for name, of_name in runs.items()}
    restarts = [sum(runs[name][0].restarts) for name in RIVALS]
    least = min(ends[name].mean() for name in RIVALS)
    return Finding(
        f"regret {ends[OURS].mean():.0f} without restarts, {least:.0f} or more with {min(restarts)} to {max(restarts)}",
        [at_most(f"{OURS} minus {name}", ends[OURS] - ends[name], 0.0) for name in RIVALS],
        [figure(runs, problem.n_rounds)],
    )


CLAIM = Claim(
    "anytime",
    "Anytime against doubling",
    ClaimKind.MEASUREMENT,
    (
        "Earlier systems that do not know the horizon or the total delay start with a guess. When the guess is too "
        "small, they double it and start from nothing. Each restart forgets what was learned. ZS20 needs no restarts.",
    ),
    investigate,
    OBLIVIOUS,
    cost=5,
)
