"""The inequality that the evidence rests on, and the grid of rates."""

import math

import mpmath
import numpy as np
import pytest

from belated.verdicts.mixture import LOG_WEIGHTS, RATES, STEEPEST, Powers, excesses, log_evidence


def cubic(g: float, u: mpmath.mpf) -> mpmath.mpf:
    return g * u + mpmath.log(1 - g * g) / 2 * u**2 + (mpmath.atanh(g) - g) * u**3


def fan(g: float, u: mpmath.mpf) -> mpmath.mpf:
    """Fan, Grama & Liu 2015."""
    return g * u + (mpmath.log(1 - g) + g) * u**2


@pytest.mark.parametrize("g", [1e-4, 0.01, 0.1, 0.3, 0.5, 0.79, 0.9, STEEPEST])
def test_the_cubic_is_below_the_logarithm_and_above_fans_parabola_for_gains(g: float) -> None:
    with mpmath.workdps(50):
        g = mpmath.mpf(g)
        for step in range(-200, 201):
            u = mpmath.mpf(step) / 200
            exact = mpmath.log(1 + g * u)
            assert cubic(g, u) <= exact + mpmath.mpf(10) ** -45
            if u >= 0:
                assert fan(g, u) <= cubic(g, u) + mpmath.mpf(10) ** -45
            if step in (-200, 0, 200):
                assert cubic(g, u) == pytest.approx(exact, abs=1e-40)


def test_the_weights_of_the_rates_sum_to_one() -> None:
    assert math.fsum(np.exp(LOG_WEIGHTS)) == pytest.approx(1)
    assert (np.diff(RATES) < 0).all()
    assert RATES[0] * 0.25 <= STEEPEST  # 1/4 is the least bound of a difference


def random_rows(seed: int) -> tuple[list[np.ndarray], Powers]:
    rng = np.random.default_rng(seed)
    terms = [rng.uniform(-0.7, 1.2, size) for size in (1, 5, 50, 400)]
    powers = [np.array([(row**p).sum() for row in terms]) for p in (1, 2, 3)]
    return terms, Powers(np.array([np.abs(row).max() for row in terms]), *powers)


@pytest.mark.parametrize("seed", range(5))
def test_the_evidence_is_not_above_the_wealth_of_the_bets(seed: int) -> None:
    terms, powers = random_rows(seed)
    found = log_evidence(powers)
    for row, bound, one in zip(terms, powers.bound, found, strict=True):
        wealth = [
            weight + np.log1p(rate * row).sum()
            for weight, rate in zip(LOG_WEIGHTS, RATES, strict=True)
            if rate * bound <= STEEPEST
        ]
        assert one <= np.logaddexp.reduce(wealth) + 1e-12
    assert found[3] > 10  # and it finds that these are positive on average


@pytest.mark.parametrize("log_level", [math.log(2), math.log(40), 30.0, 600.0])
@pytest.mark.parametrize("factor", [1e-9, 1.0, 1e4, 1e7])
def test_an_excess_is_where_the_evidence_reaches_the_level(log_level: float, factor: float) -> None:
    _, powers = random_rows(1)
    powers = powers._replace(second=factor * powers.second, third=factor * powers.third)
    there = powers._replace(first=excesses(powers, log_level))
    assert log_evidence(there) == pytest.approx(log_level, abs=1e-8)
