"""`make figures`: the figures of the documents, drawn from games played now."""

from pathlib import Path
from typing import Any

import matplotlib as mpl
import numpy as np

mpl.use("Agg")
from matplotlib import pyplot
from shadow import families

import belated
from belated import lab

FOLDER = Path(__file__).parent.parent / "docs" / "figures"
GREY, BLUE, ORANGE, GREEN = "#7f7f7f", "#1f77b4", "#ff7f0e", "#2ca02c"


def which_tuning(n_arms: int = 10, n_rounds: int = 50_000, seeds: range = range(1000, 1008)) -> None:
    """A row for each family of problems, a dot for each tuning: its regret over the least of all four."""
    tunings: dict[str, tuple[belated.Tuning, str, str]] = {
        "Tsallis (ignores delays)": (belated.Tsallis(), GREY, "s"),
        "Simple": (belated.Simple(), GREEN, "^"),
        "Advanced": (belated.Advanced(), ORANGE, "D"),
        "Shadow (default)": (belated.Shadow(), BLUE, "o"),
    }
    names = list(families(n_rounds))
    regrets = np.zeros((len(names), len(tunings)))
    for i, family in enumerate(families(n_rounds).values()):
        problem = lab.Problem(*family, n_arms, n_rounds)
        for j, (tuning, _, _) in enumerate(tunings.values()):
            regrets[i, j] = lab.play(tuning, problem, seeds, checkpoints=[n_rounds], workers=2).mean[-1]
    least = np.sqrt(n_rounds)  # less regret than that is noise
    ratios = np.maximum(regrets, least) / np.maximum(regrets, least).min(axis=1, keepdims=True)

    figure, axis = pyplot.subplots(figsize=(9, 6.2), layout="constrained")
    rows = np.arange(len(names))[::-1]
    axis.hlines(rows, 1, ratios.max(axis=1), color="#dddddd", zorder=1)
    for j, (name, (_, colour, marker)) in enumerate(tunings.items()):
        size = 75 if j == len(tunings) - 1 else 45
        axis.scatter(ratios[:, j], rows, color=colour, marker=marker, s=size, label=name, zorder=2 + j)
    axis.axvline(1, color="black", linewidth=0.8)
    calm = sum("wave" not in name and "sine" not in name and "block" not in name for name in names)
    axis.axhline(rows[calm] + 0.5, color="black", linewidth=0.8, linestyle=":")
    for text, row in (
        ("little changes while you wait", rows[0] + 0.3),
        ("the world swings while you wait", rows[calm]),
    ):
        axis.text(0.985, row + 0.45, text, ha="right", va="top", style="italic", transform=axis.get_yaxis_transform())
    axis.set(xscale="log", xlabel="times the regret of the best tuning on that problem (log scale)", yticks=rows)
    axis.set_xticks([1, 2, 5, 10, 20], ["1", "2", "5", "10", "20"])
    axis.set_yticklabels(names)
    axis.set_ylim(-0.7, len(names) - 0.1)
    axis.minorticks_off()
    axis.grid(visible=True, axis="x", alpha=0.25)
    title = f"{n_arms} arms, {n_rounds:,} rounds, {len(seeds)} games each; further left is better"
    axis.set_title(title, loc="left", fontsize=11)
    figure.legend(loc="outside lower center", ncols=4, frameon=False)
    save(figure, "which-tuning.png")


def certificates(n_arms: int = 10, n_rounds: int = 20_000, seeds: range = range(8)) -> None:
    """Regret, measured and proven certificate of the default learner on three problems."""
    problems = {
        "coin flips (gap 0.1), geometric delays of mean 100": (lab.Bernoulli(0.1), lab.Geometric(100)),
        "resonant wave, feedback 100 rounds late": (lab.Wave(), lab.Fixed(100)),
        "the same wave, 5% never reported": (lab.Wave(), lab.Lost(0.05, 100)),
    }
    figure, axes = pyplot.subplots(1, 3, figsize=(13, 4.4), layout="constrained", sharey=True)
    for axis, (title, family) in zip(axes, problems.items(), strict=True):
        problem = lab.Problem(*family, n_arms, n_rounds)
        at = np.unique(np.geomspace(50, n_rounds, 40).astype(int)).tolist()
        certified = lab.certify(belated.Shadow(), problem, seeds, checkpoints=at)
        shown = (("proven", certified.proven, ORANGE), ("measured", certified.measured, BLUE))
        for name, values, colour in (*shown, ("regret", certified.regret, "black")):
            mean = values.mean(axis=0)
            axis.plot(certified.checkpoints, mean, color=colour, label=name)
            axis.text(n_rounds * 1.06, mean[-1], f"{mean[-1]:,.0f}", color=colour, va="center", fontsize=9)
        axis.set(xscale="log", yscale="log", xlabel="round", title=title, ylim=(5, 20_000), xlim=(50, n_rounds * 2.2))
        axis.title.set_fontsize(10)
        axis.grid(visible=True, alpha=0.25)
    axes[0].set_ylabel(f"loss above the best arm's, mean of {len(seeds)} games (log scale)")
    axes[0].legend(frameon=False)
    figure.suptitle("what is really lost, what the run has measured, what is proven beforehand", fontsize=12)
    save(figure, "certificates.png")


def save(figure: Any, name: str) -> None:
    """Write a figure into the folder of the documents."""
    FOLDER.mkdir(exist_ok=True)
    figure.savefig(FOLDER / name, dpi=110)
    pyplot.close(figure)
    print(f"docs/figures/{name}")


if __name__ == "__main__":
    which_tuning()
    certificates()
