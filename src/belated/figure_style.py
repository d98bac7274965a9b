"""The look of all figures. Matplotlib is loaded only when one is drawn."""

import warnings
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from types import MappingProxyType
from typing import Any

from belated.extras import needs

# Okabe and Ito's colours, which colour-blind people can tell apart
COLOURS = BLUE, ORANGE, GREEN, _, _, _, BLACK, GREY = (
    "#0072B2",
    "#D55E00",
    "#009E73",
    "#CC79A7",
    "#56B4E9",
    "#E69F00",
    "#000000",
    "#8A8A8A",
)
STYLE: dict[Any, Any] = {
    "font.size": 11,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.grid": True,
    "grid.alpha": 0.25,
    "legend.frameon": False,
    "text.parse_math": False,  # a name may contain a $, so ticks must be plain too
    "svg.hashsalt": "belated",  # the same figure gives the same file
    "pdf.fonttype": 42,  # TrueType, because many journals refuse Type 3
    "ps.fonttype": 42,
}


@contextmanager
def canvas(
    rows: int = 1, columns: int = 1, *, style: Mapping[str, Any] = MappingProxyType({}), **options: Any
) -> Iterator[tuple[Any, Any]]:
    """A figure and its axes in our style, for the time of the `with` block. It needs no screen.

    `style` has Matplotlib's settings that differ from ours.
    """
    with needs("lab"):
        import matplotlib  # noqa: PLC0415  (only figures need it)

    matplotlib.use("Agg")
    from matplotlib import pyplot  # noqa: PLC0415

    with pyplot.rc_context({**STYLE, **dict[Any, Any](style)}), warnings.catch_warnings():
        warnings.filterwarnings("ignore", "Glyph .* missing from font")  # an emoji in a name is drawn as a box
        figure, axes = pyplot.subplots(rows, columns, layout="constrained", **options)
        try:
            yield figure, axes
        finally:
            pyplot.close(figure)


def plain_ticks(axis: Any) -> None:
    """Label logarithmic scales with 1,000 in place of 10 to the power of 3.

    Less than a decade has no room for powers of ten, so the ticks between them get labels too.
    """
    for side in (axis.xaxis, axis.yaxis):
        if side.get_scale() == "log":
            low, high = sorted(side.get_view_interval())
            side.set_major_formatter(lambda value, _: f"{value:,g}")
            side.set_minor_formatter((lambda value, _: f"{value:,g}") if high < 10 * low else (lambda _value, _: ""))
