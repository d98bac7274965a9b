"""A bold learner on means, tried beside the shadow (`python -m benchmarks.means_search`, about ten minutes).

The shadow's bold policy learns from importance weights. This search replaces it by a policy on the arms' means, which
lost reports cannot mislead, and asks when a learner may trust means.

    bold      x_i in proportion to exp(-boldness n_i kl_i), kl_i from arm i's mean to the lowest one. With boldness 1
              this is minimum empirical divergence (Honda & Takemura 2011, Bian & Jun 2022)
    neutral   each mean includes 1 + sqrt(missing reports of the arm) reports of the average arm
    resets    an arm whose recent reports differ from its earlier ones beyond chance keeps only the recent ones. The
              recent window is at least `WAITS` times the number of outstanding rounds
    runs      while the world stands still, a residual says nothing about the next one. Once their products add up
              beyond chance, a fresh shadow decides for the rest of the game
    floor     an arm has a probability of at least floor / sqrt(k t)

Nothing here is part of the library. docs/theory/shadow-search.md has the figures.
"""

import math
import sys
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from belated import baselines, kernels, lab
from belated.arrays import Floats
from belated.lab.problems.losses import flip
from belated.tunings import Advanced, Shadow, Simple, Tsallis, schedule
from benchmarks.shadow_search import Made, problems, trap, walk

N, SEEDS, SIZES = 20_000, (11, 12, 13, 14), (2, 10, 50)
WINDOW, WAITS, FEWEST, RUN = 100, 4, 10, 32  # reports in the recent window, and in a run
COUNT, SUM, RECENT_COUNT, RECENT_SUM, MISSING = range(5)  # the rows of `means`
BOLD, CAREFUL = 0, 1
Links = NDArray[np.int32]


class Design(NamedTuple):
    """Thresholds in standard deviations. Infinite means never."""

    boldness: float = 1.5
    resets: float = math.inf
    runs: float = math.inf
    floor: float = 0.0


DESIGNS = {
    "shadow (the default today)": None,
    "means": Design(),
    "means, resets": Design(resets=4.0),
    "means, resets, runs": Design(resets=4.0, runs=4.0),
    "the same, floor 0.1": Design(resets=4.0, runs=4.0, floor=0.1),
}


@kernels.compiled
def _shrunk(means: Floats, x: Floats) -> float:
    """Write the arms' means, each with its neutral reports, into x. Returns the lowest."""
    total = seen = 0.0
    for i in range(x.shape[0]):
        if means[COUNT, i] > 0:
            total += means[SUM, i] / means[COUNT, i]
            seen += 1
    neutral = total / seen if seen > 0 else 0.5
    lowest = 1.0
    for i in range(x.shape[0]):
        extra = 1 + math.sqrt(means[MISSING, i])
        x[i] = (means[SUM, i] + extra * neutral) / (means[COUNT, i] + extra)
        lowest = min(lowest, x[i])
    return lowest


@kernels.compiled
def _bold(means: Floats, x: Floats, cdf: Floats, t: int, boldness: float, floor: float) -> None:
    """x_i in proportion to exp(-boldness n_i kl_i). kl(p, q) is close to (p - q)^2 / 2u(1 - u) at u = (2q + p) / 3."""
    k = x.shape[0]
    q = _shrunk(means, x)
    for i in range(k):
        n_i, u = means[COUNT, i] + 1 + math.sqrt(means[MISSING, i]), (2 * q + x[i]) / 3
        kl = (x[i] - q) ** 2 / (2 * u * (1 - u) + 1e-12)
        x[i] = math.exp(-min(600.0, boldness * n_i * kl))
    kernels.normalise(x, cdf)
    share = min(1.0, floor * math.sqrt(k / t))
    for i in range(k):
        x[i] = (1 - share) * x[i] + share / k
    kernels.normalise(x, cdf)


@kernels.compiled
def _learn(means: Floats, arm: int, loss: float, window: float, resets: float) -> None:
    """Take in a report, and forget the earlier ones if the recent ones contradict them."""
    keep = 1 - 1 / (window + 1)
    means[MISSING, arm] -= 1
    means[COUNT, arm] += 1
    means[SUM, arm] += loss
    means[RECENT_COUNT, arm] = means[RECENT_COUNT, arm] * keep + 1
    means[RECENT_SUM, arm] = means[RECENT_SUM, arm] * keep + loss
    count, recent = means[COUNT, arm], means[RECENT_COUNT, arm]
    if recent < FEWEST or count <= 2 * recent:
        return
    older = count - recent
    gap = means[RECENT_SUM, arm] / recent - (means[SUM, arm] - means[RECENT_SUM, arm]) / older
    pooled = (means[SUM, arm] + 1) / (count + 2)
    if gap * gap > resets * resets * pooled * (1 - pooled) * (1 / older + 0.5 / recent):
        means[COUNT, arm] = recent
        means[SUM, arm] = means[RECENT_SUM, arm]


