"""Regret beside its certificates."""

from collections.abc import Sequence
from functools import partial
from typing import Any, NamedTuple

import numpy as np

from belated.arrays import Floats, Integers
from belated.errors import InvalidInput
from belated.lab.games.curves import as_checkpoints
from belated.lab.games.interpreted import Driver
from belated.lab.games.seeds import as_seeds
from belated.lab.problems.problem import Problem, as_problem
from belated.learner.decisions import MakeLearner
from belated.learner.ftrl import FTRL
from belated.tunings import Tuning, as_tuning


class Certified(NamedTuple):
    """Regret and certificates, with a row for each seed and a column for each checkpoint."""

    checkpoints: Integers
    regret: Floats  # of <x_t, l_t>
    measured: Floats
    proven: Floats  # for delays fixed in advance
    proven_any: Floats  # for any delays
    bound: Floats  # on the regret of the run itself, at all times, with 95% confidence


def certify(
    tuning: Tuning | MakeLearner,
    problem: Problem,
    seeds: int | Sequence[int] | range,
    *,
    checkpoints: Sequence[int] | None = None,
) -> Certified:
    """Play a problem through ask and tell, and read the certificates at the checkpoints.

    A Tuning is played by FTRL. A function is called with the number of arms and the seed, and must make a learner
    that has certificates.
    """
    is_wrong = isinstance(tuning, type) and issubclass(tuning, Tuning)  # the class in place of a tuning
    player = as_tuning(tuning) if is_wrong or not callable(tuning) else tuning
    at = as_checkpoints(checkpoints, as_problem(problem).n_rounds)
    rows = np.array([_one(player, problem, seed, at) for seed in as_seeds(seeds)])
    return Certified(at, *np.moveaxis(rows, 2, 0))


def _of_tuning(tuning: Tuning, n_arms: int, seed: int) -> FTRL[int]:
    return FTRL(n_arms, tuning, seed=seed)


def _one(tuning: Tuning | MakeLearner, problem: Problem, seed: int, at: Integers) -> list[tuple[float, ...]]:
    delays = problem.draw_delays(seed)
    make: Any = partial(_of_tuning, tuning) if isinstance(tuning, Tuning) else tuning
    game = Driver(make, problem, delays, seed)
    learner = game.learner
    for method in ("certificate", "measured_certificate", "regret_bound"):
        if not callable(getattr(learner, method, None)):
            raise InvalidInput(
                f"{learner!r:.80} has no {method}. lab.certify is for FTRL and learners that have all three"
            )
    losses = np.vstack(list(problem.loss_blocks(seed, delays)))
    rows, expected, start = list[tuple[float, ...]](), 0.0, 0
    for stop in at.tolist():
        expected += float(game.play(losses[start:stop])[0].sum())
        regret = expected - float(losses[:stop].sum(axis=0).min())
        certificates = learner.certificate(), learner.certificate("any"), learner.regret_bound()
        rows.append((regret, learner.measured_certificate(), *certificates))
        start = stop
    return rows
