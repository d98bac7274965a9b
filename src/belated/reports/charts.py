"""Charts. A figure is a table of numbers and a way to draw it, so the CSV has exactly the numbers shown."""

import io
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, final

from belated.figure_style import COLOURS, canvas, plain_ticks

Columns = Mapping[str, Sequence[Any]]
Draw = Callable[[Any, Columns], None]

SIZE = (6.4, 4.2)  # inches, readable on a phone


@final
@dataclass(frozen=True, eq=False)
class Figure:
    """A chart. `columns` are its numbers, `draw` puts them on an axis, and `name` is the name of its files."""

    name: str
    title: str
    columns: Columns
    draw: Draw


def render(figure: Figure) -> dict[str, bytes]:
    """The figure as SVG and PNG."""
    images = {}
    with canvas(figsize=SIZE) as (drawn, axis):
        figure.draw(axis, figure.columns)
        axis.set_title(figure.title, fontsize=12, loc="left")
        for kind, settings in (("svg", {"metadata": {"Date": None}}), ("png", {"dpi": 150})):
            stream = io.BytesIO()
            drawn.savefig(stream, format=kind, **settings)
            images[kind] = stream.getvalue()
    return images


def shortened(name: str, length: int = 26) -> str:
    """A label that is short enough to leave room for the chart."""
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
    """A line for each value of `by`, with a band of +- `half`.

    Names with the same words before a colon share a colour. Names in `dashed` are dashed, and `marked` rows get a dot.
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
        plain_ticks(axis)
        if percent:
            axis.yaxis.set_major_formatter(lambda value, _: f"{value:.0%}")
        if len(parts) > 1:
            axis.legend(fontsize=9)

    return draw


def strip(value: str, category: str, by: str, *, limit: float) -> Draw:
    """A dot for each row, with a row for each category and a colour for each value of `by`. The limit is a line."""

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
        axis.legend(fontsize=9, loc="upper center", bbox_to_anchor=(0.5, -0.13), ncols=4)

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
    """Horizontal bars, in groups by category, with a colour for each value of `by`."""

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
        axis.legend(fontsize=9, loc="upper center", bbox_to_anchor=(0.4, -0.13), ncols=2)

    return draw
