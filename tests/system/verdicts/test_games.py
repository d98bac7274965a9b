"""Whole games with a look after every report: false winners, intervals, and verdicts that come in time.

`benchmarks/verdicts.py` measures the same with more games. The bars here are those of the benchmark.
"""

import numpy as np
import pytest

from belated import tunings
from belated.verdicts import Evidence
from belated.verdicts.verdict import against_all, tabulate
from benchmarks.verdicts import DELAYS, PROBLEMS, TUNINGS, Problem, coins, fall, games, ours, still, wave
from tests.support.betting import difference_bet
from tests.support.watched_games import play
from tests.support.watched_pairs import whole

pytestmark = pytest.mark.long


@pytest.mark.parametrize("steady", [0, 60])
@pytest.mark.parametrize("tuning", TUNINGS, ids=repr)
@pytest.mark.parametrize("k", [2, 5])
def test_the_compiled_game_sees_what_the_library_sees(tuning: tunings.Tuning, k: int, steady: int) -> None:
    rng = np.random.default_rng(k)
    means = np.tile(np.linspace(0.1, 0.8, k), (500, 1))
    losses = (rng.random(means.shape) < means).astype(float)
    game = play(tuning, losses, steady + DELAYS["failures slow"](rng, losses) // 4, means, 1)
    evidence, reports, told, named = Evidence.new(k), iter(game.reports.tolist()), 0, (0, 0)
    for t, (arm, chance) in enumerate(zip(game.arms.tolist(), game.probabilities.tolist(), strict=True)):
        evidence.decide(t, arm, chance, game.distributions[t])
        for s in reports:
            if s < 0:
                break
            one = int(game.arms[s])
            evidence.report(s, one, float(game.probabilities[s]), losses[s, one])
            told += 1
            if named[0] == 0 and (seen := evidence.verdict()).is_decided:
                named = told, seen.leader or 0
    assert (*named, len(evidence.blocks)) == (game.found.named, game.found.winner, game.found.n_blocks)
    assert game.found.leader == evidence.verdict().leader
    table, sums = tabulate(evidence, np.arange(k)), whole(game.pairs, game.found.n_blocks)
    for i in range(k):
        lead = against_all(table, i).lead
        for j in set(range(k)) - {i}:
            assert [one[j] for one in lead] == pytest.approx(sums[i, j], abs=1e-9)


@pytest.mark.parametrize("delays", DELAYS)
@pytest.mark.parametrize("k", [2, 5])
def test_identical_options_have_few_false_winners(delays: str, k: int) -> None:
    for means in (still(*[0.5] * k), wave(*[0.5] * k), fall(*[0.9] * k)):
        found = games(Problem("identical", means, DELAYS[delays], n=1_000), tunings.Means(), range(60))
        assert sum(one.named > 0 for one in found) <= 3


def test_plain_averages_name_false_winners_when_all_options_fall_together() -> None:
    problem = Problem("fall", fall(0.9, 0.9), DELAYS["no delay"])
    found = games(problem, tunings.Means(), range(40), every_plain=100)
    assert sum(one.plain for one in found) >= 10
    assert sum(one.named > 0 for one in found) <= 2


@pytest.mark.parametrize("problem", PROBLEMS, ids=[problem.name for problem in PROBLEMS])
def test_intervals_hold_at_every_look(problem: Problem) -> None:
    found = [one for tuning in TUNINGS for one in games(problem, tuning, range(20), every=10)]
    assert sum(one.missed_differences for one in found) <= 6  # of 160
    assert sum(one.missed_means for one in found) <= 6


def first_named(k: int, seed: int, *, gap: float, delay: int, n: int) -> int:
    """Play uniformly with this delay, look after every 20 decisions, and return after how many an arm was named."""
    rng, evidence, due = np.random.default_rng([seed, k]), Evidence.new(k), list[tuple[int, int, float]]()
    for t in range(n):
        arm = int(rng.integers(k))
        evidence.decide(t, arm, 1 / k, [1 / k] * k)
        due.append((t, arm, float(rng.random() < 0.5 - gap * (arm == 0))))
        while due and due[0][0] <= t - delay:
            s, drawn, loss = due.pop(0)
            evidence.report(s, drawn, 1 / k, loss)
        if t % 20 == 19 and evidence.verdict().is_decided:
            return t + 1
    return n + 1


def test_a_steady_delay_does_not_hide_a_difference() -> None:
    """The last 1,500 decisions are always open. At their worst they would outweigh a difference of 0.1."""
    for seed in range(3):
        at_once, late = (first_named(2, seed, gap=0.1, delay=delay, n=8000) for delay in (0, 1500))
        assert late <= at_once + 1500 + 0.1 * at_once + 100


def test_the_better_option_is_found() -> None:
    found = games(Problem("far", still(0.8, 0.2), DELAYS["geometric"]), tunings.Tsallis(), range(20))
    assert all(one.named and one.winner == 1 for one in found)


@pytest.mark.parametrize(("low", "high"), [(0.5, 0.7), (0.2, 0.8), (0.05, 0.1), (0.01, 0.05)])
def test_a_verdict_needs_hardly_more_decisions_than_a_bet_that_keeps_all_outcomes(low: float, high: float) -> None:
    own = np.mean([ours(low, high, seed) for seed in range(30)])
    assert own <= 1.5 * np.mean([difference_bet(coins(low, high, seed)) for seed in range(30)])
