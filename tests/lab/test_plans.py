"""`lab.plan` and the games it plays."""

import math
from dataclasses import replace
from itertools import pairwise
from typing import Any

import numpy as np
import pytest

from belated import lab
from belated.errors import InvalidInput
from belated.lab.algorithms import find, setting_of
from belated.lab.plans.games import Ending, arrivals, play
from belated.lab.plans.results import RUNNING, STOPPED, PlanResults, PlanRow
from belated.lab.plans.settings import TUNINGS, UNIFORM, PlanSettings
from tests.support.plans import first_verdict, is_decided_after_a_wait

EASY = PlanSettings(2, base_rate=0.3, difference=0.4, per_day=86_400, most=600, games=6)  # a decision a second
ONE_BY_ONE = 10**9


@pytest.mark.parametrize("player", ["means", UNIFORM])
@pytest.mark.parametrize(("delay", "wait"), [(0, None), (3, None), (2, 9)])
def test_games_end_as_brute_force_ends_them(player: str, delay: float, wait: float | None) -> None:
    settings = replace(EASY, delay=delay, wait=wait, confidence=0.6)
    expected = [first_verdict(settings, player, game) for game in range(4)]
    assert any(is_right for _, is_right, _ in expected)  # some are decided
    for game, (decisions, is_right, lost) in enumerate(expected):
        found = play(settings, player, game, step=ONE_BY_ONE, looks=1.0).running
        assert (found.decisions, found.is_right) == (decisions, is_right)
        assert found.lost == pytest.approx(lost)
        on_grid = play(settings, player, game, step=ONE_BY_ONE).running
        assert on_grid.decisions >= decisions  # fewer looks find it later


@pytest.mark.parametrize(("delay", "wait"), [(40, None), (10, 30)])
def test_to_stop_and_wait_gives_the_verdict_that_is_found(delay: float, wait: float | None) -> None:
    settings = replace(EASY, delay=delay, wait=wait)
    for game in range(4):
        found = play(settings, UNIFORM, game, step=ONE_BY_ONE, looks=1.0, waits=1.0)
        at_once = play(EASY, UNIFORM, game, step=ONE_BY_ONE, looks=1.0)
        assert at_once.running == at_once.stopped
        numbers = range(at_once.running.decisions, settings.most)
        first = next(n for n in numbers if is_decided_after_a_wait(settings, game, n))
        assert found.stopped.decisions == first
        assert found.running.decisions > first
        assert play(settings, UNIFORM, game, step=ONE_BY_ONE).stopped.decisions >= first  # fewer tries find it later


def test_batches_hardly_change_the_answer() -> None:
    settings = replace(EASY, difference=0.3, delay=5, most=3000)
    ends = [
        np.median([play(settings, UNIFORM, game, step=step).stopped.decisions for game in range(12)])
        for step in (200, ONE_BY_ONE)
    ]
    assert ends[0] == pytest.approx(ends[1], rel=0.25)


@pytest.mark.parametrize(("delay", "wait"), [(0, 0), (4, 4), (0, 7), (2, 11)])
def test_outcomes_arrive_in_their_order(delay: int, wait: int) -> None:
    is_success = np.random.default_rng(5).random(60) < 0.5
    comes = [s + (delay if is_success[s] else wait) for s in range(60)]
    bounds = [0, 1, 2, 9, 10, 31, 60]
    for before, now in pairwise(bounds):
        found = arrivals(is_success, before, now, delay, wait).tolist()
        assert sorted(found) == [s for s in range(60) if before <= comes[s] < now]
        assert [comes[s] for s in found] == sorted(comes[s] for s in found)


def test_a_larger_difference_is_decided_sooner_and_costs_what_it_must() -> None:
    halves = []
    for difference in (0.2, 0.3, 0.5):
        wanted = replace(EASY, tuning=UNIFORM, difference=difference, most=4000, games=12)
        [row] = lab.plan(wanted).rows
        halves.append(row.decisions(0.5))
        assert row.undecided == row.wrong == 0
        mean = np.mean([one.decisions for one in row.endings])
        assert row.lost == pytest.approx(difference / 2 * mean, rel=0.1)  # half of the decisions show the other one
    assert halves == sorted(halves, reverse=True)
    assert halves[0] > 2 * halves[2]


