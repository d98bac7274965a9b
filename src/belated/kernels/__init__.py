"""All compiled code: plain functions on arrays, compiled by Numba on first use and cached on disk.

No fast-math: only IEEE operations in a fixed order (sums run in fixed lanes, `exp` is our own), so a result does not
depend on the vector width of the machine or on its C library.
"""

from belated.kernels.argmin import LARGEST_RATE, LOSSES, ROWS, SMALLEST_RATE, V_MAX, V, X, Y, argmin
from belated.kernels.arithmetic import exp
from belated.kernels.clock import CLOCK, LEDGER, backlogs, compact, report
from belated.kernels.compiling import Floats, Records, compiled, entry_point
from belated.kernels.draw import BLOCK, accumulate, draw, normalise
from belated.kernels.game import arrivals, expectation, play_block
from belated.kernels.rounds import decide, decide_batch, solve_and_decide, solve_and_decide_batch

__all__ = [
    "BLOCK",
    "CLOCK",
    "LARGEST_RATE",
    "LEDGER",
    "LOSSES",
    "ROWS",
    "SMALLEST_RATE",
    "V_MAX",
    "Floats",
    "Records",
    "V",
    "X",
    "Y",
    "accumulate",
    "argmin",
    "arrivals",
    "backlogs",
    "compact",
    "compiled",
    "decide",
    "decide_batch",
    "draw",
    "entry_point",
    "exp",
    "expectation",
    "normalise",
    "play_block",
    "report",
    "solve_and_decide",
    "solve_and_decide_batch",
]
