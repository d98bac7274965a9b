"""Charts: a figure is a table of numbers and a way to draw it, so that the CSV holds just what is shown."""

import io
import warnings
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, final

Columns = Mapping[str, Sequence[Any]]
Draw = Callable[[Any, Columns], None]

# Okabe and Ito's colours: told apart by everybody
COLOURS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#56B4E9", "#E69F00", "#000000", "#8A8A8A")
STYLE: dict[Any, Any] = {
    "font.size": 11,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.grid": True,
    "grid.alpha": 0.25,
    "text.parse_math": False,  # a name may hold a $; so ticks must be plain too
    "svg.hashsalt": "belated",  # the same figure gives the same file
}
SIZE = (6.4, 4.2)  # inches: one panel, readable on a phone


@final
@dataclass(frozen=True, eq=False)
class Figure:
    """One panel: `columns` are its numbers, `draw` puts them on an axis, `name` is that of its files."""

    name: str
    title: str
    columns: Columns
    draw: Draw


def render(figure: Figure) -> dict[str, bytes]:
    """The figure as svg and png."""
    import matplotlib  # noqa: PLC0415  (only figures need it)

    matplotlib.use("Agg")
    from matplotlib import pyplot  # noqa: PLC0415

    with pyplot.rc_context(STYLE), warnings.catch_warnings():
        warnings.filterwarnings("ignore", "Glyph .* missing from font")  # an emoji in a name: a box will do
        canvas, axis = pyplot.subplots(figsize=SIZE, layout="constrained")
        figure.draw(axis, figure.columns)
        axis.set_title(figure.title, fontsize=12, loc="left")
        images = {}
        for kind, settings in (("svg", {"metadata": {"Date": None}}), ("png", {"dpi": 150})):
            stream = io.BytesIO()
            canvas.savefig(stream, format=kind, **settings)
            images[kind] = stream.getvalue()
        pyplot.close(canvas)
    return images


def shortened(name: str, length: int = 26) -> str:
    """A label that leaves room for the picture."""
    return name if len(name) <= length else f"{name[: length - 1]}…"


def columns_of(names: Sequence[str], rows: Sequence[Sequence[Any]]) -> dict[str, list[Any]]:
    """Rows as columns."""
    return {name: [row[i] for row in rows] for i, name in enumerate(names)}


def groups(columns: Columns, by: str) -> dict[Any, dict[str, list[Any]]]:
    """The rows of each value of a column, in order of first appearance."""
    parts: dict[Any, dict[str, list[Any]]] = {}
    for i, key in enumerate(columns[by]):
        part = parts.setdefault(key, {name: [] for name in columns})
        for name, values in columns.items():
            part[name].append(values[i])
    return parts


def plain_ticks(side: Any) -> None:
    """1,000 in place of 10 to the power of 3; with less than a decade to show, its parts get numbers too."""
    low, high = sorted(side.get_view_interval())
    side.set_major_formatter(lambda value, _: f"{value:,g}")
    side.set_minor_formatter((lambda value, _: f"{value:,g}") if high < 10 * low else (lambda _value, _: ""))


