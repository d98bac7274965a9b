"""Claim 3 is ZS20's Theorem 2 on the advanced tuning, with its two lemmas and sharper constants."""

import math
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from belated import bounds, lab
from belated.arrays import Integers
from belated.paper import grid
from belated.paper.algorithm_2 import algorithm_2
from belated.paper.claim import Check, Claim, ClaimKind, Effort, Finding, exactly
from belated.paper.claims.the_game import random_delays
from belated.reports import Figure, bars, columns_of
from belated.tunings import Advanced, schedule

PAPER, SHARPER, CERTIFICATE = "4 √(kn) + 10 max{m, 2 ln k}", "4 √(kn) + 3 m + 3 ln k", "the certificate"
BOUNDS: dict[str, grid.Bound] = {
    PAPER: bounds.theorem_2,
    SHARPER: bounds.theorem_2_sharp,
    CERTIFICATE: lambda n_arms, delays: bounds.certificate(n_arms, delays, Advanced()),
}


class Lemmas(NamedTuple):
    """Which statements hold for one delay sequence."""

    is_printed: bool  # the fast tuning is Algorithm 2 as printed
    is_single: bool  # at most one new skip a round
    are_few: bool  # |S| <= 2 sqrt(D~ ln k)


def lemmas_of(n_arms: int, delays: Integers) -> Lemmas:
    """Check all statements exactly."""
    fast, printed = schedule(Advanced(), n_arms, delays), algorithm_2(n_arms, delays.tolist())
    skipped = {s for s, t in enumerate(fast.skipped_in.tolist(), 1) if t}
    allowed = 2 * math.sqrt(max(0, fast.backlog[-1]) * math.log(n_arms))
    return Lemmas(
        fast.backlog.tolist() == printed.backlog and skipped == printed.skipped,
        max(map(len, printed.new_skips)) <= 1,
        len(skipped) <= allowed + 1e-9,
    )


def lemmas(effort: Effort) -> list[Check]:
    """Check the lemmas on random sequences."""
    generator, runs = np.random.default_rng([effort.seed, 2]), effort.pick(1_000, 20_000)
    found = [lemmas_of(int(generator.choice([2, 3, 8, 100])), random_delays(generator)) for _ in range(runs)]
    words = (
        "The tuning skips what Algorithm 2 as printed skips",
        "Lemma: at most one round is newly skipped in a round",
        "Lemma: |S| ≤ 2 √(D̃ ln k)",
    )
    return [
        exactly(what, all(results), f"{sum(results):,} of {runs:,} delay sequences")
        for what, results in zip(words, zip(*found, strict=True), strict=True)
    ]


def ordered(effort: Effort) -> Check:
    """Check certificate <= 4 sqrt(kn) + 3 m + 3 ln k <= Theorem 2, on games where the certificate is below n."""
    n = effort.pick(4_000, 40_000)
    sequences = [
        (n_arms, lab.Problem(lab.Wave(), rule, n_arms, n).draw_delays(seed))
        for rule in grid.DELAYS.values()
        for n_arms in (2, 10)
        for seed in effort.seeds(2, 16)
    ]
    triples = [[BOUNDS[name](*sequence) for name in (CERTIFICATE, SHARPER, PAPER)] for sequence in sequences]
    right = sum(triple == sorted(triple) for triple in triples)
    text = f"{right} of {len(triples)} delay sequences"
    return exactly("The certificate ≤ 4 √(kn) + 3 m + 3 ln k ≤ Theorem 2", right == len(triples), text)


def constants(games: Sequence[grid.ProblemRegrets]) -> Figure:
    """The three bounds and the largest regret over the losses, for every kind of delay. k = 10 and n is the largest."""
    n_rounds = max(game.problem.n_rounds for game in games if game.delays in grid.DELAYS)
    rows: list[tuple[str, str, float]] = []
    for name in grid.DELAYS:
        alike = [g for g in games if (g.delays, g.problem.n_arms, g.problem.n_rounds) == (name, 10, n_rounds)]
        delays = alike[0].problem.draw_delays(alike[0].seeds[0])
        rows += [(name, what, bound(10, delays)) for what, bound in BOUNDS.items()]
        rows.append((name, "largest measured regret", max(float(game.regrets.mean()) for game in alike)))
    columns = columns_of(("delays", "what", "regret"), rows)
    title = f"Three bounds, and the regret (k = 10, n = {n_rounds:,})"
    return Figure("theorem-2-constants", title, columns, bars("regret", "delays", "what"))


def investigate(effort: Effort) -> Finding:
    """Play the whole grid with the advanced tuning against three bounds, and check the lemmas."""
    games = grid.play_all(Advanced(), effort, grid.EARLY_COMEBACK)
    measured = {what: grid.against(games, bound) for what, bound in BOUNDS.items()}
    worst = [grid.worst(cells).ratio for cells in measured.values()]
    return Finding(
        "regret at most {:.2f} of Theorem 2, {:.2f} with 3 in place of 10, {:.2f} of the certificate".format(*worst),
        [grid.judge(f"Reg ≤ {what}", cells) for what, cells in measured.items()] + [*lemmas(effort), ordered(effort)],
        [
            grid.figure("theorem-2", "Theorem 2: measured regret / bound, a dot for each problem", measured[PAPER]),
            constants(games),
        ],
        [grid.table("Nearest to the certificate", measured[CERTIFICATE])],
        (
            "The paper says that at most one index satisfies the if. "
            "That holds for new ones, because skipped ones satisfy it again.",
        ),
    )


CLAIM = Claim(
    "theorem-2",
    "Theorem 2: the advanced tuning",
    ClaimKind.THEOREM,
    (
        "The advanced tuning (Algorithm 2) stops counting an observation once it has waited too long. Its regret is at "
        "most 4 √(kn) + 10 max{m, 2 ln k}, where m is the minimum of |S| + √(D_notS ln k) over all sets S of rounds "
        "to leave out. Two lemmas are behind it. At most one round is skipped in a round, and |S| ≤ 2 √(D̃ ln k).",
        "Belated proves 3 m + 3 ln k in place of 10 max{m, 2 ln k}, and a certificate below both.",
    ),
    investigate,
    cost=8,
)
