"""Claim 5 computes the three terms of ZS20's proof along real games and checks each against its lemma."""

import math
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import partial

import numpy as np

from belated import lab
from belated.arrays import Floats
from belated.paper.claim import OBLIVIOUS, STANDARD_ERRORS, Check, Claim, ClaimKind, Effort, Finding, at_most, exactly
from belated.paper.facts import check_facts
from belated.paper.terms import Terms, follow
from belated.reports import Figure, columns_of, lines
from belated.tunings import Advanced, Simple, Tuning

TUNINGS: tuple[Tuning, ...] = (Simple(), Advanced())


def games(effort: Effort) -> dict[str, lab.Problem]:
    """Problems with changing losses and four kinds of delay."""
    k, n = 4, effort.pick(400, 3_000)
    return {
        "wave, fixed 30": lab.Problem(lab.Wave(), lab.Fixed(30), k, n),
        "wave, Pareto": lab.Problem(lab.Wave(half_period=40), lab.Pareto(0.5), k, n),
        "shifting, geometric 20": lab.Problem(lab.Shifting(phases=4), lab.Geometric(20), k, n),
        "comeback, held": lab.Problem(lab.Comeback(), lab.Held(0.05, 0.2), k, n),
    }


def drift(terms: Terms) -> Floats:
    """o_t / beta_t, 0 where nothing is outstanding."""
    with np.errstate(divide="ignore", invalid="ignore"):
        return np.where(terms.outstanding > 0, terms.outstanding / terms.beta, 0.0)


def largest_ratio(runs: Sequence[Terms], measured: Sequence[Floats], limits: Sequence[Floats]) -> float:
    """The largest measured / limit of any round. Amounts within rounding errors count as 0."""
    noise = np.array([run.noise for run in runs])
    return float(np.max(np.maximum(np.array(measured) - noise, 0.0) / np.maximum(np.array(limits), noise)))


def judge_lemmas(label: str, runs: Sequence[Terms], k: int) -> list[Check]:
    """Check Lemmas 2 and 3, which depend on S, on one problem with all seeds."""
    t = np.arange(1, runs[0].a.size + 1)
    penalties = [2 * np.sqrt(k * t) + run.beta * math.log(k) for run in runs]
    second = largest_ratio(runs, [run.c for run in runs], penalties)
    third = largest_ratio(runs, [run.b for run in runs], [run.b_limit for run in runs])
    largest = float(np.max([run.b_largest - run.noise for run in runs]))
    shares = [float(run.b.sum() / max(drift(run).sum(), 1e-9)) for run in runs]
    return [
        exactly(f"{label}: Lemma 2, (C) ≤ 2 √(kt) + β_t ln k", second <= 1, f"largest ratio {second:.3f}"),
        at_most(f"{label}: Lemma 3, sum of (B) / sum of o_t / β_t", shares, 1.0),
        exactly(f"{label}: (B) given what is missing, every round", third <= 1, f"largest ratio {third:.3f}"),
        exactly(f"{label}: Lemma 3, (B) ≤ 1 for every arm", largest <= 1, f"largest {largest:.3f}"),
    ]


def judge_game(label: str, runs: Sequence[Terms], k: int) -> list[Check]:
    """Check Lemma 1, the potential and the estimates, which do not depend on S."""
    t = np.arange(1, runs[0].a.size + 1)
    first = largest_ratio(runs, [run.a for run in runs], [np.sqrt(k / t)] * len(runs))
    least = float(np.min([run.a + run.noise for run in runs]))
    attained = float(np.max([np.abs(run.conjugate_gap) / run.noise for run in runs]))
    gap = float(np.max([run.estimate_gap for run in runs]))
    chance = math.sqrt(sum(float(run.variance.sum()) for run in runs))
    errors = abs(sum(float(run.bias.sum()) for run in runs)) / chance if chance > 0 else math.inf
    return [
        exactly(f"{label}: Lemma 1, 0 ≤ (A) ≤ √(k/t)", least >= 0 and first <= 1, f"largest ratio {first:.3f}"),
        exactly(
            f"{label}: x_t attains the potential, Φ_t(Lobs) + ⟨x_t, Lobs⟩ + F_t(x_t) = 0",
            attained <= 10,
            f"within {attained:.2g} rounding errors",
        ),
        exactly(f"{label}: Lobs is the sum of loss / probability", gap <= 1e-9, f"largest relative gap {gap:.1e}"),
        exactly(
            f"{label}: the estimates are unbiased", errors <= STANDARD_ERRORS, f"{errors:.1f} standard errors away"
        ),
    ]


