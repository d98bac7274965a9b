"""Claim 1 is the game (ZS20, Section 2). Outstanding counts add up to D, and the tunings are proper and anytime."""

import numpy as np

from belated import lab
from belated.arrays import Floats, Integers
from belated.bounds import clip
from belated.learner.ftrl import FTRL
from belated.paper.claim import OBLIVIOUS, Check, Claim, ClaimKind, Effort, Finding, exactly
from belated.paper.grid import DELAYS
from belated.tunings import Advanced, Simple, Tuning, outstanding_counts, schedule

TUNINGS: tuple[Tuning, ...] = (Simple(), Advanced())


def random_delays(generator: np.random.Generator) -> Integers:
    """A short random sequence with small and large delays."""
    n = int(generator.integers(2, 60))
    return generator.integers(0, int(generator.choice([2, 5, n, 3 * n])), n)


def counts_add_up(delays: Integers) -> bool:
    """Whether o_t = #{ s < t : s + d_s >= t } holds, counted one by one, and the sum is D."""
    counts = [sum(s + delays[s] >= t for s in range(t)) for t in range(delays.size)]
    return bool(outstanding_counts(delays).tolist() == counts and sum(counts) == clip(delays).sum())


def is_proper(tuning: Tuning, delays: Integers, generator: np.random.Generator) -> bool:
    """Whether both rates never decrease, and rates up to t do not depend on anything unknown before round t."""
    n_arms, n = int(generator.integers(2, 30)), delays.size
    rates = schedule(tuning, n_arms, delays)
    t = int(generator.integers(1, n + 1))
    rounds = np.arange(1, n + 1)
    is_known = rounds + delays < t
    other = np.where(is_known, delays, np.maximum(t - rounds, 0) + generator.integers(0, n, n))
    again = schedule(tuning, n_arms, other)
    is_rising = bool((np.diff(rates.alpha) >= 0).all() and (np.diff(rates.beta) >= 0).all())
    is_same = (rates.alpha[:t] == again.alpha[:t]).all() and (rates.beta[:t] == again.beta[:t]).all()
    return is_rising and bool(is_same)


def arms_of(tuning: Tuning, delays: Integers, losses: Floats, seed: int, effort: Effort) -> tuple[Integers, Floats]:
    """The arms and expected losses of a compiled game."""
    n, k = losses.shape
    game = effort.game(tuning, lab.Problem(lab.GivenLosses(losses), lab.GivenDelays(delays), k, n), delays, seed)
    expected, _ = game.play(losses)
    return game.arms.astype(np.int64), expected


def learner_arms(tuning: Tuning, delays: Integers, losses: Floats, seed: int) -> list[int]:
    """The arms that the learner draws through ask and tell."""
    learner, due, arms = FTRL(losses.shape[1], tuning, seed=seed), {}, []  # type: ignore[var-annotated]
    for t, delay in enumerate(delays.tolist()):
        decision = learner.ask()
        arms.append(decision.arm)
        due.setdefault(t + delay, []).append((decision.round, float(losses[t, decision.arm])))
        for report in due.pop(t, []):
            learner.tell(*report)
    return arms


def is_anytime(tuning: Tuning, delays: Integers, seed: int, prefix: int, effort: Effort) -> bool:
    """Whether a longer game begins with the shorter one, bit for bit, and the learner plays the same arms."""
    losses = np.random.default_rng([seed, 3]).random((delays.size, 5))
    arms, expected = arms_of(tuning, delays, losses, seed, effort)
    short = arms_of(tuning, delays[:prefix], losses[:prefix], seed, effort)
    is_same = (arms[:prefix] == short[0]).all() and (expected[:prefix] == short[1]).all()
    return bool(is_same) and learner_arms(tuning, delays[:prefix], losses[:prefix], seed) == short[0].tolist()


def tally(what: str, results: list[bool]) -> Check:
    """Check that all results are true."""
    return exactly(what, all(results), f"{sum(results):,} of {len(results):,}")


def investigate(effort: Effort) -> Finding:
    """Check counts and rates on random short sequences, and prefixes on every kind of delay."""
    generator = np.random.default_rng([effort.seed, 1])
    sequences = [random_delays(generator) for _ in range(effort.pick(1_000, 20_000))]
    n = effort.pick(2_000, 20_000)
    games = [
        (tuning, lab.Problem(lab.Wave(), rule, 5, n).draw_delays(seed), seed)
        for rule in DELAYS.values()
        for tuning in TUNINGS
        for seed in effort.seeds(2, 8)
    ]
    checks = [
        tally("The outstanding counts are right, and their sum is D", [counts_add_up(delays) for delays in sequences]),
        tally(
            "Both tunings are proper, so rates never fall and do not use the future",
            [is_proper(tuning, delays, generator) for delays in sequences for tuning in TUNINGS],
        ),
        tally(
            "Both are anytime, so a longer game begins with the shorter one bit for bit, compiled or with ask and tell",
            [is_anytime(*game, n // 3, effort) for game in games],
        ),
    ]
    return Finding(f"exact on {len(sequences):,} delay sequences and {len(games)} games", checks)


CLAIM = Claim(
    "the-game",
    "The game and its tunings",
    ClaimKind.THEOREM,
    (
        "In round t the learner has o_t = #{s < t : s + d_s ≥ t} observations outstanding, and these counts add up to "
        "the total delay D. Both learning-rate rules, simple and advanced, are proper. They never decrease and use "
        "only what is known at the start of the round. So neither the horizon nor a delay has to be known in advance, "
        "and a longer game begins with the same rounds.",
    ),
    investigate,
    OBLIVIOUS,
    cost=1,
)
