"""Sales with the default and with Thompson sampling. A sale is known soon, "no sale" only when the wait ends.

Expected sales count, the sum of the drawn arms' rates, because they have less noise than the sales themselves.
"""

from collections import defaultdict
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

import belated
from belated import baselines
from belated.arrays import Floats
from benchmarks.judging import judge

N, SEEDS = 12_000, range(7000, 7024)
MakeLearner = Callable[[int, int], Any]


class Shop(NamedTuple):
    """The rates of the options, the mean time until a sale is known, and the wait. Times are in visitors."""

    rates: tuple[float, ...]
    sale: float
    wait: int


SHOPS = (
    Shop((0.07, 0.08, 0.09, 0.13), 250, 2500),
    Shop((0.20, 0.25), 100, 1000),
    Shop((0.05,) * 9 + (0.08,), 300, 2000),
    Shop((0.01, 0.015, 0.03), 500, 3000),
    Shop((0.15, 0.18, 0.20, 0.24, 0.30), 50, 4000),
    Shop((0.02, 0.04), 400, 1500),
    Shop((0.10,) * 5 + (0.16,), 800, 2000),
    Shop((0.04, 0.05, 0.09), 30, 6000),
)
LEARNERS: dict[str, MakeLearner] = {
    "provisional": lambda k, seed: belated.FTRL(k, seed=seed, provisional=1.0),
    "without": lambda k, seed: belated.FTRL(k, seed=seed),
    "Thompson": lambda k, seed: baselines.ThompsonSampling(k, seed=seed),
}


def sales_above_uniform(learner: Any, shop: Shop, seed: int) -> float:
    """Expected sales of a game, less those of uniform play. The last reports come after it has ended."""
    generator = np.random.default_rng((seed, 1))
    rates = generator.permutation(shop.rates)
    buys = (generator.random((N, 1)) < rates).tolist()
    known = np.minimum(generator.exponential(shop.sale, N).astype(np.int64), shop.wait).tolist()
    due: dict[int, list[tuple[int, float]]] = defaultdict(list)
    arms = np.empty(N, np.int64)
    for t in range(N):
        decision = learner.ask()
        arms[t] = decision.arm
        is_sale = buys[t][decision.arm]
        due[t + known[t] if is_sale else t + shop.wait].append((decision.round, 0.0 if is_sale else 1.0))
        for round, loss in due.pop(t, ()):
            learner.tell(round, loss)
    return float(rates[arms].sum() - N * rates.mean())


def play(shop: Shop) -> dict[str, Floats]:
    """The sales above uniform of every learner, for every seed."""
    return {
        name: np.array([sales_above_uniform(make(len(shop.rates), seed), shop, seed) for seed in SEEDS])
        for name, make in LEARNERS.items()
    }


def described(shop: Shop) -> str:
    """The rates and the times of a shop, in a line."""
    rates = sorted(set(shop.rates))
    many = f" ({len(shop.rates)})" if len(rates) < len(shop.rates) else ""
    return f"{', '.join(f'{100 * rate:g}' for rate in rates)}%{many}; {shop.sale:g}, {shop.wait}"


def sales() -> None:
    """The worst ratio of the sales above uniform, and the runs that end below it."""
    print(f"\nconversions: expected sales above uniform play, runs below it, {len(SEEDS)} games of {N:,} visitors each")
    print(f"  {'rates; mean time until a sale, wait':38}{'possible':>9}" + "".join(f"{name:>16}" for name in LEARNERS))
    everything = []
    for shop in SHOPS:
        found = play(shop)
        everything.append(found)
        possible = N * (max(shop.rates) - np.mean(shop.rates))
        cells = (f"{sales.mean():11,.0f}, {(sales < 0).sum():3}" for sales in found.values())
        print(f"  {described(shop):38}{possible:9,.0f}" + "".join(cells), flush=True)
    ratios = [found["provisional"].mean() / found["Thompson"].mean() for found in everything]
    below = {name: sum(int((found[name] < 0).sum()) for found in everything) for name in LEARNERS}
    judge(f"sales above uniform / Thompson's, worst of {len(SHOPS)}", min(ratios), 0.8, "x", at_most=False)
    judge("runs below uniform, more than Thompson's", below["provisional"] - below["Thompson"], 0, "runs", at_most=True)