def panel(letter: str, measured: tuple[str, Floats], limit: tuple[str, Floats], scale: str = "linear") -> Figure:
    """A figure of a term and its limit along the rounds."""
    rows = [(name, t, value) for name, values in (measured, limit) for t, value in enumerate(values.tolist(), 1)]
    draw = lines("round", "regret", "what", scales=(scale, scale), dashed=(limit[0],))
    title = f"Term ({letter}) and its lemma (wave, fixed 30)"
    return Figure(f"proof-{letter}", title, columns_of(("what", "round", "regret"), rows), draw)


def figures(runs: Sequence[Terms], k: int) -> list[Figure]:
    """Figures of the three terms, averaged over the seeds."""
    t = np.arange(1, runs[0].a.size + 1)
    a, b, c, beta = (np.mean([getattr(run, name) for run in runs], axis=0) for name in ("a", "b", "c", "beta"))
    drifts = np.mean([drift(run) for run in runs], axis=0)
    penalty = 2 * np.sqrt(k * t) + beta * math.log(k)
    return [
        panel("A", ("(A) without delay", a), ("√(k/t)", np.sqrt(k / t)), "log"),
        panel("B", ("(B) by the delay, summed", np.cumsum(b)), ("Σ o_t / β_t", np.cumsum(drifts))),
        panel("C", ("(C) the penalty", c), ("2 √(kt) + β_t ln k", penalty)),
    ]


def investigate(effort: Effort) -> Finding:
    """Follow every game with both tunings and every seed."""
    checks: list[Check] = []
    shown: list[Figure] = []
    kinds = [(name, problem, tuning) for name, problem in games(effort).items() for tuning in TUNINGS]
    with ThreadPoolExecutor(effort.workers) as pool:
        for name, problem, tuning in effort.watch(kinds):
            label, k = f"{type(tuning).__name__.lower()}, {name}", problem.n_arms
            for words, left_out in sets(problem).items():
                one = partial(follow, tuning, problem, effort=effort, left_out=left_out)
                runs = list(pool.map(one, effort.seeds(8, 64)))
                checks += judge_lemmas(f"{label}{words}", runs, k)
                if not left_out:
                    checks += judge_game(label, runs, k)
                    shown = shown or figures(runs, k)
    facts = check_facts(effort)
    return Finding(
        f"every lemma holds in every round of {len(kinds)} kinds of game, with S empty and not, and {len(facts)} facts "
        "of the appendix hold at random points",
        [*facts, *checks],
        shown,
    )


def sets(problem: lab.Problem) -> dict[str, range]:
    """The sets S of rounds that are left out, in words."""
    return {"": range(0), ", S every third round": range(3, problem.n_rounds + 1, 3)}


CLAIM = Claim(
    "proof-terms",
    "The proof, term by term",
    ClaimKind.THEOREM,
    (
        "The proof splits the regret into three terms. (A) is what a learner without delay would pay in the round, (B) "
        "is what the delay adds, and (C) is a penalty. Lemma 1 says (A) ≤ √(k/t). Lemma 2 says (C) ≤ 2 √(kn) + β_n "
        "ln k. Lemma 3 says (B) ≤ min{1, o_t / β_t} in expectation. Here all three are computed along games with the "
        "convex conjugates of the proof. (A) and (B) are exact expectations over the arm drawn. With a set S the "
        "rounds of S are left out of (B) and (C), and o_t counts only other rounds.",
        "(A) + (B) + (C) is the regret for any potential, so that is not judged. Judged is that the distribution the "
        "game draws from attains the potential. A wrong potential or a wrong distribution fails that. The Facts of the "
        "appendix are tried at random points, with the signs that are right.",
        "Losses and delays are fixed in advance, as in every lemma of the paper.",
    ),
    investigate,
    OBLIVIOUS,
    cost=3,
)
