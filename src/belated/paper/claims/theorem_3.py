"""Claim 4 is ZS20's Theorem 3. Any set S of rounds may be left out of the sum, at a price of 1 each."""

import itertools
import math
from collections.abc import Callable, Collection
from typing import NamedTuple

import numpy as np

from belated import bounds, lab
from belated.arrays import Floats, Integers
from belated.bounds import clip
from belated.paper import grid
from belated.paper.claim import OBLIVIOUS, Check, Claim, ClaimKind, Effort, Finding, exactly
from belated.paper.claims.theorem_1 import Cautious
from belated.reports import Figure, Table, columns_of, lines
from belated.tunings import Advanced, Schedule, Simple, SquareRoot, Tuning, schedule


def longest(delays: Integers, size: int) -> list[int]:
    """The rounds with the longest delays."""
    return [int(s) + 1 for s in np.argsort(-clip(delays), kind="stable")[:size]]


def missing_costs(delays: Integers, rates: Schedule) -> Floats:
    """H_s of every round s, the sum of 1 / beta_t over the rounds t in which s is missing."""
    rounds = np.arange(1, delays.size + 1)
    with np.errstate(divide="ignore"):
        sums = np.append(
            0.0, np.cumsum(np.minimum(1 / rates.beta, 2.0))
        )  # a term above 1 decides, and 2 keeps it finite
    return np.asarray(sums[rounds + clip(delays)] - sums[rounds])


def best_set(delays: Integers, rates: Schedule) -> list[int]:
    """The set { s : H_s > 1 } of the rounds that cost more to miss than to leave out."""
    return [int(s) + 1 for s in np.flatnonzero(missing_costs(delays, rates) > 1)]


class Oracle(Tuning):
    """A constant rate for a set S that is known in advance. beta = sqrt(D_notS / ln k)."""

    elementwise = True

    def __init__(self, remaining_delay: int) -> None:
        self.remaining_delay = remaining_delay

    def rates(
        self, n_arms: int, round: int, outstanding: int, backlog: int, sqrt: SquareRoot = math.sqrt
    ) -> tuple[float, float]:
        return sqrt(round), math.sqrt(self.remaining_delay / math.log(n_arms)) + 0.0 * round


class OracleChoice(NamedTuple):
    """The set S that is best for the oracle, the delay that remains, and its bound."""

    size: int
    remaining_delay: int
    bound: float


def best_for_oracle(n_arms: int, delays: Integers) -> OracleChoice:
    """Minimise 4 sqrt(kn) + |S| + 2 sqrt(D_notS ln k). For each size the best S holds the longest delays."""
    longest_first = np.sort(clip(delays))[::-1]
    remaining = longest_first.sum() - np.append(0, np.cumsum(longest_first))
    values = np.arange(remaining.size) + 2 * np.sqrt(remaining * math.log(n_arms))
    size = int(values.argmin())
    return OracleChoice(size, int(remaining[size]), 4 * math.sqrt(n_arms * delays.size) + float(values[size]))


def oracle(effort: Effort) -> list[Check]:
    """Play the oracle's constant rate. It has to know D_notS, so each delay sequence has its own tuning."""
    cells, orders = [], []
    for case in cases(effort):
        k, delays = case.problem.n_arms, case.problem.draw_delays(case.seeds[0])
        best = best_for_oracle(k, delays)
        tuning = Oracle(best.remaining_delay)
        beta = schedule(tuning, k, delays).beta
        orders.append(bounds.theorem_3(k, delays, beta, longest(delays, best.size)) <= best.bound * (1 + 1e-12))
        game = grid.play(tuning, with_delays(case, delays), effort)
        cells += grid.against([game], lambda n_arms, delays: best_for_oracle(n_arms, delays).bound)
    return [
        grid.judge("Reg ≤ 4 √(kn) + |S| + 2 √(D_notS ln k), the oracle that knows S and D_notS", cells),
        exactly(
            "Theorem 3 with the oracle's rate is at most that (formulas, no games)",
            all(orders),
            f"{sum(orders)} of {len(orders)} delay sequences",
        ),
    ]


def with_delays(case: grid.Case, delays: Integers) -> grid.Case:
    """The same case with one delay sequence for all seeds."""
    old = case.problem
    return case._replace(problem=lab.Problem(old.losses, lab.GivenDelays(delays), old.n_arms, old.n_rounds))


SKIPPED = "S = what the tuning skips"
SETS: dict[str, Callable[[int, Integers, Schedule], list[int]]] = {
    "S empty": lambda _k, _delays, _rates: [],
    SKIPPED: lambda _k, _delays, rates: [s for s, t in enumerate(rates.skipped_in, 1) if t],
    "S = the best for m": lambda k, delays, _rates: longest(delays, bounds.best_skipping(k, delays).rounds),
    "S = every tenth round": lambda _k, delays, _rates: list(range(10, delays.size + 1, 10)),
    "S = the best for this rule": lambda _k, delays, rates: best_set(delays, rates),
}


def sets_for(tuning: Tuning) -> list[str]:
    """The names of the sets that differ. A tuning that skips nothing has one less."""
    return [name for name in SETS if name != SKIPPED or not math.isinf(tuning.patience(10))]


