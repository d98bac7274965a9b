"""Tables and pictures of how late feedback is, for logs and for the flights."""

import math
from collections.abc import Mapping

import numpy as np

from belated.arrays import Integers
from belated.bounds import clip
from belated.lab.problems.delays import NEVER
from belated.replay.waiting import WaitingTimes
from belated.reports import Figure, Table, columns_of, lines
from belated.tunings import outstanding_counts

LEVELS = ("half of them", "9 in 10", "99 in 100", "all")
POINTS = 300  # of a curve, more than a screen can show
UNITS = (("days", 86400.0), ("hours", 3600.0), ("minutes", 60.0), ("seconds", 1.0))


def in_words(seconds: float, *, has_dates: bool) -> str:
    """A waiting time in the largest unit that fits, or a plain number if its unit is unknown."""
    if math.isnan(seconds):
        return "-"
    if not has_dates:
        return f"{seconds:,.0f}" if seconds >= 1000 else f"{seconds:.4g}"
    name, size = next((unit for unit in UNITS if seconds >= unit[1]), UNITS[-1])
    number = f"{seconds / size:.3g}"
    return f"{number} {name.removesuffix('s') if number == '1' else name}"


def _count(value: float) -> str:
    return "-" if math.isnan(value) else f"{value:,.0f}"


def waiting_table(title: str, measured: Mapping[str, WaitingTimes], *, has_dates: bool = True) -> Table:
    """A table with a column for each name in `measured`."""
    unit = "time" if has_dates else "time (the file's unit)"
    by_name: dict[str, list[str]] = {}
    has_open = any(waiting.share_open > 0 for waiting in measured.values())
    for waiting in measured.values():
        cells = {f"decisions waited, {name}": _count(value) for name, value in zip(LEVELS, waiting.rounds, strict=True)}
        for name, value in zip(LEVELS, waiting.seconds, strict=True):
            cells[f"{unit} waited, {name}"] = in_words(value, has_dates=has_dates)
        cells |= {
            "never reported": f"{waiting.share_never:.2%}",
            **({"still open": f"{waiting.share_open:.2%}"} if has_open else {}),
            "came after the last decision": f"{waiting.share_after:.2%}",
            "most outstanding at once": f"{waiting.largest_backlog:,}",
            "total delay D": f"{waiting.total:,}",
            "m (D without the worst rounds)": f"{waiting.best_skipping:,.0f}",
            "rounds left out for m": f"{waiting.skipped:,}",
        }
        for name, cell in cells.items():
            by_name.setdefault(name, []).append(cell)
    return Table(title, ("", *measured), [(name, *cells) for name, cells in by_name.items()])


def tail_figure(name: str, title: str, delays: Mapping[str, Integers]) -> Figure:
    """The share of feedback still missing after so many rounds. Feedback that never comes stays in the share."""
    largest = max(int(values[values < NEVER].max(initial=1)) for values in delays.values())
    at = np.unique(np.geomspace(1, largest + 1, POINTS).astype(np.int64))
    rows = [(label, int(d), float((values >= d).mean())) for label, values in delays.items() for d in at]
    columns = columns_of(("what", "decisions waited", "still missing"), rows)
    draw = lines("decisions waited", "still missing", "what", scales=("log", "linear"), percent=True)
    return Figure(name, title, columns, draw)


def backlog_figure(name: str, title: str, delays: Mapping[str, Integers]) -> Figure:
    """o_t, the number of outstanding decisions, in each round."""
    rows = []
    for label, values in delays.items():
        counts = outstanding_counts(clip(values))
        at = np.unique(np.linspace(0, counts.size - 1, POINTS).astype(np.int64))
        rows += [(label, int(t) + 1, int(counts[t])) for t in at]
    columns = columns_of(("what", "round", "outstanding"), rows)
    return Figure(name, title, columns, lines("round", "outstanding", "what"))