@kernels.compiled
def _shadow(policies: Floats, cdf: Floats, alpha: float, beta: float, lead: float, squares: float) -> int:
    """Solve for both policies of the shadow. Returns the one that decides."""
    kernels.argmin(policies[BOLD], alpha, 0.0, 0)
    kernels.argmin(policies[CAREFUL], alpha, beta, 0)
    played = CAREFUL if lead > 1.5 * math.sqrt(1 + squares) else BOLD
    kernels.normalise(policies[played, kernels.X], cdf)
    return played


@kernels.compiled
def play(
    losses: Floats,
    lost: NDArray[np.bool_],
    uniforms: Floats,
    first: Links,
    following: Links,
    backlog: Floats,
    boldness: float,
    resets: float,
    runs: float,
    floor: float,
) -> float:
    """The sum of <x_t, l_t> over a whole game. lost[t, i] says that the report of arm i in round t never comes."""
    n, k = losses.shape
    means, bold, cdf = np.zeros((5, k)), np.empty(k), np.empty(-(-k // kernels.BLOCK))
    policies = np.zeros((2, kernels.ROWS, k))
    policies[:, kernels.V] = 0.5 * math.log(k)
    arms, x_drawn, advantage = np.zeros(n, np.int64), np.zeros(n), np.zeros(n)
    suffered = paid = run = products = product_squares = lead = squares = 0.0
    reported, start = 0, n  # `start` is the first round of the shadow
    for t in range(n):
        x = bold
        if t < start:
            _bold(means, bold, cdf, t + 1, boldness, floor)
        else:
            beta = 3 * math.sqrt((backlog[t] - backlog[start]) / math.log(k))
            x = policies[_shadow(policies, cdf, math.sqrt(t + 1.0 - start), beta, lead, squares), kernels.X]
        arm = kernels.draw(x, cdf, uniforms[t])
        arms[t], x_drawn[t] = arm, x[arm]
        advantage[t] = (policies[BOLD, kernels.X, arm] - policies[CAREFUL, kernels.X, arm]) / x[arm]
        means[MISSING, arm] += 1
        paid += kernels.expectation(x, losses[t])
        s = first[t]
        while s >= 0:
            a = arms[s]
            if not lost[s, a]:
                loss, mean = losses[s, a], suffered / reported if reported else 0.5
                residual = loss - (means[SUM, a] + 2 * mean) / (means[COUNT, a] + 2)
                products += residual * run
                product_squares += (residual * run) ** 2
                run = run * (1 - 1 / RUN) + residual
                if start == n and products > runs * math.sqrt(1 + product_squares):
                    start = t + 1
                counted = backlog[t] - backlog[t - 1] if t > 0 else 0.0
                _learn(means, a, loss, max(WINDOW, WAITS * counted), resets)
                if s >= start:
                    policies[:, kernels.LOSSES, a] += loss / x_drawn[s]
                    lead += (loss - mean) * advantage[s]
                    squares += ((loss - mean) * advantage[s]) ** 2
                suffered, reported = suffered + loss, reported + 1
            s = following[s]
    return paid


def regret(problem: lab.Problem, design: Design | None, lost: NDArray[np.bool_] | None = None) -> float:
    """The mean regret of a design over the seeds."""
    if design is None and lost is None:
        return float(lab.play(Shadow(), problem, SEEDS, checkpoints=[problem.n_rounds]).mean[-1])
    found = []
    for seed in SEEDS:
        delays = problem.draw_delays(seed)
        losses = np.ascontiguousarray(np.vstack(list(problem.loss_blocks(seed, delays))))
        nothing = np.zeros(losses.shape, np.bool_) if lost is None else lost
        backlog = schedule(Advanced(3.0), problem.n_arms, delays).backlog.astype(float)
        uniforms = np.random.default_rng(seed).random(problem.n_rounds)
        settings = design or Design(runs=-1.0)  # beyond chance at the first report: the shadow from then on
        paid = play(losses, nothing, uniforms, *kernels.arrivals(delays), backlog, *settings)
        found.append(paid - losses.sum(axis=0).min())
    return float(np.mean(found))


@dataclass(frozen=True)
class Coins(lab.Losses):
    """Coin flips. One arm, drawn at random, has a lower mean."""

    mean: float
    gap: float

    def blocks(self, n_arms: int, n_rounds: int, delay: int, generator: np.random.Generator) -> Iterator[Floats]:
        """The whole matrix."""
        means = np.full(n_arms, self.mean)
        means[generator.integers(n_arms)] -= self.gap
        yield flip(generator, np.broadcast_to(means, (n_rounds, n_arms)))


def moves(gap: float, phases: int) -> lab.Losses:
    """Coin flips whose best arm changes in every phase."""

    def make(k: int, n: int, _d: int, generator: np.random.Generator) -> Floats:
        best = np.cumsum(generator.integers(1, k, phases)) % k
        return flip(generator, np.where(np.arange(k) == best[np.arange(n) * phases // n, None], 0.5 - gap, 0.5))

    return Made(make)


def drift(turns: float) -> lab.Losses:
    """Means that swing slowly, each arm with a phase of its own."""

    def make(k: int, n: int, _d: int, generator: np.random.Generator) -> Floats:
        angle = np.arange(n)[:, None] / n * turns + generator.random(k)
        return flip(generator, 0.5 + 0.3 * np.sin(2 * np.pi * angle))

    return Made(make)


def riser(k: int, n: int, _d: int, generator: np.random.Generator) -> Floats:
    """The second arm becomes the best after a third of the game. The best until then stays as it is."""
    means = np.full((n, k), 0.6)
    means[:, 0], means[n // 3 :, 1] = 0.5, 0.35
    return flip(generator, means)


def groups() -> dict[str, dict[str, tuple[lab.Losses, lab.Delays]]]:
    """Worlds that stand still, that move, and the shadow's own search problems."""
    waits = {"no delay": lab.NoDelay(), "geometric 100": lab.Geometric(100), "fixed 1000": lab.Fixed(1000)}
    rates = ((0.05, 0.03), (0.5, 0.1), (0.7, 0.2), (0.95, 0.05), (0.3, 0.1), (0.9, 0.3))
    worlds = {"2 phases": moves(0.3, 2), "5 phases": moves(0.2, 5), "20 phases": moves(0.3, 20), "drift": drift(1)}
    worlds |= {"fast drift": drift(4), "walk": Made(walk), "trap": Made(trap), "riser": Made(riser)}
    return {
        "still": {f"{m} {g} {name}": (Coins(m, g), delays) for m, g in rates for name, delays in waits.items()},
        "moving": {f"{w} {name}": (rule, waits[name]) for w, rule in worlds.items() for name in list(waits)[:2]},
        "hard": problems(N),
    }


def ratios(group: str, problem: lab.Problem) -> list[float]:
    """The regret of every design over its rival's. At least sqrt(n) each, unless the world stands still."""
    rivals: dict[str, tuple[Any, ...]] = {"moving": (Tsallis(), Shadow()), "hard": (Tsallis(), Simple(), Advanced())}
    players = rivals.get(group, (lambda k, seed: baselines.ThompsonSampling(k, seed=seed),))
    best = min(float(lab.play(player, problem, SEEDS, checkpoints=[N]).mean[-1]) for player in players)
    least = 5.0 if group == "still" else math.sqrt(N)
    return [max(regret(problem, design), least) / max(best, least) for design in DESIGNS.values()]


def lost_reports() -> None:
    """Print the regret with lost reports of one arm or of all but the best, over that with nothing lost."""
    print("regret with a share of the reports lost / with nothing lost, the worst of three problems")
    for k in (2, 10):
        for share in (0.1, 0.3, 0.5):
            cells = [max(_with_lost(design, k, share)) for design in DESIGNS.values()]
            print(f"  k = {k:2}, {share:.0%} lost: " + "".join(f"{cell:8.2f}" for cell in cells))


def _with_lost(design: Design | None, k: int, share: float) -> Iterator[float]:
    for mean, gap in ((0.6, 0.1), (0.95, 0.05), (0.1, 0.05)):
        problem = lab.Problem(lab.Bernoulli(gap, mean), lab.Fixed(10), k, N)
        whole = regret(problem, design, np.zeros((N, k), np.bool_))
        chance = np.random.default_rng(1).random((N, k)) < share
        for victims in (np.arange(k) == 1, np.arange(k) == 0, np.arange(k) > 0):
            yield regret(problem, design, chance & victims) / whole


def main() -> None:
    """Print the worst ratio and the geometric mean of each design, for each group and number of arms."""
    lost_reports()
    columns: dict[str, Floats] = {}
    for group, worlds in groups().items():
        for k in SIZES:
            found = [lab.Problem(*world, k, N) for world in worlds.values()]
            with ThreadPoolExecutor(2) as pool:
                rows = list(pool.map(lambda problem, group=group: ratios(group, problem), found))
            columns[f"{group}, k = {k}"] = np.array(rows)
            print(f"\r  {group}, k = {k}", end="", file=sys.stderr, flush=True)
    print("\rratio to Thompson sampling (still), to the best of blind and shadow (moving), and to the best of blind,")
    print("simple and advanced (hard). Worst, geometric mean")
    for i, name in enumerate(DESIGNS):
        print(f"  {name}")
        for column, table in columns.items():
            worst, mean = table[:, i].max(), np.exp(np.log(table[:, i]).mean())
            print(f"    {column:18} {worst:6.2f} {mean:6.2f}")


if __name__ == "__main__":
    main()