def bound_with(name: str, tuning: Tuning) -> grid.Bound:
    """The bound of Theorem 3 with one of the sets."""

    def bound(n_arms: int, delays: Integers) -> float:
        rates = schedule(tuning, n_arms, delays)
        return bounds.theorem_3(n_arms, delays, rates.beta, SETS[name](n_arms, delays, rates))

    return bound


def cost_of(chosen: Collection[int], costs: Floats) -> float:
    """|S| + sum of H_s over the rounds outside S, an upper bound on the last two terms of Theorem 3."""
    return len(chosen) + math.fsum(cost for s, cost in enumerate(costs.tolist(), 1) if s not in chosen)


def exhaustive(effort: Effort) -> Check:
    """Check on short games that no set is cheaper than the best one, and that the theorem's bound is not larger."""
    generator, right, runs = np.random.default_rng([effort.seed, 4]), 0, effort.pick(20, 200)
    sets = [chosen for size in range(9) for chosen in itertools.combinations(range(1, 9), size)]
    for _ in range(runs):
        delays, n_arms = generator.integers(0, 9, 8), int(generator.choice([2, 8, 100]))
        rates = schedule(Simple(), n_arms, delays)
        costs, best = missing_costs(delays, rates), best_set(delays, rates)
        plain = 4 * math.sqrt(n_arms * 8) + float(rates.beta[-1]) * math.log(n_arms)
        is_least = cost_of(best, costs) <= min(cost_of(chosen, costs) for chosen in sets) + 1e-9
        right += is_least and bounds.theorem_3(n_arms, delays, rates.beta, best) <= plain + cost_of(best, costs) + 1e-9
    return exactly(
        "The best set is the best of all 256, with 8 rounds (formulas, no games)",
        right == runs,
        f"{right} of {runs} delay sequences",
    )


def curve(effort: Effort) -> Figure:
    """A figure of the regret, and of the bound against |S| when the longest delays are left out."""
    n_arms, n_rounds, rule = 10, effort.pick(8_000, 100_000), lab.Pareto(0.5)
    rows = []
    for tuning in (Simple(), Advanced()):
        problem = lab.Problem(lab.Bernoulli(gap=0.5), rule, n_arms, n_rounds)
        delays, name = problem.draw_delays(effort.seed), type(tuning).__name__.lower()
        rates = schedule(tuning, n_arms, delays)
        regret = float(effort.play(tuning, problem, effort.seeds(4, 32)).mean[-1])
        for size in np.unique(np.geomspace(1, n_rounds // 2, 40).astype(int)).tolist():
            bound = bounds.theorem_3(n_arms, delays, rates.beta, longest(delays, size))
            rows += [(f"{name}: bound", size, bound), (f"{name}: regret", size, regret)]
    columns = columns_of(("what", "|S|", "regret"), rows)
    draw = lines("|S|", "regret", "what", scales=("log", "linear"), dashed=("simple: regret", "advanced: regret"))
    return Figure("theorem-3", f"Leaving out the longest of Pareto delays (k = 10, n = {n_rounds:,})", columns, draw)


def cases(effort: Effort) -> list[grid.Case]:
    """Coin flips with every kind of delay, the comeback, and the long wave."""
    label, n, seeds = "coin flips, gap 0.9", effort.pick(16_000, 100_000), effort.seeds(4, 32)
    flips = [
        grid.Case(name, label, lab.Problem(grid.LOSSES[label], rule, 10, n), seeds, grid.worst_arm)
        for name, rule in grid.DELAYS.items()
    ]
    return [*flips, grid.comeback_case(grid.EARLY_COMEBACK, effort), grid.wave_case(effort)]


def investigate(effort: Effort) -> Finding:
    """Play three rules and judge five sets on every kind of delay."""
    checks, rows, header = [], [], ("rule and set", *(case[0] for case in cases(effort)))
    for tuning in (Simple(), Advanced(), Cautious()):
        games = [grid.play(tuning, case, effort) for case in effort.watch(cases(effort))]
        for name in sets_for(tuning):
            cells, label = grid.against(games, bound_with(name, tuning)), f"{type(tuning).__name__}, {name}"
            checks.append(grid.judge(label, cells))
            rows.append((label, *(f"{cell.bound:,.0f} ({cell.ratio:.2f})" for cell in cells)))
    return Finding(
        f"{len(rows)} pairs of rule and set on {len(header) - 1} kinds of delay, all below the bound",
        [*checks, *oracle(effort), exhaustive(effort)],
        [curve(effort)],
        [Table("Bound (and regret / bound)", header, rows)],
    )


CLAIM = Claim(
    "theorem-3",
    "Theorem 3: any set left out",
    ClaimKind.THEOREM,
    (
        "For every proper rule β_t and every set S of rounds the regret is at most 4 √(kn) + β_n ln k + |S| + "
        "Σ o_t / β_t over the rounds outside S, where o_t counts only rounds outside S. The learner does not need "
        "to know S. The theorem holds for all sets at once, and so for the best one. Losses and delays are fixed in "
        "advance.",
        "If S and the delay that remains were known, the constant rate √(D_notS / ln k) would give 4 √(kn) + |S| + "
        "2 √(D_notS ln k). The paper shows this oracle bound before Theorem 2, which comes within a constant of it "
        "without knowing anything.",
    ),
    investigate,
    OBLIVIOUS,
    cost=4,
)
