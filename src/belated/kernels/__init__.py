"""All compiled code. Plain functions on arrays, compiled by Numba on first use and cached on disk.

There is no fast-math. Kernels use only IEEE operations in a fixed order. Sums run in fixed lanes, and `exp` is our own.
So a result does not depend on the machine's vector width or C library.
"""

from belated.kernels.any_delays import unreported
from belated.kernels.argmin import LARGEST_RATE, LOSSES, OPEN, ROWS, SMALLEST_RATE, V_MAX, V, X, Y, argmin, potential
from belated.kernels.arithmetic import exp
from belated.kernels.bets import GRID
from belated.kernels.charges import closed_charge, penalty
from belated.kernels.clock import (
    CLOCK,
    IMPOSSIBLE,
    LEDGER,
    NO_LOSS,
    WAITS,
    WRONG_ARM,
    amend,
    backlogs,
    compact,
    give_up,
    report,
)
from belated.kernels.compiling import Policies, Records, compiled, entry_point
from belated.kernels.draw import BLOCK, accumulate, draw, normalise
from belated.kernels.feedback_game import play_feedback_block
from belated.kernels.game import TOLERANCE, arrivals, expectation, play_block, weigh
from belated.kernels.groups import groups
from belated.kernels.means import (
    ALARM,
    FLOOR,
    GONE,
    MEANS,
    ON_MEANS,
    TAKEN,
    allowance,
    choose_stage,
    learn_earlier,
    relearn_earlier,
    solve_means,
)
from belated.kernels.means_game import play_means_block
from belated.kernels.rounds import (
    ask_next,
    decide,
    decide_batch,
    enter_more_stale,
    enter_stale,
    record,
    record_batch,
    solve,
    solve_and_decide,
    solve_and_decide_batch,
    solve_and_record,
    solve_and_record_batch,
)
from belated.kernels.shadow import SHADOW, choose
from belated.kernels.shadow_game import play_shadow_block

__all__ = [
    "ALARM",
    "BLOCK",
    "CLOCK",
    "FLOOR",
    "GONE",
    "GRID",
    "IMPOSSIBLE",
    "LARGEST_RATE",
    "LEDGER",
    "LOSSES",
    "MEANS",
    "NO_LOSS",
    "ON_MEANS",
    "OPEN",
    "ROWS",
    "SHADOW",
    "SMALLEST_RATE",
    "TAKEN",
    "TOLERANCE",
    "V_MAX",
    "WAITS",
    "WRONG_ARM",
    "Policies",
    "Records",
    "V",
    "X",
    "Y",
    "accumulate",
    "allowance",
    "amend",
    "argmin",
    "arrivals",
    "ask_next",
    "backlogs",
    "choose",
    "choose_stage",
    "closed_charge",
    "compact",
    "compiled",
    "decide",
    "decide_batch",
    "draw",
    "enter_more_stale",
    "enter_stale",
    "entry_point",
    "exp",
    "expectation",
    "give_up",
    "groups",
    "learn_earlier",
    "normalise",
    "penalty",
    "play_block",
    "play_feedback_block",
    "play_means_block",
    "play_shadow_block",
    "potential",
    "record",
    "record_batch",
    "relearn_earlier",
    "report",
    "solve",
    "solve_and_decide",
    "solve_and_decide_batch",
    "solve_and_record",
    "solve_and_record_batch",
    "solve_means",
    "unreported",
    "weigh",
]
