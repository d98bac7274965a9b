"""`make figures` draws the figures of the documents from games that it plays."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from belated import lab
from belated.arrays import Floats
from belated.figure_style import BLACK, BLUE, GREEN, GREY, ORANGE, canvas, plain_ticks
from belated.lab.plans import page
from belated.lab.plans.settings import DAY
from belated.reports.charts import render
from belated.tunings import Advanced, Means, Shadow, Simple, Tsallis, Tuning
from benchmarks import lag
from benchmarks.shadow import families

FOLDER = Path(__file__).parent.parent / "docs" / "figures"
PURPLE = "#9e7bc4"
REPLICAS = {1: GREY, 2: PURPLE, 4: "#6a3d9a", 8: "#3b1a63"}


class Look(NamedTuple):
    """How a tuning is drawn."""

    tuning: Tuning
    colour: str
    marker: str


TUNINGS = {
    "Tsallis (ignores delays)": Look(Tsallis(), GREY, "s"),
    "Simple": Look(Simple(), GREEN, "^"),
    "Advanced": Look(Advanced(), ORANGE, "D"),
    "Shadow": Look(Shadow(), PURPLE, "v"),
    "Means (default)": Look(Means(), BLUE, "o"),
}


def which_tuning(n_arms: int = 10, n_rounds: int = 50_000, seeds: range = range(1000, 1008)) -> None:
    """A row for each family of problems, a dot for each tuning. It shows the regret over the least of all five."""
    regrets: dict[str, list[float]] = {}
    for name, family in families(n_rounds).items():
        problem = lab.Problem(*family, n_arms, n_rounds)
        played = [lab.play(one.tuning, problem, seeds, checkpoints=[n_rounds], workers=2) for one in TUNINGS.values()]
        regrets[name] = [float(curves.mean[-1]) for curves in played]
    ratios = np.maximum(list(regrets.values()), np.sqrt(n_rounds))  # less regret than that is noise
    ratios /= ratios.min(axis=1, keepdims=True)
    with canvas(figsize=(9, 6.2)) as (figure, axis):
        draw_ratios(axis, list(regrets), ratios)
        title = f"{n_arms} arms, {n_rounds:,} rounds, {len(seeds)} games each; further left is better"
        axis.set_title(title, loc="left", fontsize=11)
        figure.legend(loc="outside lower center", ncols=5)
        save(figure, "which-tuning.png")


def draw_ratios(axis: Any, names: Sequence[str], ratios: Floats) -> None:
    """The dots, with a line between the problems that change while you wait and the others."""
    rows = np.arange(len(names))[::-1]
    axis.hlines(rows, 1, ratios.max(axis=1), color="#dddddd", zorder=1)
    for j, (name, (_, colour, marker)) in enumerate(TUNINGS.items()):
        size = 75 if j == len(TUNINGS) - 1 else 45
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
    axis.grid(visible=False, axis="y")


def certificates(n_arms: int = 10, n_rounds: int = 20_000, seeds: range = range(8)) -> None:
    """Regret, measured and proven certificate of the default learner on three problems."""
    problems = {
        "coin flips (gap 0.1), geometric delays of mean 100": (lab.Bernoulli(0.1), lab.Geometric(100)),
        "resonant wave, feedback 100 rounds late": (lab.Wave(), lab.Fixed(100)),
        "the same wave, 5% never reported": (lab.Wave(), lab.Lost(0.05, 100)),
    }
    at = np.unique(np.geomspace(50, n_rounds, 40).astype(int)).tolist()
    with canvas(1, 3, figsize=(13, 4.4), sharey=True) as (figure, axes):
        for axis, (title, family) in zip(axes, problems.items(), strict=True):
            problem = lab.Problem(*family, n_arms, n_rounds)
            draw_certificates(axis, lab.certify(Means(), problem, seeds, checkpoints=at))
            axis.set_title(title, fontsize=10)
        axes[0].set_ylabel(f"loss above the best arm's, mean of {len(seeds)} games (log scale)")
        axes[0].legend()
        figure.suptitle("what is really lost, what the run has measured, what is proven beforehand", fontsize=12)
        save(figure, "certificates.png")


def draw_certificates(axis: Any, certified: lab.Certified) -> None:
    """Three curves with their last values."""
    n_rounds = int(certified.checkpoints[-1])
    shown: Mapping[str, tuple[Floats, str]] = {
        "proven": (certified.proven, ORANGE),
        "measured": (certified.measured, BLUE),
        "regret": (certified.regret, BLACK),
    }
    for name, (values, colour) in shown.items():
        mean = values.mean(axis=0)
        axis.plot(certified.checkpoints, mean, color=colour, label=name)
        axis.text(n_rounds * 1.06, mean[-1], f"{mean[-1]:,.0f}", color=colour, va="center", fontsize=9)
    axis.set(xscale="log", yscale="log", xlabel="round", ylim=(5, 20_000), xlim=(50, n_rounds * 2.2))
    plain_ticks(axis)


def lag_and_delay(points: Sequence[lag.Point]) -> None:
    """A row for each tuning. Regret against the lag is on the left, against the effective delay on the right."""
    with canvas(2, 2, figsize=(13, 9), sharex="col") as (figure, axes):
        titles = {"Means": "Means (default)", "Advanced": "Advanced"}
        for row, (tuning, title) in zip(axes, titles.items(), strict=True):
            rows = [one for one in points if (one.losses, one.tuning) == ("coin flips", tuning)]
            against_lag(row[0], rows)
            against_delay(row[1], rows)
            row[0].set_title(f"{title}: the further behind, the more is lost", loc="left", fontsize=11)
            row[1].set_title(f"{title}: lag is delay, and the certificates count it", loc="left", fontsize=11)
        axes[1, 0].set_xlabel("lag in rounds (milliseconds, at 1,000 decisions a second)")
        axes[1, 1].set_xlabel("effective delay in rounds, on average (log scale)")
        about = f"{lag.N_ARMS} arms, {lag.N_ROUNDS:,} rounds of coin flips (gap 0.3)"
        late = f"feedback {lag.DELAY.mean:g} rounds late, mean of {len(lag.SEEDS)} games"
        figure.suptitle(f"what lag costs: {about}, {late}", fontsize=12)
        save(figure, "replicas.png")


def series(rows: Sequence[lag.Point], replicas: int) -> tuple[list[lag.Point], str, str]:
    """The points of a number of replicas, from no lag on, with their colour and marker."""
    ones = [one for one in rows if one.replicas == replicas or one.lag == 0]
    return ones, REPLICAS.get(replicas, GREEN), "o" if replicas in REPLICAS else "D"


def against_lag(axis: Any, rows: Sequence[lag.Point]) -> None:
    """A line for each number of replicas."""
    names = {lag.JOURNAL: "the service, 2 or more", 8: "8 replicas apart", 4: "4 apart", 2: "2 apart", 1: "1 replica"}
    ends = {}
    for replicas in names:
        ones, colour, marker = series(rows, replicas)
        lags, regrets = [one.lag for one in ones], [one.copies.mean for one in ones]
        if replicas == 1:
            lags, regrets = [0, max(lag.LAGS)], regrets * 2
        axis.plot(lags, regrets, marker=marker, color=colour, markersize=5)
        ends[replicas] = regrets[-1]
    axis.set(ylabel="regret: loss above the best arm's", xlim=(-15, max(lag.LAGS) * 1.52))
    axis.set_ylim(0, max(ends.values()) * 1.12)
    height = np.inf
    for replicas in sorted(ends, key=lambda one: -ends[one]):  # labels at the ends of the lines, moved apart
        height = min(ends[replicas], height - 0.055 * axis.get_ylim()[1])
        colour = series(rows, replicas)[1]
        axis.text(max(lag.LAGS) * 1.04, height, names[replicas], color=colour, va="center", fontsize=10)
    axis.set_xticks([0, *lag.LAGS[1:]])


def against_delay(axis: Any, rows: Sequence[lag.Point]) -> None:
    """All points on the curve of a single learner. The certificates of the service are above them."""
    service, _, _ = series(rows, lag.JOURNAL)
    delays = [one.delay for one in service]
    certificates = (
        ("proven certificate of the service", [one.proven for one in service], ORANGE),
        ("measured certificate of the service", [one.measured for one in service], BLUE),
    )
    for name, values, colour in certificates:
        axis.plot(delays, values, color=colour)
        axis.text(delays[2] * 0.95, values[2] * 1.1, name, color=colour, ha="right", va="bottom", fontsize=10)
    middle, half = (np.array([one.single[i] for one in service]) for i in (0, 1))
    axis.plot(delays, middle, color="black", linewidth=1)
    axis.fill_between(delays, middle - half, middle + half, color="black", alpha=0.12, linewidth=0)
    for replicas in (2, 4, 8, lag.JOURNAL):
        ones, colour, marker = series(rows, replicas)
        at, regrets = [one.delay for one in ones], [one.copies for one in ones]
        errors = [regret.half for regret in regrets]
        axis.errorbar(
            at, [one.mean for one in regrets], errors, fmt=marker, color=colour, markersize=6, elinewidth=1, zorder=3
        )
    text = "black line: a single learner with that delay\ndots: the copies of the left side, with 95% intervals"
    axis.text(delays[0], middle[0] * 0.72, text, ha="left", va="top", fontsize=10)
    axis.set(xscale="log", yscale="log", ylim=(30, 30_000))
    axis.set_xticks([10, 20, 50, 100, 200, 500], ["10", "20", "50", "100", "200", "500"])
    axis.set_yticks([100, 1000, 10_000], ["100", "1,000", "10,000"])
    axis.minorticks_off()


def plan() -> None:
    """When an experiment is decided, as in docs/plan.md."""
    settings = lab.PlanSettings(3, base_rate=0.1, difference=0.02, per_day=5000, delay=2 * DAY)
    drawn = render(page.figure(lab.plan(settings, workers=2)))
    (FOLDER / "plan.png").write_bytes(drawn["png"])
    print("docs/figures/plan.png")


def save(figure: Any, name: str) -> None:
    """Write a figure into the folder of the documents."""
    FOLDER.mkdir(exist_ok=True)
    figure.savefig(FOLDER / name, dpi=110)
    print(f"docs/figures/{name}")


if __name__ == "__main__":
    which_tuning()
    certificates()
    plan()
    lag_and_delay(lag.points())
