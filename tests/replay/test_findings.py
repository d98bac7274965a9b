"""Logs whose faults hide behind equal times, large arms, drift, a slow arm, or arms that are never used together."""

import math
from typing import Any

import numpy as np
import pytest

from belated import OutcomeRange
from belated.arrays import Floats, Integers
from belated.replay import Log, check, log_sections, log_study, settle
from belated.replay.findings import lacking
from belated.replay.missing import usual_wait
from tests.support.lossy_logs import DAYS, healthy, without

REWARDS = OutcomeRange(0, 1, better="higher")


def made(arms: Integers, is_blank: Any, times: Floats, waits: float | Floats = 1.0, seed: int = 0) -> Log:
    """A log of the arms a, b, c, ... with outcomes 0 and 1."""
    values = np.random.default_rng(seed).integers(0, 2, arms.size)
    names = tuple("abcdefghijklmnopqrstuvwxyz"[: arms.max() + 1])
    return Log(names, times, arms, np.where(is_blank, math.nan, values), np.where(is_blank, math.inf, times + waits))


def kinds(log: Log) -> list[str]:
    return [finding.kind for finding in check(log, REWARDS).findings]


def by_day_and_arm(seed: int, lost: float) -> Log:
    """6,000 rows of 3 days. Each time is that of its day, and the file is sorted by day and arm."""
    generator = np.random.default_rng(seed)
    days, arms = np.repeat(np.arange(3), 2000), generator.integers(0, 3, 6000)
    order = np.lexsort((arms, days))
    is_blank = generator.random(6000) < np.where(arms == 1, lost, 0.02)
    return made(arms[order], is_blank[order], DAYS * days.astype(np.float64), 3600.0, seed)


@pytest.mark.parametrize("seed", range(20))
def test_rows_of_a_day_that_are_sorted_by_arm_are_compared(seed: int) -> None:
    assert kinds(by_day_and_arm(seed, 0.3)) == ["missing"]
    assert kinds(by_day_and_arm(seed, 0.02)) == []


def test_a_harmless_difference_of_large_arms_hides_no_small_one() -> None:
    generator = np.random.default_rng(1)
    n = 600_000
    arms = generator.integers(0, 2, n)
    arms[generator.choice(n, 230, replace=False)] = 2
    rates = np.array([0.004, 0.012, 0.2])
    found = check(made(arms, generator.random(n) < rates[arms], np.arange(float(n))), REWARDS)
    assert found.rates.strongest != 2
    (finding,) = found.findings
    assert finding.kind == "missing"
    assert finding.words.startswith("c has an outcome in ")
    assert not found.can_name_best


def test_a_harmless_delay_of_large_arms_hides_no_slow_one() -> None:
    generator = np.random.default_rng(2)
    n = 200_000
    arms = generator.integers(0, 2, n)
    arms[generator.choice(n, 300, replace=False)] = 2
    waits = generator.exponential(np.array([1.0, 1.1, 2.5])[arms])
    found = check(made(arms, np.zeros(n), np.arange(float(n)), waits), REWARDS)
    assert found.delays.strongest != 2
    assert [finding.kind for finding in found.findings] == ["delay"]
    assert "The outcomes of c come later" in found.findings[0].words


@pytest.mark.parametrize("n", [1000, 2500, 3500])
@pytest.mark.parametrize("n_values", [40, 10**9])
def test_delays_and_shares_that_rise_with_the_time_are_no_finding(n: int, n_values: int) -> None:
    """Whatever the outcomes are. Over a long time b is slower, but never at a given time."""
    alarms = 0
    for seed in range(20):
        generator = np.random.default_rng(seed)
        times = np.sort(generator.random(n))
        arms = (generator.random(n) < 0.1 + 0.8 * times).astype(np.int64)
        outcomes = np.floor(generator.random(n) * n_values) / n_values
        waits = (0.1 + times) * np.exp(0.1 * generator.standard_normal(n))
        alarms += bool(kinds(Log(("a", "b"), 1e6 * times, arms, outcomes, 1e6 * times + 1e3 * waits)))
    assert alarms <= 1


@pytest.mark.parametrize("n", [1000, 4000])
def test_a_slow_arm_is_found_among_many_values(n: int) -> None:
    for seed in range(10):
        generator = np.random.default_rng(seed)
        times, arms = np.arange(float(n)), generator.integers(0, 3, n)
        log = Log(
            ("a", "b", "c"), times, arms, generator.random(n), times + generator.exponential(1.0 + (arms == 1), n)
        )
        assert kinds(log) == ["delay"]


def with_a_slow_arm(n: int) -> Log:
    """An export of a fortnight. One arm has a share of 0.8% and takes 5 days, the others take an hour."""
    generator = np.random.default_rng(3)
    times = np.sort(generator.random(n)) * 14 * DAYS
    arms = np.where(generator.random(n) < 0.008, 2, generator.integers(0, 2, n))
    waits = np.where(arms == 2, 5 * DAYS, 3600.0) * generator.uniform(0.9, 1.1, n)
    return made(arms, times + waits > times[-1], times, waits)


