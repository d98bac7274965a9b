"""Drawing an arm from a distribution."""

from belated.arrays import Floats
from belated.kernels.arithmetic import lane_total, total
from belated.kernels.compiling import compiled

BLOCK = 64  # arms per entry of `cdf`: a draw is a search among blocks and a scan of one


@compiled
def accumulate(x: Floats, cdf: Floats) -> None:
    """cdf[j] = sum of x over the first j + 1 blocks. In two levels, because a million terms in a row cost 1e-12."""
    before = 0.0
    for start in range(0, cdf.shape[0], BLOCK):
        reached = 0.0
        for j in range(start, min(start + BLOCK, cdf.shape[0])):
            reached += lane_total(x, j * BLOCK, min((j + 1) * BLOCK, x.shape[0]))
            cdf[j] = before + reached
        before += reached


@compiled
def normalise(x: Floats, cdf: Floats) -> None:
    """Make the sum of x 1 and update cdf. It is a function of x alone, so only x must be stored."""
    scale = 1 / total(x)
    for i in range(x.shape[0]):
        x[i] *= scale
    accumulate(x, cdf)


@compiled
def draw(x: Floats, cdf: Floats, uniform: float) -> int:
    """The arm at `uniform` in [0, 1) of the distribution x. It never has x = 0."""
    target = min(uniform, 1 - 2.0**-52) * cdf[-1]  # strictly below cdf[-1]
    low, high = 0, cdf.shape[0] - 1
    while low < high:
        middle = (low + high) // 2
        if cdf[middle] > target:
            high = middle
        else:
            low = middle + 1
    reached = cdf[low - 1] if low > 0 else 0.0
    arm = -1
    for i in range(low * BLOCK, min((low + 1) * BLOCK, x.shape[0])):
        reached += x[i]
        if x[i] > 0:
            arm = i
        if reached > target:
            break
    return arm


@compiled
def draw_mixed(x: Floats, cdf: Floats, mixed: float, uniform: float) -> int:
    """The arm at `uniform` of mixed / k + (1 - mixed) x. The first part of [0, 1) is for the even share."""
    n_arms: int = x.shape[0]
    if uniform < mixed:
        return min(int(uniform / mixed * n_arms), n_arms - 1)
    return draw(x, cdf, (uniform - mixed) / (1 - mixed))
