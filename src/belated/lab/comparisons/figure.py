"""The figure of a comparison, for the screen or for a paper."""

import itertools
import math
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from belated.errors import InvalidInput
from belated.figure_style import COLOURS, canvas, plain_ticks
from belated.lab.comparisons.row import Row
from belated.lab.comparisons.tables import name_of
from belated.lab.games.curves import Measure
from belated.lab.intervals import half_width
from belated.suggestions import unknown_name
from belated.validation import positive_number

TITLES = {"log": "log scale, triangles: the bounds", "linear": "linear scale"}
WIDTHS = {"single": 3.35, "double": 6.9}  # inches of one and two columns of most journals
SCALES = {"log": ("log",), "linear": ("linear",), "both": ("log", "linear")}
NAMES = {"expected": "regret", "suffered": "regret of the drawn arms", "pseudo": "pseudo-regret"}
WORD = 0.62  # width of a letter in a legend, in font sizes


class Look(NamedTuple):
    """The size of a figure and of what is in it."""

    width: float
    height: float | None  # None is as high as the panels and the legend need
    font_size: float
    scales: tuple[str, ...]
    is_paper: bool

    @property
    def line_width(self) -> float:
        """Width of a curve in points."""
        return 1.1 if self.is_paper else 1.6


def look_of(width: Any, height: Any, font_size: Any, scale: Any) -> Look:
    """Check what the caller wants."""
    if scale is not None and not (isinstance(scale, str) and scale in SCALES):
        raise unknown_name("scale", str(scale), SCALES)
    if isinstance(width, str) and width not in WIDTHS:
        raise unknown_name("width", width, WIDTHS, " A number is in inches.")
    inches = positive_number(
        "width", 13 if width is None else WIDTHS.get(width, width) if isinstance(width, str) else width
    )
    high = None if height is None else positive_number("height", height)
    is_paper = width is not None
    size = positive_number("font_size", (8 if is_paper else 11) if font_size is None else font_size)
    scales = SCALES[scale or ("log" if inches < 5 else "both")]
    if not 1 <= inches <= 100 or (high is not None and not 1 <= high <= 100):
        raise InvalidInput(f"a figure must be 1 to 100 inches wide and high, got {inches!r} and {height!r}")
    return Look(inches, high, size, scales, is_paper)


def draw(rows: Sequence[Row], title: str, path: Path, look: Look, of: Measure, *, depends_on_horizon: bool) -> None:
    """Mean regret with 95% bands. On a log scale the bounds are triangles at the end."""
    styles = [{"color": colour, "linestyle": dash} for dash in ("-", "--", ":", "-.") for colour in COLOURS]
    labels = [_label(row, of, look) for row in rows]
    columns, lines = _legend(labels, look)
    size = look.width, look.height or _height(look, lines)
    with canvas(1, len(look.scales), style=_style(look), figsize=size) as (figure, axes):
        figure.get_layout_engine().set(wspace=0.06)  # so that a label does not touch the panel to its left
        for scale, axis in zip(look.scales, np.ravel(axes), strict=True):
            for row, label, style in zip(rows, labels, itertools.cycle(styles), strict=False):
                _curve(axis, row, of, {"label": label, **style}, scale, look)
            within = "round of this game" if depends_on_horizon else "round"
            axis.set(xscale=scale, yscale=scale, xlabel=within, ylabel=NAMES.get(of, f"{of} regret"))
            plain_ticks(axis)
            if scale == "linear":
                axis.xaxis.set_major_formatter("{x:,g}")
                axis.yaxis.set_major_formatter("{x:,g}")
        handles = np.ravel(axes)[-1].get_legend_handles_labels()
        if look.is_paper:
            figure.legend(*handles, loc="outside lower center", ncols=columns, fontsize=look.font_size)
        else:
            for scale, axis in zip(look.scales, np.ravel(axes), strict=True):
                axis.set_title(TITLES[scale])
            figure.legend(*handles, loc="outside right upper", fontsize=look.font_size - 2)
            figure.suptitle(title)
        _save(figure, path, 300 if look.is_paper else 120)


METADATA: dict[str, Any] = {".pdf": {"CreationDate": None}, ".svg": {"Date": None}}  # the same figure, the same file


def _save(figure: Any, path: Path, dpi: int) -> None:
    """Write the figure in the format that the ending of the path names, PNG if it has none."""
    ending, known = path.suffix.lower().removeprefix("."), figure.canvas.get_supported_filetypes()
    if ending and ending not in known:
        raise unknown_name("ending of a figure", ending, sorted(known))
    try:
        figure.savefig(path, dpi=dpi, metadata=METADATA.get(path.suffix.lower()))
    except OSError as error:
        raise InvalidInput(f"cannot write the figure {path}. {error.strerror or error}") from error


def _style(look: Look) -> dict[str, Any]:
    if not look.is_paper:
        return {"font.size": look.font_size}
    small = {"axes.linewidth": 0.6, "grid.linewidth": 0.5, "xtick.major.width": 0.6, "ytick.major.width": 0.6}
    return {"font.size": look.font_size, "axes.labelsize": look.font_size, "legend.columnspacing": 1.2, **small}


def _label(row: Row, of: Measure, look: Look) -> str:
    """The name in the legend. Its marks are about the expected regret. Matplotlib hides a label that begins with _."""
    name = name_of(row) if of == "expected" else row.algorithm.name
    name = f" {name}" if name.startswith("_") else name
    return name if row.bound is None or of == "dynamic" or look.is_paper else f"{name} (bound {row.bound:,.0f})"


def _legend(labels: Sequence[str], look: Look) -> tuple[int, int]:
    """Columns and lines of a legend below the panels."""
    longest = (max(map(len, labels), default=1) * WORD + 3.5) * look.font_size / 72
    columns = min(max(1, len(labels)), max(1, math.floor(look.width / longest)))
    return columns, math.ceil(len(labels) / columns)


def _height(look: Look, lines: int) -> float:
    """Panels of 3 to 4, and the legend of a paper's figure below them."""
    if not look.is_paper:
        return look.width * 0.4
    return 0.72 * look.width / len(look.scales) + (lines * 1.35 + 1) * look.font_size / 72


def _curve(axis: Any, row: Row, of: Measure, style: dict[str, Any], scale: str, look: Look) -> None:
    regret = row.curves.of(of)
    rounds, mean, half = row.curves.checkpoints, regret.mean(axis=0), np.nan_to_num(half_width(regret))
    shown = mean > 0 if scale == "log" else np.isfinite(mean)
    axis.plot(rounds[shown], mean[shown], linewidth=look.line_width, **style)
    low = np.maximum(mean - half, mean * 0.1) if scale == "log" else mean - half
    axis.fill_between(rounds[shown], low[shown], (mean + half)[shown], color=style["color"], alpha=0.18, linewidth=0)
    if row.bound and scale == "log" and of != "dynamic":
        size = 4 if look.is_paper else 7
        axis.plot(rounds[-1], row.bound, marker="v", color=style["color"], markersize=size, clip_on=False)
