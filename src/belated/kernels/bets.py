"""Bets against the claim that the regret of this run is large (docs/theory/any-delays.md, "This run").

Let U_{s,i} = loss_s / x_s [A_s = i] - loss_s. It is at least -1, and its mean is minus the regret of round s against i.
For each g of a fixed grid this product never grows on average, for any delays:

    product of (1 + g U_{s,i})  times  exp(g regret against i)

`bets` keeps the products over the reported rounds, in a layer for each arm, because a report changes one arm. The last
layer has the product of (1 - g loss_s), which is the same for every arm that was not drawn. The layer of an arm has
what it multiplies that with. The first row of a layer is the product itself. Before it becomes too large or too small,
its logarithm moves to the second row.
"""

import math

import numpy as np

from belated.arrays import Floats
from belated.kernels.compiling import compiled

GRID = 0.7 * 0.5 ** np.arange(16.0)  # g, from 0.7 down to 2e-5
LARGE, SMALL = 1e100, 1e-100


@compiled
def bet(bets: Floats, arm: int, probability: float, loss: float, power: int) -> None:
    """Take a report of this loss in (power = 1), or out again (power = -1)."""
    if loss == 0:
        return
    rest, odds = bets.shape[0] - 1, 1 / probability - 1
    for j in range(bets.shape[2]):
        others = 1 - GRID[j] * loss
        own = (1 + GRID[j] * loss * odds) / others
        if power < 0:
            others, own = 1 / others, 1 / own
        _multiply(bets[rest], j, others)
        _multiply(bets[arm], j, own)


@compiled
def _multiply(layer: Floats, j: int, factor: float) -> None:
    if SMALL < factor < LARGE:
        layer[0, j] *= factor
    else:
        layer[1, j] += math.log(factor)
    if not SMALL < layer[0, j] < LARGE:
        layer[1, j] += math.log(layer[0, j])
        layer[0, j] = 1.0
