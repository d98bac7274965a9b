"""The published systems keep their bounds in the settings they are for."""

import math
from collections.abc import Callable, Sequence

import numpy as np
import pytest

from belated import FTRL, Decision
from belated.arrays import Floats
from belated.baselines import (
    BOLD,
    SOLID,
    Composite,
    DelayedUCB1,
    Doubling,
    Queued,
    Skipper,
    TsallisReducedVariance,
    WaitingDoubling,
    bold,
    composite,
    delayed_ucb,
    doubling,
    queued,
    skipper,
    solid,
    tsallis_reduced_variance,
)
from belated.tunings import Exp3
from tests.support.bandits import coins, play_known, regret
from tests.support.oracles import play


def assert_bounded(
    run: Callable[[int, Floats], Sequence[Decision]], bound: float, n: int, means: Sequence[float], seeds: int = 6
) -> None:
    """Assert that the mean regret is at most the bound, and that uniform play would break the bound."""
    games = [coins(n, means, seed) for seed in range(seeds)]
    mean = np.mean([regret(run(seed, losses), losses) for seed, losses in enumerate(games)])
    uniform = np.mean([losses.mean(axis=1).sum() - losses.sum(axis=0).min() for losses in games])
    assert mean <= bound < uniform, (mean, bound, uniform)


def test_reduced_variance_keeps_its_bound() -> None:
    n = 3000
    bound = tsallis_reduced_variance.bound(2, n)
    assert bound == pytest.approx(2 * math.sqrt(6000) + 20 * math.log(3000) + 16)
    for paper_rates in (True, False):
        assert_bounded(
            lambda seed, losses, rates=paper_rates: play(  # type: ignore[misc]
                TsallisReducedVariance(2, paper_rates=rates, seed=seed), [0] * n, losses
            ),
            bound,
            n,
            (0.1, 0.6),
        )


def test_delayed_ucb_and_queued_ucb_keep_their_bounds() -> None:
    n, delay, gaps = 2000, 20, (0.0, 0.7, 0.5)
    expected = 8 * math.log(n) * (1 / 0.7 + 2) + 3.5 * 1.2 + 1.2 * delay
    assert delayed_ucb.bound(gaps, n, delay) == pytest.approx(expected)
    assert queued.bound(gaps, n, delay) == pytest.approx(expected + (math.pi**2 / 3 - 2.5) * 1.2)
    for make in (DelayedUCB1, Queued):
        assert_bounded(
            lambda seed, losses, make=make: play(make(3, seed=seed), [delay] * n, losses),  # type: ignore[misc]
            delayed_ucb.bound(gaps, n, delay),
            n,
            (0.2, 0.9, 0.7),
        )


def test_bold_keeps_its_bound() -> None:
    n, delay = 2000, 10
    assert bold.bound(2, n, delay) == pytest.approx(4 * math.sqrt(2 * n * 11) + 11)
    assert_bounded(
        lambda seed, losses: play(BOLD(2, seed=seed), [delay] * n, losses), bold.bound(2, n, delay), n, (0.0, 1.0)
    )


def test_skipper_keeps_its_bound_on_the_unbalanced_example() -> None:
    n, k = 3000, 2
    late = int(math.sqrt(k * n / math.log(k)))
    delays = [n - t if t <= late else 0 for t in range(1, n + 1)]
    eta = skipper.dew_rate(k, delays, beta=5)
    assert eta == pytest.approx(math.sqrt(math.log(2) / (math.e * n)))
    bound = skipper.bound(k, delays, beta=5)
    assert bound == pytest.approx(late + math.log(2) / eta + eta * math.e * n)
    assert bound < skipper.bound(k, delays) / 5
    assert_bounded(
        lambda seed, losses: play_known(
            Skipper(k, 5, lambda k, seed: FTRL(k, Exp3(eta), seed=seed), seed=seed), delays, losses
        ),
        bound,
        n,
        (0.0, 1.0),
    )


def test_dew_keeps_its_bound() -> None:
    n, k, delays = 3000, 2, [10] * 3000
    total = sum(min(10, 3000 - t) for t in range(1, 3001))
    assert skipper.dew_rate(k, delays) == pytest.approx(
        min(math.sqrt(math.log(2) / (math.e * n + total)), 1 / (40 * math.e))
    )
    base = Exp3(skipper.dew_rate(k, delays))
    assert_bounded(
        lambda seed, losses: play(FTRL(k, base, seed=seed), delays, losses), skipper.bound(k, delays), n, (0.0, 1.0)
    )


@pytest.mark.parametrize("known", [True, False])
def test_doubling_keeps_its_bound(known: bool) -> None:
    n, k = 4000, 2
    late = int(math.sqrt(k * n / math.log(k)))
    delays = [n - t if t <= late else 2 for t in range(1, n + 1)]

    def run(seed: int, losses: Floats) -> list[Decision]:
        if known:
            return play_known(Doubling(k, seed=seed), delays, losses)
        return play(WaitingDoubling(k, seed=seed), delays, losses)

    assert_bounded(run, doubling.bound(k, delays, known=known), n, (0.0, 1.0))


def test_composite_keeps_its_bound() -> None:
    n, d = 6000, 2
    assert composite.bound(2, n, d) == pytest.approx(8 * math.sqrt(2 * 9 * n * math.log(2)))
    assert_bounded(
        lambda seed, losses: play(Composite(2, d, seed=seed), [1] * n, losses), composite.bound(2, n, d), n, (0.0, 1.0)
    )


def test_solid_keeps_its_bound() -> None:
    n, delay = 1000, 5
    assert solid.bound(3, n, n * delay) == pytest.approx(2 * math.sqrt(11 * n * math.log(3)))

    def run(seed: int, losses: Floats) -> list[Decision]:
        learner, decisions = SOLID(3, seed=seed), []
        for t in range(1, n + 1):
            decisions.append(learner.ask())
            if t > delay:
                learner.tell_vector(t - delay, losses[t - delay - 1])
        return decisions

    assert_bounded(run, solid.bound(3, n, n * delay), n, (0.2, 0.8, 0.9))
