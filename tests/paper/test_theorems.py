"""Steps of the theorems against brute force, and that they can fail."""

import itertools
import math

import numpy as np
import pytest

from belated import bounds, lab
from belated.paper import Effort, Verdict, grid
from belated.paper.claims.theorem_2 import counted_rounds, first_step, steps_of
from belated.paper.claims.theorem_3 import Oracle, best_for_oracle
from belated.tunings import Advanced, Simple, schedule


def test_the_oracle_has_the_best_of_all_sets() -> None:
    generator = np.random.default_rng(1)
    for n_arms in (2, 5, 100):
        delays = generator.integers(0, 7, 7)
        waits = bounds.clip(delays)
        values = [
            len(chosen)
            + 2 * math.sqrt(sum(d for s, d in enumerate(waits.tolist()) if s not in chosen) * math.log(n_arms))
            for size in range(8)
            for chosen in itertools.combinations(range(7), size)
        ]
        assert best_for_oracle(n_arms, delays).bound == pytest.approx(4 * math.sqrt(7 * n_arms) + min(values))


def test_the_oracle_needs_its_own_rate() -> None:
    """With half or twice the rate, Theorem 3 no longer gives the oracle's bound."""
    delays = np.full(200, 20)
    best = best_for_oracle(3, delays)
    for scale, is_above in ((0.25, True), (1, False), (4, True)):
        beta = schedule(Oracle(round(scale * best.remaining_delay)), 3, delays).beta
        assert (bounds.theorem_3(3, delays, beta) > best.bound) == is_above


def test_the_strict_inequality_in_print_does_not_add_up() -> None:
    delays = np.array([1, 0, 3, 0, 0, 0])
    rates = schedule(Advanced(), 2, delays)
    assert counted_rounds(delays, rates.skipped_in).sum() == rates.backlog[-1]
    printed = sum(t + 1 < s + 1 < t + 1 + d for t, d in enumerate(delays) for s in range(6))  # t < s and t + d > s
    assert printed < rates.backlog[-1]


def test_twice_m_alone_is_not_enough() -> None:
    """k = 100 and d = (1, 0). That is why Theorem 2 has a maximum with 2 ln k."""
    delays = np.array([1, 0])
    size = math.sqrt(schedule(Advanced(), 100, delays).backlog[-1] * math.log(100))
    assert size > 2 * bounds.best_skipping(100, delays).value
    assert steps_of(100, delays).is_near


def test_the_first_step_is_below_theorem_2() -> None:
    generator = np.random.default_rng(2)
    for _ in range(100):
        delays = generator.integers(0, 30, 60)
        assert first_step(4, delays) <= bounds.theorem_2(4, delays) + 1e-9


def cell(bound: float, ratios: list[float]) -> grid.Cell:
    return grid.Cell("none", "made up", 2, 100, 1.0, bound, 50.0, np.array(ratios))


def test_only_informative_problems_are_judged() -> None:
    broken, vacuous = cell(40.0, [2.0, 2.0, 2.1]), cell(60.0, [2.0, 2.0, 2.1])
    fine = cell(40.0, [0.5, 0.5, 0.6])
    assert grid.judge("", [fine, vacuous]).verdict is Verdict.HOLDS
    assert grid.judge("", [fine, broken]).verdict is Verdict.FAILS
    assert "1 of 2 problems are informative" in grid.judge("", [fine, vacuous]).measured
    assert grid.judge("", [vacuous]).verdict is Verdict.UNDECIDED  # nothing judged is nothing shown


def test_most_problems_of_the_grid_are_informative() -> None:
    cases = [case for case in grid.problems(Effort()) if case.problem.n_rounds <= 4_000]
    for bound, least in ((bounds.theorem_1, 0.8), (bounds.theorem_2, 0.3)):
        limits = [bound(case.problem.n_arms, case.problem.draw_delays(0)) for case in cases]
        lost = [case.witness(case.problem, range(1))[0] for case in cases]
        assert np.mean(np.array(limits) < lost) >= least


def test_the_long_wave_ruins_only_the_learner_that_ignores_delays() -> None:
    case = grid.wave_case(Effort())
    limit = bounds.theorem_1(2, case.problem.draw_delays(0))
    assert grid.ignoring_delays(case.problem, range(2)).min() > 1.2 * limit
    assert lab.play(Simple(), case.problem, range(2), checkpoints=[case.problem.n_rounds]).expected.max() < 0.2 * limit


def test_the_late_wave_swings_around_the_same_total() -> None:
    problem = lab.Problem(grid.LateWave(0.2), lab.Fixed(10), 4, 1_000)
    losses = np.vstack(list(problem.loss_blocks(0, problem.draw_delays(0))))
    assert losses[:200].max() == 0
    lead = (losses[:, 0] - losses[:, 3]).cumsum()
    assert (lead.min(), lead.max()) == (-10, 10)
    assert (losses[:, :2].T == losses[:, :1].T).all()