def test_options_that_are_alike_are_almost_never_told_apart() -> None:
    alike = replace(EASY, options=3, difference=1e-9, most=400, games=20, delay=5)
    for row in lab.plan(alike).rows:
        assert row.undecided >= 0.95, row.player


def row_of(*endings: int | None, way: str = RUNNING, **changes: Any) -> PlanRow:
    games = [Ending(600 if one is None else one, None if one is None else True, 1.0) for one in endings]
    return PlanRow(replace(EASY, per_day=100, **changes), "means", way, games)


def test_rows_give_the_decisions_that_a_share_needs() -> None:
    row = row_of(40, 10, None, 20)
    assert [row.decisions(share) for share in (0.25, 0.5, 0.75, 0.9)] == [10, 20, 40, math.inf]
    assert (row.right, row.wrong, row.undecided, row.lost) == (0.75, 0, 0.25, 1.0)
    assert row.days(20) == 0.2
    assert row_of(10, way=STOPPED, delay=86_400).days(20) == pytest.approx(1.2)  # a day for the last outcomes


def test_sentences_say_when_or_what_would_help() -> None:
    [sentence] = PlanResults(EASY, (row_of(100, 200, 300),)).sentences()
    assert sentence == (
        "With the learner (means), half of the experiments are decided after 200 decisions (2 days) "
        "and nine of ten after 300 (3 days)."
    )
    [sentence] = PlanResults(EASY, (row_of(100, 200, None),)).sentences()
    assert sentence.endswith("after 200 decisions (2 days) and 67% within 600.")
    first, second, last = PlanResults(EASY, (row_of(5, None, None), replace(row_of(5), player=UNIFORM))).sentences()
    assert first.startswith("With the learner (means), only 33% of the experiments are decided within 600 decisions")
    assert "With equal shares, as in an A/B test, half" in second
    for words in ("a larger difference", "fewer options", "More traffic"):
        assert words in last
    stopped, running = row_of(5, way=STOPPED, delay=86_400), row_of(None, delay=86_400)
    first, second = PlanResults(EASY, (stopped, running)).sentences()
    assert first.endswith("if you then stop and wait for the last outcomes.")
    assert second.startswith(
        "With the learner (means), none of the experiments are decided within 600 decisions (6 days)"
    )


def test_names_of_tunings_are_those_of_the_lab() -> None:
    setting = setting_of(lab.Problem(lab.Bernoulli(), lab.Fixed(2), n_arms=2, n_rounds=9), seed=0)
    for name, tuning in TUNINGS.items():
        assert tuning is None or find(name).player(setting) == tuning, name


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"options": 1}, "options must be a whole number from 2 to .*, got 1"),
        ({"base_rate": 10}, "base_rate must be from 0 to below 1, such as 0.1 for 10%, got 10"),
        ({"difference": 0}, "difference must be above 0.*got 0. Give the smallest difference"),
        ({"base_rate": 0.9, "difference": 0.2}, r"must be at most 1, got 0.9 \+ 0.2"),
        ({"per_day": 0}, "per_day must be a positive finite number, got 0"),
        ({"delay": -1}, "delay must be 0 seconds or more, got -1"),
        ({"delay": 9, "wait": 3}, "wait must be at least the delay, got a wait of 3 s and a delay of 9 s"),
        ({"confidence": 95}, "confidence must be from 0.5 to below 1, such as 0.95, got 95"),
        ({"delay": 600}, "most = 600 decisions end before the first failure is known, which takes 600 more"),
        ({"tuning": "mean"}, "unknown tuning 'mean'. Did you mean means"),
        ({"games": 0}, "games must be a whole number"),
    ],
)
def test_wrong_settings_name_the_value_and_the_fix(changes: dict[str, Any], message: str) -> None:
    with pytest.raises(InvalidInput, match=message):
        replace(EASY, **changes)
