"""The checks of the proof fail if the potential, the distribution or a fact is wrong."""

from collections.abc import Callable

import numpy as np
import pytest

from belated import lab
from belated.paper import Effort, Verdict
from belated.paper.claims.proof_terms import judge_game, judge_lemmas
from belated.paper.facts import FACTS, Point, fact_1, fact_6, random_point
from belated.paper.terms import Potential, Terms, follow, regularizer
from belated.tunings import Simple, schedule

PROBLEM = lab.Problem(lab.Shifting(phases=4), lab.Geometric(10), 3, 120)


class MoreEntropy(Potential):
    def __call__(self, losses: np.ndarray, alpha: float, beta: float) -> float:
        return super().__call__(losses, alpha, 1.01 * beta)


class LessTsallis(Potential):
    def __call__(self, losses: np.ndarray, alpha: float, beta: float) -> float:
        return super().__call__(losses, 0.99 * alpha, beta)


class Shifted(Potential):
    def __call__(self, losses: np.ndarray, alpha: float, beta: float) -> float:
        return super().__call__(losses, alpha, beta) + 1e-6


class Steep(Potential):
    def __call__(self, losses: np.ndarray, alpha: float, beta: float) -> float:
        return 2 * super().__call__(losses, alpha, beta)


WRONG: list[Callable[[int], Potential]] = [MoreEntropy, LessTsallis, Shifted, Steep]


def failures(make_potential: Callable[[int], Potential], left_out: range = range(0)) -> list[str]:
    runs: list[Terms] = [follow(Simple(), PROBLEM, seed, Effort(), left_out, make_potential) for seed in range(3)]
    checks = judge_lemmas("", runs, 3) + judge_game("", runs, 3)
    return [check.what for check in checks if check.verdict is Verdict.FAILS]


def test_the_right_potential_fails_nothing() -> None:
    assert failures(Potential) == []
    assert failures(Potential, range(2, 121, 2)) == []


@pytest.mark.parametrize("wrong", WRONG)
def test_a_wrong_potential_fails(wrong: Callable[[int], Potential]) -> None:
    assert any("attains the potential" in what for what in failures(wrong))


def test_a_steep_potential_fails_the_lemmas_too() -> None:
    assert any("Lemma 1" in what for what in failures(Steep))


def test_leaving_all_rounds_out_leaves_nothing_to_wait_for() -> None:
    run = follow(Simple(), PROBLEM, 1, Effort(), range(1, 121))
    assert run.b.tolist() == run.outstanding.tolist() == [0] * 120
    assert (run.c <= 0).all()


def test_what_is_left_out_joins_when_it_arrives() -> None:
    """With S all rounds but the first, L_t is Lobs_t after round 1 has arrived, and (B) is 0 from then on."""
    problem = lab.Problem(lab.Bernoulli(gap=0.5), lab.Fixed(5), 3, 60)
    run = follow(Simple(), problem, 2, Effort(), range(2, 61))
    assert run.b == pytest.approx(np.zeros(60), abs=1e-12)
    everything = follow(Simple(), problem, 2, Effort())
    assert np.abs(everything.b[1:]).max() > 1e-3


@pytest.mark.parametrize("what", [what for what in FACTS if not what.startswith(("Fact 1", "Fact 2", "Fact 6"))])
def test_a_fact_about_the_conjugate_fails_for_a_wrong_one(what: str) -> None:
    class Wrong(Potential):
        @property
        def x(self) -> np.ndarray:
            return np.asarray(super().x[::-1])  # as if the arms were in another order

        def __call__(self, losses: np.ndarray, alpha: float, beta: float) -> float:
            return super().__call__(losses, alpha, 1.1 * beta)

    points = [random_point(np.random.default_rng(seed), Wrong) for seed in range(20)]
    assert not all(FACTS[what](point) for point in points)


def test_fact_2_fails_for_a_steep_potential() -> None:
    assert not FACTS["Fact 2: F̄*(y + c 1) = F̄*(y) + c"](random_point(np.random.default_rng(1), Steep))


def test_facts_1_and_6_fail_for_another_curvature() -> None:
    class Flat(Point):
        def curvature(self, x: np.ndarray) -> np.ndarray:
            return 10 * super().curvature(x)

    class Rising(Point):
        def curvature(self, x: np.ndarray) -> np.ndarray:
            return 1 / super().curvature(x)

    point = random_point(np.random.default_rng(2))
    assert fact_1(point)
    assert fact_6(point)
    assert not fact_6(Flat(*point))
    assert not fact_1(Rising(*point))


def test_the_kkt_fact_as_printed_is_not_true() -> None:
    """The paper prints the argmax of <x, -L> + F(x). The distribution maximises <x, -L> - F(x)."""
    for seed in range(10):
        p = random_point(np.random.default_rng(seed))
        x, corner = p.argmin(p.losses), np.eye(p.x.size)[int(p.losses.argmin())]

        def printed(at: np.ndarray, p: Point = p) -> float:
            return float(-at @ p.losses) + regularizer(at, p.alpha, p.beta)

        def right(at: np.ndarray, p: Point = p) -> float:
            return float(-at @ p.losses) - regularizer(at, p.alpha, p.beta)

        assert printed(corner) > printed(x)
        assert max(right(corner), right(p.x)) <= right(x)


def test_lemma_2_of_the_published_version_is_not_true_for_a_permutation() -> None:
    """It telescopes as if the rounds came in the order of time. Here each late round is moved behind its arrival."""
    k, n = 2, 120
    late = n // 3
    delays = np.array([late + 1 + 2 * j - (j + 1) if j < late else 0 for j in range(n)])
    order = list(range(late, n))  # from 0. The late round j comes directly behind late + 2 j
    for j in range(late):
        order.insert(order.index(late + 2 * j) + 1, j)
    rates, potential = schedule(Simple(), k, delays), Potential(k)
    total, losses = 0.0, np.zeros(k)
    for t in order:
        phi = float(rates.alpha[t]), float(rates.beta[t])
        step = np.zeros(k)
        if t < late:
            step[0] = losses[1] - losses[0]
        elif losses[0] == losses[1]:
            step[1] = 50 * np.sqrt(n)
        total += potential(losses, *phi) - potential(losses + step, *phi)
        losses = losses + step
    assert total - losses.min() > 10 * (2 * np.sqrt(k * n) + rates.beta[-1] * np.log(k))
