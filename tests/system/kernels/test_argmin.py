"""The argmin against 40-digit arithmetic, on the whole grid and along a long run."""

import math
from itertools import product

import numpy as np
import pytest

from belated import kernels
from tests.kernels.test_argmin import QUICK, assert_agrees_with_exact_arithmetic, assert_exact, optimality_error, solve
from tests.support.oracles import kernel_argmin

BETAS = [0.0, 1e-20, 1e-8, 1.0, 1e3, 1e9]
SPREADS = [0.0, 1e-12, 1.0, 1e3, 1e8, 1e15, 1e100, 1e300]


@pytest.mark.parametrize(("beta", "spread"), [case for case in product(BETAS, SPREADS) if case not in QUICK])
def test_agrees_with_exact_arithmetic(beta: float, spread: float) -> None:
    assert_agrees_with_exact_arithmetic(beta, spread)


def test_a_long_run_of_warm_starts_stays_exact() -> None:
    generator = np.random.default_rng(2)
    k, backlog = 20, 0.0
    policy = np.zeros((kernels.ROWS, k))
    policy[kernels.V] = 0.5 * math.log(k)
    for t in range(1, 20_001):
        backlog += generator.integers(0, 50)
        alpha, beta = math.sqrt(t), math.sqrt(backlog / math.log(k))
        x = kernel_argmin(policy, alpha, beta, solves=t - 1)
        if t in (1, 2, 3, 10, 64, 100, 1000, 5000, 20_000):
            assert_exact(x, policy[kernels.LOSSES].copy(), alpha, beta, 1e-12)
        arm = generator.choice(k, p=x)
        policy[kernels.LOSSES, arm] += generator.random() / x[arm]


def test_a_million_arms() -> None:
    generator = np.random.default_rng(3)
    losses = generator.random(1_000_000) * 1e4
    x = solve(losses, 50.0, 20.0, 0.5 * math.log(1e6))
    assert abs(x.sum() - 1) < 1e-12
    assert optimality_error(x, losses, 50.0, 20.0) < 1e-11
