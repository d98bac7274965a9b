"""One line of a comparison's results."""

from typing import NamedTuple

from belated.lab.algorithms import Algorithm
from belated.lab.games.curves import Curves


class Row(NamedTuple):
    """One algorithm's result at the end of the game."""

    algorithm: Algorithm
    curves: Curves
    regret: float
    interval: float
    bound: float | None
    ratio: float  # to the lower bound
