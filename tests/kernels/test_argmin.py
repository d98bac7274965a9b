"""The argmin against 40-digit arithmetic, from any start, at any scale."""

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from belated import kernels
from belated.kernels import LARGEST_RATE, SMALLEST_RATE
from tests.support.oracles import exact_argmin, kernel_argmin

MATTERS = 1e-250  # far below anything that can be drawn


def solve(
    losses: NDArray[np.float64], alpha: float, beta: float, v: NDArray[np.float64] | float = 0.0
) -> NDArray[np.float64]:
    policy = np.full((kernels.ROWS, losses.size), np.nan)
    policy[kernels.LOSSES] = losses
    policy[kernels.V] = v
    return kernel_argmin(policy, alpha, beta)


def assert_exact(
    x: NDArray[np.float64], losses: NDArray[np.float64], alpha: float, beta: float, tolerance: float
) -> None:
    assert np.isfinite(x).all()
    assert abs(x.sum() - 1) < 1e-12
    for value, exact in zip(x, exact_argmin(losses.tolist(), alpha, beta), strict=True):
        if exact > MATTERS:
            assert abs(value / float(exact) - 1) < tolerance, (value, exact)
        else:
            assert value < 2 * MATTERS


def optimality_error(x: NDArray[np.float64], losses: NDArray[np.float64], alpha: float, beta: float) -> float:
    """How far, relatively, each x_i is from satisfying alpha x_i^(-1/2) - beta ln x_i - L_i = constant."""
    matters = x > MATTERS
    x, losses = x[matters], losses[matters]
    level = alpha / np.sqrt(x) - beta * np.log(x) - losses
    slope = alpha / (2 * np.sqrt(x)) + beta  # of the level in ln x
    return float(np.abs((level - level[x.argmax()]) / slope).max())


def random_losses(generator: np.random.Generator, k: int, spread: float) -> NDArray[np.float64]:
    losses = generator.random(k) ** generator.integers(1, 6) * spread
    losses[generator.random(k) < 0.3] = generator.choice(losses)  # ties
    offset = generator.choice([0.0, generator.random() * spread])
    return np.asarray(losses + offset)


# These are solved on every check. tests/system/kernels solves the whole grid.
QUICK = [(0.0, 1.0), (1e-8, 1e8), (1.0, 1e3)]


@pytest.mark.parametrize(("beta", "spread"), QUICK)
def test_agrees_with_exact_arithmetic(beta: float, spread: float) -> None:
    assert_agrees_with_exact_arithmetic(beta, spread)


def assert_agrees_with_exact_arithmetic(beta: float, spread: float) -> None:
    generator = np.random.default_rng([int(beta * 1e6), int(math.log10(spread + 1e-30)) + 100])
    for alpha in [1e-3, 1.0, 1e2, 1e6] + ([0.0] if beta > 0 else []):
        k = int(generator.choice([2, 3, 5, 33]))
        losses = random_losses(generator, k, spread)
        start = generator.random(k) * generator.choice([0.0, 1.0, 300.0])
        assert_exact(solve(losses, alpha, beta, start), losses, alpha, beta, 1e-11)


def test_warm_starts_give_the_same_solution_from_anywhere() -> None:
    generator = np.random.default_rng(1)
    for _ in range(300):
        k = int(generator.integers(2, 200))
        alpha, beta = 10.0 ** generator.uniform(-1, 4), 10.0 ** generator.uniform(-3, 5)
        losses = random_losses(generator, k, 10.0 ** generator.uniform(-2, 8))
        cold = solve(losses, alpha, beta, 0.5 * math.log(k))
        earlier_x = generator.dirichlet(np.full(k, 10.0 ** generator.uniform(-2, 2)))
        warm = solve(losses, alpha, beta, np.clip(-0.5 * np.log(np.maximum(earlier_x, 1e-300)), 0, kernels.V_MAX))
        np.testing.assert_allclose(warm, cold, rtol=1e-11, atol=1e-250)


def test_thousands_of_ties() -> None:
    losses = np.repeat([3.0, 10.0, 0.0, 1e6], 5000)
    for alpha, beta in [(1.0, 0.0), (100.0, 3.0), (0.0, 2.0), (30.0, 1000.0)]:
        x = solve(losses, alpha, beta)
        assert all(len(set(group)) == 1 for group in x.reshape(4, 5000).tolist())
        assert optimality_error(x, losses, alpha, beta) < 1e-12


@settings(max_examples=500, deadline=None)
@given(
    st.lists(st.floats(0, 1e300), min_size=1, max_size=70),
    st.just(0.0) | st.floats(SMALLEST_RATE, LARGEST_RATE),
    st.just(0.0) | st.floats(SMALLEST_RATE, LARGEST_RATE),
    st.lists(st.floats(0, kernels.V_MAX), min_size=1, max_size=5),
)
def test_never_nan_and_always_a_distribution(
    losses: list[float], alpha: float, beta: float, start: list[float]
) -> None:
    alpha = alpha or (0.0 if beta else 1.0)
    x = solve(np.array(losses), alpha, beta, np.resize(start, len(losses)))
    assert np.isfinite(x).all()
    assert (x >= 0).all()
    assert abs(x.sum() - 1) < 1e-12
    assert optimality_error(x, np.array(losses), alpha, beta) < 1e-9


def test_huge_gaps_at_tiny_rates_do_not_overflow() -> None:
    for alpha, beta in [(1e-15, 0.0), (1e-9, 1e-15), (1e-12, 1e-12), (1e-15, 1e15)]:
        for start in (0.0, 1.0, 300.0):
            x = solve(np.array([0.0, 1e300, 1e300, 0.0]), alpha, beta, start)
            assert x[1] == x[2]
            assert x[0] == x[3]
            assert optimality_error(x, np.array([0.0, 1e300, 1e300, 0.0]), alpha, beta) < 1e-9
            assert x[0] == pytest.approx(0.5, rel=1e-12)


def test_exp_is_as_exact_as_the_library() -> None:
    values = np.linspace(-700, 700, 100_001)
    ours = np.array([kernels.exp(value) for value in values.tolist()])
    np.testing.assert_allclose(ours, np.exp(values), rtol=5e-16)


def test_draw_takes_the_arm_at_the_quantile_and_never_an_impossible_one() -> None:
    generator = np.random.default_rng(4)
    for k in (1, 2, 63, 64, 65, 1000):
        x = generator.random(k) * (generator.random(k) < 0.5)
        x[generator.integers(k)] += 1.0
        x /= x.sum()
        cdf = np.empty(-(-k // kernels.BLOCK))
        kernels.accumulate(x, cdf)
        uniforms = [0.0, 1 - 2.0**-53, *generator.random(500)]
        arms = [kernels.draw(x, cdf, uniform) for uniform in uniforms]
        assert all(x[arm] > 0 for arm in arms)
        expected = np.searchsorted(np.cumsum(x), np.array(uniforms[2:]), side="right")
        assert arms[2:] == expected.tolist()


def test_the_last_uniform_draws_a_possible_arm() -> None:
    """Where rounding puts the target at the very end, and the last arms are impossible."""
    generator = np.random.default_rng(5)
    for _ in range(2000):
        x = np.append(generator.random(64), [0.0] * 10)
        x[60:64] *= generator.random(4) < 0.5
        x *= generator.uniform(0.99, 1.01) / x.sum()
        cdf = np.empty(2)
        kernels.accumulate(x, cdf)
        for uniform in (0.0, 1 - 2.0**-52, 1 - 2.0**-53):
            assert x[kernels.draw(x, cdf, uniform)] > 0
