"""One line of a comparison's results."""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from belated.arrays import Integers
from belated.lab.algorithms import Algorithm
from belated.lab.comparisons.finished_games import FinishedGame
from belated.lab.games.curves import Curves, curves_of
from belated.lab.intervals import half_width


class Row(NamedTuple):
    """One algorithm's result at the end of the game."""

    algorithm: Algorithm
    curves: Curves
    regret: float
    interval: float
    bound: float | None
    lower: float | None  # what no algorithm can have less of on every problem with these delays
    ratio: float | None  # of the regret to that
    pseudo: float  # pseudo-regret, NaN if the means of the losses are not known
    pseudo_interval: float
    games: Sequence[FinishedGame]  # one for each seed

    @property
    def is_learner(self) -> bool:
        """Whether it has to learn. The best arm in hindsight knows all losses."""
        return self.algorithm.needs != "all losses"


def row_of(algorithm: Algorithm, seeds: Sequence[int], at: Integers, games: Sequence[FinishedGame]) -> Row:
    """The line of an algorithm that has played a game for each seed."""
    played, seconds, proven, lower = zip(*games, strict=True)
    curves = curves_of(seeds, at, played, sum(seconds))
    regret, least = float(curves.mean[-1]), _mean(lower)
    pseudo = curves.pseudo[:, -1]
    return Row(
        algorithm,
        curves,
        regret,
        float(curves.interval[-1]),
        _mean(proven),
        least,
        None if least is None else regret / least,
        float(pseudo.mean()),
        float(half_width(pseudo)),
        games,
    )


def _mean(bounds: Sequence[float | None]) -> float | None:
    """The mean over the seeds, if every game has such a bound."""
    return None if None in bounds else float(np.mean(np.array(bounds, float)))
