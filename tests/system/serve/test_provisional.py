"""When it pays that an open decision counts as the default outcome. docs/service.md has the table with more games."""

import heapq
from typing import NamedTuple

import numpy as np
import pytest

from belated.serve.domain.settings import Settings

RATES = [0.08, 0.09, 0.10, 0.14]
VISITORS, WAIT = 12_000, 2_900
SOON, LATE, END = 300.0, 1_500.0, np.inf  # the mean number of visitors until an outcome is known, at most the wait


class World(NamedTuple):
    """After how many visitors the sales of each option are known, and all failures."""

    sales: tuple[float, ...]
    failures: float


def sales_above_uniform(world: World, seed: int, *, provisional: bool) -> float:
    generator, options = np.random.default_rng([seed, 77]), len(RATES)
    settings = Settings("layout", list("abcd"), reward_wait=60.0, default_outcome=0.0, provisional=provisional)
    learner = settings.build_learner()
    are_sold = generator.random((VISITORS, options)) < RATES
    waits = generator.exponential(1.0, (VISITORS, options))
    due, sold = list[tuple[float, int, float]](), 0
    for t in range(VISITORS):
        while due and due[0][0] <= t:
            _, round, loss = heapq.heappop(due)
            learner.tell(round, loss)
        round, arm, _ = learner.ask()
        is_sold = bool(are_sold[t, arm])
        sold += is_sold
        known_after = min(WAIT, waits[t, arm] * (world.sales[arm] if is_sold else world.failures))
        heapq.heappush(due, (t + 1 + known_after, round, float(not is_sold)))
    return sold - VISITORS * float(np.mean(RATES))


@pytest.mark.parametrize(
    ("world", "better", "least"),
    [
        (World((SOON,) * 4, END), True, 300),
        (World((SOON, SOON, SOON, LATE), END), True, 100),
        (World((SOON,) * 4, SOON), False, 350),
        (World((END,) * 4, END), False, 250),
    ],
    ids=["failures are silent", "and the best sells late", "both soon", "both at the end"],
)
def test_it_pays_if_failures_are_known_later_than_sales(world: World, better: bool, least: float) -> None:
    games = {
        on: np.mean([sales_above_uniform(world, seed, provisional=on) for seed in range(12)]) for on in (True, False)
    }
    assert games[better] > games[not better]
    assert games[better] > least
    assert games[True] > 100, "choosing at random would be 0"
