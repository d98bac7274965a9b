"""Claim 12 shows where ignoring delays fails and where it wins, and how the shadow does on both."""

import numpy as np

from belated import lab
from belated.paper.claim import OBLIVIOUS, Check, Claim, ClaimKind, Effort, Finding, at_most
from belated.reports import Figure, Table, bars, columns_of, lines
from belated.tunings import Advanced, Shadow, Simple, Tsallis, Tuning

Pair = tuple[str, str]  # problem and tuning
BLIND, CAREFUL = "ignores delays", "advanced"
FAILS, WINS = "wave, feedback 100 late", "coin flips, Pareto delays"
TUNINGS: dict[str, Tuning] = {
    BLIND: Tsallis(),
    "simple": Simple(),
    CAREFUL: Advanced(),
    "shadow (beyond the paper)": Shadow(),
}
PROBLEMS: dict[str, tuple[lab.Losses, lab.Delays]] = {
    FAILS: (lab.Wave(), lab.Fixed(100)),
    "wave, 5% never reported": (lab.Wave(), lab.Lost(0.05, 100)),
    "drifting sine, 100 late": (lab.Sine(), lab.Fixed(100)),
    "shifting best arm": (lab.Shifting(), lab.Geometric(100)),
    WINS: (lab.Bernoulli(gap=0.1), lab.Pareto(0.5)),
    "constrained adversary": (lab.Constrained(), lab.Geometric(100)),
}


def certificates(name: str, effort: Effort) -> tuple[Figure, Check]:
    """The regret of the shadow beside its two certificates."""
    n = effort.pick(5_000, 20_000)
    problem = lab.Problem(*PROBLEMS[name], n_arms=10, n_rounds=n)
    at = np.linspace(n // 25, n, 25).astype(int).tolist()
    certified = lab.certify(Shadow(), problem, effort.seeds(8, 32), checkpoints=at)
    parts = {
        "regret": certified.regret,
        "measured certificate": certified.measured,
        "proven certificate": certified.proven,
    }
    columns = {
        "what": [part for part in parts for _ in at],
        "round": at * len(parts),
        "regret": [value for values in parts.values() for value in values.mean(axis=0).tolist()],
    }
    slug = "wave" if name == FAILS else "coin-flips"
    figure = Figure(f"certificates-{slug}", f"Shadow on {name}", columns, lines("round", "regret", "what"))
    below = certified.regret[:, -1] - certified.measured[:, -1]
    return figure, at_most(f"Beyond the paper: regret minus measured certificate, {name}", below, 0.0)


def figure(games: dict[Pair, lab.Curves], n_rounds: int) -> Figure:
    """A figure with bars for each problem."""
    rows = [(*pair, float(curves.mean[-1]), float(curves.interval[-1])) for pair, curves in games.items()]
    columns = columns_of(("problem", "tuning", "regret", "half width"), rows)
    draw = bars("regret", "problem", "tuning", half="half width")
    return Figure("ignoring-delays", f"Regret (k = 10, n = {n_rounds:,})", columns, draw)


def table(games: dict[Pair, lab.Curves]) -> Table:
    """A table of the regrets."""
    cells = {pair: f"{curves.mean[-1]:,.0f} ± {curves.interval[-1]:,.0f}" for pair, curves in games.items()}
    rows = [(name, *(cells[name, label] for label in TUNINGS)) for name in PROBLEMS]
    return Table("Regret and 95% interval", ("problem", *TUNINGS), rows)


def investigate(effort: Effort) -> Finding:
    """Play four tunings on six problems, and compute both certificates on two of them."""
    n, seeds = effort.pick(10_000, 50_000), effort.seeds(6, 32)
    honest = effort._replace(saboteur=None)  # the learner that ignores delays is the yardstick
    games = {
        (name, label): (honest if label == BLIND else effort).play(tuning, lab.Problem(*rules, 10, n), seeds)
        for name, rules in PROBLEMS.items()
        for label, tuning in TUNINGS.items()
    }
    ends = {pair: curves.expected[:, -1] for pair, curves in games.items()}
    on_wave, on_flips = certificates(FAILS, effort), certificates(WINS, effort)
    costs = [ends[name, BLIND].mean() / max(ends[name, CAREFUL].mean(), 1.0) for name in (FAILS, WINS)]
    guesses = lab.play("uniform", lab.Problem(*PROBLEMS[WINS], 10, n), seeds, checkpoints=[n]).expected[:, -1]
    late, calm = ends[FAILS, CAREFUL] - ends[FAILS, BLIND] / 2, ends[WINS, BLIND] - ends[WINS, CAREFUL]
    return Finding(
        "ignoring delays costs {:.1f} times the advanced tuning's regret on the wave, {:.1f} on coin flips".format(
            *costs
        ),
        [
            at_most(f"Advanced minus half of Tsallis, which ignores delays, {FAILS}", late, 0),
            at_most(f"Tsallis, which ignores delays, minus advanced, {WINS}", calm, 0),
            at_most(f"Advanced minus 0.9 of uniform choices, {WINS}", ends[WINS, CAREFUL] - 0.9 * guesses, 0),
            on_wave[1],
            on_flips[1],
        ],
        [figure(games, n), on_wave[0], on_flips[0]],
        [table(games)],
    )


CLAIM = Claim(
    "ignoring-delays",
    "Where ignoring delays fails, and where it wins",
    ClaimKind.MEASUREMENT,
    (
        "ZS20's guarantee is for the worst case. If the world changes while feedback is outstanding, a learner that "
        "ignores delays is always late. If nothing changes, caution costs something and gains nothing, and ignoring "
        "delays wins.",
        "Two things here are beyond the paper. The shadow, Belated's default tuning, runs a bold and a careful learner "
        "side by side and follows the one that is ahead. The measured certificate bounds the regret from a run's own "
        "data and is true on average. The proven certificate is true for all losses.",
    ),
    investigate,
    OBLIVIOUS,
    cost=3,
)
