"""The argmin and the draw, for baselines whose loss estimates are not FTRL's."""

import math
from typing import final

import numpy as np

from belated import kernels
from belated.arrays import Floats


@final
class ArgminPolicy:
    """x = argmin over the simplex of  <x, L> - 2 alpha sum_i sqrt(x_i) + beta sum_i x_i ln x_i, for L of any sign.

    Only the differences of L matter. The kernels need L >= 0, so the smallest entry is subtracted first.
    """

    def __init__(self, n_arms: int, generator: np.random.Generator) -> None:
        self.losses = np.zeros(n_arms)
        self._generator = generator
        self._arrays = np.zeros((kernels.ROWS, n_arms))
        self._arrays[kernels.V] = 0.5 * math.log(n_arms)
        self._cdf = np.empty(-(-n_arms // kernels.BLOCK))

    def draw(self, alpha: float, beta: float) -> tuple[int, Floats]:
        """An arm drawn from x, and x itself."""
        x = self._solve(self._arrays, alpha, beta)
        return int(kernels.draw(x, self._cdf, self._generator.random())), x.copy()

    def distribution(self, alpha: float, beta: float) -> Floats:
        """x, solved on a copy so that the next draw starts its iteration at the same point."""
        return self._solve(self._arrays.copy(), alpha, beta).copy()

    def _solve(self, arrays: Floats, alpha: float, beta: float) -> Floats:
        arrays[kernels.LOSSES] = self.losses - self.losses.min()
        kernels.argmin(arrays, alpha, beta, 0)
        x: Floats = arrays[kernels.X]
        kernels.normalise(x, self._cdf)
        return x
