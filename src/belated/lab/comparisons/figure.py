"""The figure of a comparison."""

import itertools
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from belated.figure_style import COLOURS, canvas, plain_ticks
from belated.lab.comparisons.row import Row

TITLES = {"log": "log scale, triangles: the bounds", "linear": "linear scale"}


def draw(rows: Sequence[Row], title: str, path: Path) -> None:
    """Mean regret with 95% bands, once log-log with the bounds at the end (triangles) and once linear."""
    styles = [{"color": colour, "linestyle": dash} for dash in ("-", "--", ":", "-.") for colour in COLOURS]
    with canvas(1, 2, figsize=(13, 5.2)) as (figure, axes):
        for scale, axis in zip(("log", "linear"), axes, strict=True):
            for row, style in zip(rows, itertools.cycle(styles), strict=False):
                _curve(axis, row, style, scale)
            axis.set(xscale=scale, yscale=scale, xlabel="round", ylabel="regret", title=TITLES[scale])
            plain_ticks(axis)
        figure.legend(*axes[1].get_legend_handles_labels(), loc="outside right upper", fontsize=9)
        figure.suptitle(title)
        figure.savefig(path, dpi=120)


def _curve(axis: Any, row: Row, style: dict[str, Any], scale: str) -> None:
    rounds, mean, half = row.curves.checkpoints, row.curves.mean, np.nan_to_num(row.curves.interval)
    shown = mean > 0 if scale == "log" else np.full(mean.size, fill_value=True)
    label = row.algorithm.name if row.bound is None else f"{row.algorithm.name} (bound {row.bound:,.0f})"
    axis.plot(rounds[shown], mean[shown], label=label, linewidth=1.6, **style)
    low = np.maximum(mean - half, mean * 0.1) if scale == "log" else mean - half
    axis.fill_between(rounds[shown], low[shown], (mean + half)[shown], color=style["color"], alpha=0.18, linewidth=0)
    if row.bound and scale == "log":
        axis.plot(rounds[-1], row.bound, marker="v", color=style["color"], markersize=7, clip_on=False)