def lines(
    x: str,
    y: str,
    by: str,
    *,
    half: str | None = None,
    scales: tuple[str, str] = ("linear", "linear"),
    dashed: Sequence[str] = (),
    marked: str | None = None,
    percent: bool = False,
) -> Draw:
    """A line for each value of `by`, with a band of +- `half`; those of `dashed` are dashed, `marked` rows get a dot.

    Names with the same words before a colon share a colour.
    """

    def draw(axis: Any, columns: Columns) -> None:
        parts = groups(columns, by)
        families = list(dict.fromkeys(name.split(":")[0] for name in parts))
        for name, rows in parts.items():
            colour = COLOURS[families.index(name.split(":")[0]) % len(COLOURS)]
            style = "--" if name in dashed else "-"
            axis.plot(rows[x], rows[y], label=name, color=colour, linestyle=style, linewidth=1.7)
            if half is not None:
                low = [value - width for value, width in zip(rows[y], rows[half], strict=True)]
                high = [value + width for value, width in zip(rows[y], rows[half], strict=True)]
                axis.fill_between(rows[x], low, high, color=colour, alpha=0.18, linewidth=0)
            if marked is not None:
                points = [(a, b) for a, b, is_marked in zip(rows[x], rows[y], rows[marked], strict=True) if is_marked]
                axis.plot(*zip(*points, strict=True) if points else ([], []), "o", color=colour, markersize=5)
        axis.set(xlabel=x, ylabel=y, xscale=scales[0], yscale=scales[1])
        for side, scale in zip((axis.xaxis, axis.yaxis), scales, strict=True):
            if scale == "log":
                plain_ticks(side)
        if percent:
            axis.yaxis.set_major_formatter(lambda value, _: f"{value:.0%}")
        if len(parts) > 1:
            axis.legend(fontsize=9, frameon=False)

    return draw


def strip(value: str, category: str, by: str, *, limit: float) -> Draw:
    """A dot for each row: its value across, its category down, a colour for each value of `by`; a line at the limit."""

    def draw(axis: Any, columns: Columns) -> None:
        names = list(dict.fromkeys(columns[category]))
        shades = list(dict.fromkeys(columns[by]))
        for shade, colour in zip(shades, COLOURS * 3, strict=False):
            rows = groups(columns, by)[shade]
            offset = 0.5 * (shades.index(shade) + 0.5) / len(shades) - 0.25
            heights = [names.index(name) + offset for name in rows[category]]
            axis.plot(rows[value], heights, "o", color=colour, markersize=4, alpha=0.75, label=shade)
        axis.axvline(limit, color="#B00020", linewidth=1.5)
        axis.set(xlabel=value, yticks=range(len(names)), yticklabels=names, ylim=(len(names) - 0.4, -0.6))
        axis.set_xlim(min(0.0, *columns[value]), max(limit * 1.05, *columns[value]))
        axis.legend(fontsize=9, frameon=False, loc="upper center", bbox_to_anchor=(0.5, -0.13), ncols=4)

    return draw


def intervals(value: str, low: str, high: str, category: str) -> Draw:
    """A dot with its interval for each category, from top to bottom."""

    def draw(axis: Any, columns: Columns) -> None:
        heights = range(len(columns[category]))
        axis.hlines(heights, columns[low], columns[high], color=COLOURS[0], linewidth=2)
        axis.plot(columns[value], heights, "o", color=COLOURS[1], markersize=6)
        axis.set(
            xlabel=value,
            yticks=heights,
            yticklabels=list(map(shortened, columns[category])),
            ylim=(len(heights) - 0.4, -0.6),
        )
        axis.locator_params(axis="x", nbins=6)

    return draw


def bars(value: str, category: str, by: str, *, half: str | None = None, scale: str = "linear") -> Draw:
    """Horizontal bars: a group for each category, a colour for each value of `by`."""

    def draw(axis: Any, columns: Columns) -> None:
        names, parts = list(dict.fromkeys(columns[category])), groups(columns, by)
        thickness = 0.8 / len(parts)
        for number, ((name, rows), colour) in enumerate(zip(parts.items(), COLOURS * 3, strict=False)):
            heights = [names.index(at) + (number + 0.5) * thickness - 0.4 for at in rows[category]]
            errors = None if half is None else rows[half]
            axis.barh(heights, rows[value], thickness, xerr=errors, color=colour, label=name, ecolor="#444444")
        axis.set(xlabel=value, xscale=scale, yticks=range(len(names)), yticklabels=names)
        axis.set_ylim(len(names) - 0.4, -0.6)
        axis.grid(visible=False, axis="y")
        if scale == "linear":
            axis.locator_params(axis="x", nbins=6)
        axis.legend(fontsize=9, frameon=False, loc="upper center", bbox_to_anchor=(0.4, -0.13), ncols=2)

    return draw
