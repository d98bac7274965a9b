"""The Facts of ZS20's appendix (Section 7.3), with the signs that are right, at random points.

f(x) = -2 alpha sqrt(x) + beta x ln x is one summand of the regularizer. f* is its conjugate over x > 0, found by
bisection here. F* is the sum over the arms, and Fbar* the conjugate over the simplex, so Fbar*(-L) = Phi(L).
"""

from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from belated.arrays import Floats
from belated.paper.claim import Check, Effort, exactly
from belated.paper.terms import Potential

TOLERANCE = 1e-7  # of finite differences and bisection, relative


class Point(NamedTuple):
    """A random point. Rates, estimates L >= 0, a distribution x, and more estimates."""

    alpha: float
    beta: float
    losses: Floats
    x: Floats
    more: Floats
    potential: Potential

    def slope(self, x: Floats) -> Floats:
        """f'(x)."""
        return np.asarray(-self.alpha / np.sqrt(x) + self.beta * (np.log(x) + 1))

    def curvature(self, x: Floats) -> Floats:
        """f''(x)."""
        return np.asarray(self.alpha / 2 * x**-1.5 + self.beta / x)

    def inverse(self, y: Floats) -> Floats:
        """f*'(y), the x > 0 with f'(x) = y, by bisection of ln x."""
        low, high = np.full(y.shape, -300.0), np.full(y.shape, 300.0)
        for _ in range(70):
            middle = (low + high) / 2
            is_below = self.slope(np.exp(middle)) < y
            low, high = np.where(is_below, middle, low), np.where(is_below, high, middle)
        return np.asarray(np.exp((low + high) / 2))

    def conjugates(self, y: Floats) -> Floats:
        """f*(y_i) of every coordinate. Their sum is F*(y)."""
        x = self.inverse(y)
        return np.asarray(x * y + 2 * self.alpha * np.sqrt(x) - self.beta * x * np.log(x))

    def phi(self, losses: Floats) -> float:
        """Fbar*(-L). The kernel is for L >= 0, and by Fact 2 a shift makes L so."""
        shift = max(0.0, -float(losses.min()))
        return self.potential(losses + shift, self.alpha, self.beta) + shift

    def argmin(self, losses: Floats) -> Floats:
        """The gradient of Fbar* at -L, which is the distribution for L."""
        self.phi(losses)
        return self.potential.x


def near(first: float, second: float) -> bool:
    """Whether both are the same within the tolerance."""
    return abs(first - second) <= TOLERANCE * max(1.0, abs(first), abs(second))


def fact_1(p: Point) -> bool:
    """f'' falls. f*' grows and is convex."""
    y, step = p.slope(p.x), 0.1 * p.alpha
    below, above = p.inverse(y - step), p.inverse(y + step)
    is_growing = (below < p.x).all() and (p.x < above).all()
    is_convex = (below + above >= 2 * p.x * (1 - TOLERANCE)).all()
    return bool((p.curvature(p.x) > p.curvature(1.5 * p.x)).all() and is_growing and is_convex)


def fact_2(p: Point) -> bool:
    """Fbar*(y + c 1) = Fbar*(y) + c, with y = -L and c < 0 here."""
    c = float(p.more[0])
    return near(p.phi(p.losses + c), p.phi(p.losses) - c)


def fact_3(p: Point) -> bool:
    """grad F(x_t) = -L + c 1 for one c, and x_t = grad F*(-L + c 1)."""
    x = p.argmin(p.losses)
    c = p.slope(x) + p.losses
    size = max(1.0, float(np.abs(p.losses).max()))
    is_one = float(c.max() - c.min()) <= TOLERANCE * size
    return is_one and bool(np.allclose(p.inverse(c.mean() - p.losses), x, rtol=1e-4, atol=1e-9))


def fact_4(p: Point) -> bool:
    """Fbar*(y) <= F*(y), and they are equal at y = grad F(x)."""
    slope = p.slope(p.x)
    other = slope - p.more
    is_below = p.phi(-other) <= p.conjugates(other).sum() + TOLERANCE * max(1.0, np.abs(slope).max())
    return bool(is_below) and near(p.phi(-slope), p.conjugates(slope).sum())


def fact_5(p: Point) -> bool:
    """grad Fbar*(grad F(x) - L)_i >= grad F*(grad F(x) - L)_i for L >= 0."""
    y = p.slope(p.x) - p.more
    return bool((p.argmin(-y) >= p.inverse(y) * (1 - TOLERANCE)).all())


def fact_6(p: Point) -> bool:
    """The Bregman divergence of f* between f'(x) - l and f'(x) is at most l^2 / (2 f''(x)), for l >= 0."""
    slope = p.slope(p.x)
    at = p.conjugates(slope)
    divergences = p.conjugates(slope - p.more) - at + p.more * p.x
    limits = p.more**2 / (2 * p.curvature(p.x))
    return bool((divergences <= limits + TOLERANCE * np.maximum(1.0, np.abs(at))).all())


def monotony(p: Point) -> bool:
    """The probability of an arm falls if the loss of another one is reduced (used for Lemma 3)."""
    less = p.losses.copy()
    less[-1] -= p.more[-1]
    return bool((p.argmin(less)[:-1] <= p.argmin(p.losses)[:-1] * (1 + TOLERANCE)).all())


FACTS: dict[str, Callable[[Point], bool]] = {
    "Fact 1: f'' falls, f*' grows and is convex": fact_1,
    "Fact 2: F̄*(y + c 1) = F̄*(y) + c": fact_2,
    "Fact 3 (KKT): ∇F(x) = c 1 - L for one c": fact_3,
    "Fact 4: F̄* ≤ F*, equal at ∇F(x)": fact_4,
    "Fact 5: ∇F̄*(∇F(x) - L) ≥ ∇F*(∇F(x) - L) for L ≥ 0": fact_5,
    "Fact 6: the divergence of f* is at most l² / (2 f''(x))": fact_6,
    "Lemma 3, step (b): an arm's probability falls if another's loss is reduced": monotony,
}


def random_point(generator: np.random.Generator, make_potential: Callable[[int], Potential] = Potential) -> Point:
    """Rates and estimates of very different sizes."""
    k = int(generator.integers(2, 9))
    alpha = float(np.sqrt(generator.integers(1, 10_000)))
    beta = float(np.exp(generator.uniform(-3, 4)))
    losses, more = (alpha + beta) * generator.exponential(size=(2, k))
    return Point(alpha, beta, losses, generator.dirichlet(np.ones(k)), more, make_potential(k))


def check_facts(effort: Effort) -> list[Check]:
    """Check each Fact at random points."""
    generator, runs = np.random.default_rng([effort.seed, 6]), effort.pick(200, 5_000)
    points = [random_point(generator) for _ in range(runs)]
    right = {what: sum(fact(point) for point in points) for what, fact in FACTS.items()}
    return [exactly(what, count == runs, f"{count:,} of {runs:,} random points") for what, count in right.items()]
