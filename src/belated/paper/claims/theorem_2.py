"""Claim 3 is ZS20's Theorem 2 on the advanced tuning, with its two lemmas and sharper constants."""

import math
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from belated import bounds, lab
from belated.arrays import Integers
from belated.bounds import clip
from belated.paper import grid
from belated.paper.algorithm_2 import algorithm_2
from belated.paper.claim import OBLIVIOUS, Check, Claim, ClaimKind, Effort, Finding, exactly
from belated.paper.claims.the_game import random_delays
from belated.reports import Figure, bars, columns_of
from belated.tunings import Advanced, schedule


def first_step(n_arms: int, delays: Integers) -> float:
    """The bound 4 sqrt(kn) + 5 sqrt(D~ ln k) on the way to Theorem 2."""
    total = max(0.0, float(schedule(Advanced(), n_arms, delays).backlog[-1]))  # a broken clock may count below 0
    return 4 * math.sqrt(n_arms * delays.size) + 5 * math.sqrt(total * math.log(n_arms))


PAPER, STEP = "4 √(kn) + 10 max{m, 2 ln k}", "4 √(kn) + 5 √(D̃ ln k)"
SHARPER, CERTIFICATE = "4 √(kn) + 3 m + 3 ln k", "the certificate"
BOUNDS: dict[str, grid.Bound] = {
    PAPER: bounds.theorem_2,
    STEP: first_step,
    SHARPER: bounds.theorem_2_sharp,
    CERTIFICATE: lambda n_arms, delays: bounds.certificate(n_arms, delays, Advanced()),
}


STEPS = {
    "is_printed": "The tuning skips what Algorithm 2 as printed skips",
    "is_single": "Lemma 7: at most one round is newly skipped in a round",
    "are_few": "Lemma 5: |S| ≤ 2 √(D̃ ln k)",
    "is_split": "D̃ is the sum of what each round counts for, with s + d_s ≥ t (printed with >)",
    "is_short": "A round counts for at most √(D̃ / ln k) rounds, or one more if it is skipped",
    "is_near": "√(D̃ ln k) ≤ 2 m, or at most 4 ln k",
}


class Steps(NamedTuple):
    """Which statements on the way to Theorem 2 hold for one delay sequence."""

    is_printed: bool
    is_single: bool
    are_few: bool
    is_split: bool
    is_short: bool
    is_near: bool


def steps_of(n_arms: int, delays: Integers) -> Steps:
    """Check all statements exactly."""
    fast, printed = schedule(Advanced(), n_arms, delays), algorithm_2(n_arms, delays.tolist())
    skipped = {s for s, t in enumerate(fast.skipped_in.tolist(), 1) if t}
    total, log_k = max(0, int(fast.backlog[-1])), math.log(n_arms)  # a broken clock may count below 0
    size, window = math.sqrt(total * log_k), math.sqrt(total / log_k)  # both printed under a root
    counted = counted_rounds(clip(delays), fast.skipped_in)
    is_skipped = np.isin(np.arange(1, delays.size + 1), list(skipped))
    return Steps(
        fast.backlog.tolist() == printed.backlog and skipped == printed.skipped,
        max(map(len, printed.new_skips)) <= 1,
        len(skipped) <= 2 * size + 1e-9,
        int(counted.sum()) == total,
        bool((counted <= window + is_skipped + 1e-9).all()),
        size <= max(2 * bounds.best_skipping(n_arms, delays).value, 4 * log_k) + 1e-9,
    )


def counted_rounds(delays: Integers, skipped_in: Integers) -> Integers:
    """How many rounds t with s < t <= s + d_s each round s is counted in, if it is skipped after round t."""
    rounds = np.arange(1, delays.size + 1)
    return np.where(skipped_in > 0, np.minimum(delays, skipped_in - rounds), delays)


def lemmas(effort: Effort) -> list[Check]:
    """Check the lemmas and the steps of the proof on random sequences."""
    generator, runs = np.random.default_rng([effort.seed, 2]), effort.pick(1_000, 20_000)
    found = [steps_of(int(generator.choice([2, 3, 8, 100])), random_delays(generator)) for _ in range(runs)]
    return [
        exactly(what, all(results), f"{sum(results):,} of {runs:,} delay sequences (no games)")
        for what, results in zip(STEPS.values(), zip(*found, strict=True), strict=True)
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
    text = f"{right} of {len(triples)} delay sequences (formulas, no games)"
    return exactly("The certificate ≤ 4 √(kn) + 3 m + 3 ln k ≤ Theorem 2", right == len(triples), text)


def constants(games: Sequence[grid.ProblemRegrets]) -> Figure:
    """The four bounds and the largest regret over the losses, for every kind of delay. k = 10 and n is the largest."""
    n_rounds = max(game.case.problem.n_rounds for game in games if game.case.delays in grid.DELAYS)
    rows: list[tuple[str, str, float]] = []
    for name in grid.DELAYS:
        shape = name, 10, n_rounds
        alike = [g for g in games if (g.case.delays, g.case.problem.n_arms, g.case.problem.n_rounds) == shape]
        delays = alike[0].case.problem.draw_delays(alike[0].case.seeds[0])
        rows += [(name, what, bound(10, delays)) for what, bound in BOUNDS.items()]
        rows.append((name, "largest measured regret", max(float(game.regrets.mean()) for game in alike)))
    columns = columns_of(("delays", "what", "regret"), rows)
    title = f"Four bounds, and the regret (k = 10, n = {n_rounds:,})"
    return Figure("theorem-2-constants", title, columns, bars("regret", "delays", "what"))


def investigate(effort: Effort) -> Finding:
    """Play the whole grid with the advanced tuning against three bounds, and check the lemmas."""
    games = grid.play_all(Advanced(), effort, grid.EARLY_COMEBACK)
    measured = {what: grid.against(games, bound) for what, bound in BOUNDS.items()}
    worst = [grid.worst(measured[what]).ratio for what in (PAPER, SHARPER, CERTIFICATE)]
    return Finding(
        "regret at most {:.2f} of Theorem 2, {:.2f} with 3 in place of 10, {:.2f} of the certificate, where a bad "
        "learner breaks them".format(*worst),
        [grid.judge(f"Reg ≤ {what}", cells) for what, cells in measured.items()] + [*lemmas(effort), ordered(effort)],
        [
            grid.figure("theorem-2", "Theorem 2: regret / bound, informative problems", measured[PAPER]),
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
        "to leave out. Losses and delays are fixed in advance. The proof has two steps. Reg ≤ 4 √(kn) + 5 √(D̃ ln k), "
        "where D̃ is D as the tuning counts it, and √(D̃ ln k) ≤ 2 m unless it is at most 4 ln k. Two lemmas are behind "
        "them. At most one round is skipped in a round, and |S| ≤ 2 √(D̃ ln k).",
        "Belated proves 3 m + 3 ln k in place of 10 max{m, 2 ln k}, and a certificate below both.",
    ),
    investigate,
    OBLIVIOUS,
    cost=8,
)