def test_the_wait_is_long_enough_for_a_slow_arm() -> None:
    log = with_a_slow_arm(10_000)
    assert 5 * DAYS < usual_wait(log) < 5.5 * DAYS
    found = check(log, REWARDS)
    assert [finding.kind for finding in found.findings] == ["young", "delay"]
    assert "Among the decisions of the last 5" in found.findings[0].words
    settled = settle(log, default_outcome=0.0)
    assert settled.wait == usual_wait(log)
    assert settled.n_defaults <= 2


def test_many_like_arms_do_not_lengthen_the_wait() -> None:
    """The latest of 25 outcomes is the 99% wait of an arm. The largest of 400 such would be the latest of all."""
    generator = np.random.default_rng(4)
    waits = generator.pareto(1.2, 10_000)
    log = Log(
        tuple(map(str, range(400))),
        np.arange(10_000.0),
        np.arange(10_000) % 400,
        np.ones(10_000),
        np.arange(1e4) + waits,
    )
    assert usual_wait(log) == pytest.approx(np.quantile(waits, 0.99, method="inverted_cdf"))


@pytest.mark.parametrize("first", [1000, 1010])
def test_arms_that_are_never_used_together_name_no_best(first: int) -> None:
    arms = np.repeat([0, 1], [first, 2000 - first])
    is_blank = (arms == 1) & (np.random.default_rng(5).random(2000) < 0.4)
    found = log_study.study(made(arms, is_blank, np.arange(2000.0)), REWARDS)
    assert [finding.kind for finding in found.check.findings] == ["apart"]
    assert found.best is None
    section, *_, off_policy = log_sections.sections(found)
    assert section.headline.startswith("Not used at the same times as other arms: a, b. So nothing shows whether")
    assert "because some arms were not used at the same times as the others" in off_policy.headline


def test_only_the_arm_that_is_apart_is_named() -> None:
    generator = np.random.default_rng(6)
    arms = np.append(np.zeros(1000, np.int64), generator.integers(1, 3, 2000))
    (finding,) = check(made(arms, generator.random(3000) < 0.1, np.arange(3000.0))).findings
    assert finding.words.startswith("Not used at the same times as other arms: a. ")


def test_a_few_blanks_of_arms_that_are_apart_stop_nothing() -> None:
    arms = np.repeat([0, 1], 1000)
    found = log_study.study(made(arms, np.arange(2000) % 100 == 0, np.arange(2000.0)), REWARDS)
    assert found.check.can_name_best
    assert log_sections.sections(found)[0].headline == (
        "Not used at the same times as other arms: a, b. So their missing outcomes cannot be compared"
    )
    whole = log_study.study(made(arms, np.zeros(2000), np.arange(2000.0)), REWARDS)
    assert log_sections.sections(whole)[0].headline == "every decision has an outcome"


def test_too_few_blanks_to_compare_are_said_to_be_few() -> None:
    """The only blank is in a block of its own arm."""
    arms = np.append(np.arange(200) % 2, np.zeros(50, np.int64))
    found = log_study.study(made(arms, np.arange(250) == 220, np.arange(250.0), 0.0), REWARDS)
    assert math.isnan(found.check.rates.p_value)
    assert log_sections.sections(found)[0].headline == (
        "too few decisions are blank, or too few are not, to compare the arms"
    )


def test_an_arm_without_any_outcome_is_said_to_have_none() -> None:
    log = healthy(7)
    (finding,) = check(without(log, log.arms == 1), REWARDS).findings
    assert finding.words.startswith("narrow has no outcome at all, and the others have some.")


@pytest.mark.parametrize("seed", range(6))
@pytest.mark.parametrize("arm", [0, 1])
def test_of_two_arms_the_one_that_lacks_outcomes_is_named(arm: int, seed: int) -> None:
    generator = np.random.default_rng(seed)
    arms = generator.integers(0, 2, 2000)
    found = check(made(arms, (arms == arm) & (generator.random(2000) < 0.3), np.arange(2000.0)), REWARDS)
    assert lacking(found.rates) == arm
    assert found.findings[0].words.startswith(f"{'ab'[arm]} has an outcome in ")
    assert "fewer rows" in found.findings[0].words


def test_an_arm_found_among_the_latest_is_in_the_table() -> None:
    """It is one of 26 arms. By the old decisions alone, more than 15 of the others differ more clearly."""
    generator = np.random.default_rng(0)
    n = 26_000
    arms, times = generator.integers(0, 26, n), np.arange(float(n))
    waits = np.where((generator.random(n) < 0.03) & (times < n - 6000), 6000.0, 1.0)
    is_lost = (arms == 25) & (times > n - 3000) & (generator.random(n) < 0.9)
    log = made(arms, is_lost | (generator.random(n) < 0.1), times, waits)
    found = log_study.study(log, REWARDS)
    clarity = np.maximum(np.abs(found.check.rates.strength), np.abs(found.check.delays.strength))
    assert (clarity > clarity[25]).sum() > 15
    assert kinds(log) == ["young"]
    assert lacking(found.check.young_rates) == 25
    (table,) = log_sections.sections(found)[0].tables
    assert len(table.rows) == 15
    assert "z" in [row[0] for row in table.rows]
