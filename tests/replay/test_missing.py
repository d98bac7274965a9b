"""How the arms of a log are compared, and what is found on logs that are healthy or not."""

import math
import re

import numpy as np
import pytest

from belated import OutcomeRange
from belated.replay import Log, check, missing
from belated.replay.findings import percent
from belated.replay.missing import blocks, came, delays, end_of, is_old, kinds_of, midranks, report_rates, usual_wait
from tests.support.lossy_logs import DAYS, healthy, positives_only, without

REWARDS = OutcomeRange(0, 1, better="higher")


def kinds(log: Log) -> list[str]:
    return [finding.kind for finding in check(log, REWARDS).findings]


def test_ranks_within_strata_by_counting() -> None:
    generator = np.random.default_rng(1)
    values, strata = generator.integers(0, 6, 80).astype(float), generator.integers(0, 4, 80)
    ranks = midranks(values, strata)
    for value, stratum, rank in zip(values, strata, ranks, strict=True):
        others = values[strata == stratum]
        assert rank == (others < value).sum() + ((others == value).sum() + 1) / 2


def test_a_block_has_one_kind_and_follows_the_time() -> None:
    kinds = np.random.default_rng(2).integers(0, 3, 400)
    strata = blocks(kinds, np.arange(400.0), 50)
    assert set(strata.tolist()) == set(range(strata.max() + 1))
    for kind in range(3):
        rows = np.flatnonzero(kinds == kind)
        first = strata[rows[0]]
        assert strata[rows].tolist() == [first + place // 50 for place in range(rows.size)]


def test_a_few_outcomes_are_kinds_and_many_are_put_into_classes() -> None:
    assert kinds_of(np.array([0.0, 1.0, 0.5, 1.0])).tolist() == [0, 2, 1, 2]
    counts = np.bincount(kinds_of(np.random.default_rng(3).random(1000)))
    assert counts.size == 22
    assert set(counts.tolist()) <= {45, 46}
    assert np.bincount(kinds_of(np.random.default_rng(3).random(100_000))).tolist() == [2000] * 50


def test_a_frequent_outcome_is_a_class_of_its_own() -> None:
    """Such as a sale of nothing. A sale of a little, or a refund, is another."""
    generator = np.random.default_rng(6)
    outcomes = np.concatenate([np.zeros(800), generator.random(100), -generator.random(100)])
    classes = kinds_of(outcomes)
    assert set(classes[:800].tolist()).isdisjoint(classes[800:].tolist())


def test_the_ratio_of_rates_in_one_stratum() -> None:
    arms = np.arange(50) % 2
    is_blank = (arms == 1) & (np.arange(50) < 20)  # 10 of 25
    log = Log(
        ("a", "b"), np.zeros(50), arms, np.where(is_blank, math.nan, 1.0), np.where(is_blank, math.inf, np.arange(50.0))
    )
    found = report_rates(log, np.full(50, fill_value=True))
    assert found.effect.tolist() == pytest.approx([25 / 15, 15 / 25])


def test_the_chance_to_come_later_by_counting_pairs(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(missing, "PERIODS", 1)
    generator = np.random.default_rng(4)
    arms, waits = generator.integers(0, 2, 50), generator.integers(0, 5, 50).astype(float)
    found = delays(Log(("a", "b"), np.zeros(50), arms, np.ones(50), waits))
    pairs = [np.sign(one - other) for one in waits[arms == 0] for other in waits[arms == 1]]
    assert found.effect.tolist() == pytest.approx([0.5 + np.mean(pairs) / 2, 0.5 - np.mean(pairs) / 2])


def test_the_wait_and_the_end() -> None:
    log = Log(
        ("a", "b"), np.arange(4.0), np.arange(4) % 2, np.array([1, 0, 1, math.nan]), np.array([9, 2, 5, math.inf])
    )
    assert (end_of(log), usual_wait(log)) == (9, 9)
    assert is_old(log, 7).tolist() == [True, True, True, False]
    assert is_old(log, 7.5).tolist() == [True, True, False, False]


@pytest.mark.parametrize("is_exported", [False, True])
@pytest.mark.parametrize("is_drifting", [False, True])
def test_a_healthy_log_raises_nothing(is_drifting: bool, is_exported: bool) -> None:
    """In at least 95 of 100 logs. tests/system has more of them."""
    silent = [not kinds(healthy(seed, 2000, is_drifting=is_drifting, is_exported=is_exported)) for seed in range(100)]
    assert np.mean(silent) >= 0.95


def test_losses_that_rise_with_the_time_are_no_finding() -> None:
    """So does the share of calm. Over the whole log its outcomes are missing more often, but never at a given time."""
    silent = []
    for seed in range(40):
        log = healthy(seed, 2000)
        is_lost = np.random.default_rng(seed + 100).random(2000) < 0.6 * log.times / log.times[-1]
        silent.append(not kinds(without(log, is_lost)))
    assert np.mean(silent) >= 0.95


def test_equal_waits_are_equal_whatever_the_rounding() -> None:
    microseconds = 1_700_000_000_000_000 + np.sort(np.random.default_rng(5).integers(0, 10**12, 400))
    known = (microseconds + 172_800_000_001) / 1e6
    log = Log(("a", "b"), microseconds / 1e6, np.arange(400) % 2, np.zeros(400), known)
    assert np.unique(log.outcome_times - log.times).size > 1
    assert delays(log).effect.tolist() == pytest.approx([0.5, 0.5], abs=1e-9)


def test_the_advised_default_is_the_other_end_of_the_range() -> None:
    log = positives_only(healthy(3))
    for outcomes, advised in (
        (OutcomeRange(0, 1, better="lower"), 0),
        (OutcomeRange(1, 5, better="higher"), 5),
        (OutcomeRange(-2, 5, better="lower"), -2),
    ):
        assert f"--default-outcome {advised}. " in check(log, outcomes).findings[0].advice


@pytest.mark.parametrize("arm", [0, 1, 2])
def test_a_third_of_an_arm_that_is_missing_is_found(arm: int) -> None:
    for seed in range(20):
        log = healthy(seed, 2000)
        is_lost = (log.arms == arm) & (np.random.default_rng(seed + 100).random(2000) < 0.3)
        found = check(without(log, is_lost), REWARDS)
        assert [finding.kind for finding in found.findings] == ["missing"]
        assert found.rates.strongest == arm
        assert found.rates.effect[arm] == pytest.approx(0.7, abs=0.1)
        assert not found.can_name_best


def test_the_words_name_the_arm_and_the_fix() -> None:
    log = healthy(1, 6000)
    is_lost = (log.arms == 1) & (np.random.default_rng(101).random(6000) < 0.3)
    (finding,) = check(without(log, is_lost), REWARDS).findings
    assert re.match(r"narrow has an outcome in (2|3)\d% fewer rows", finding.words)
    assert "% fewer rows than the others. Its bad outcomes may be missing." in finding.words
    assert "--default-outcome 0" in finding.advice
    assert "older than 2 days" in finding.advice


def test_an_arm_that_reports_more_is_named_as_well() -> None:
    log = healthy(2, 6000)
    draws = np.random.default_rng(102).random(6000)
    (finding,) = check(without(log, (log.arms != 2) & (draws < 0.3)), OutcomeRange(0, 5, better="lower")).findings
    assert finding.words.startswith("calm has an outcome in 4")
    assert "more rows than the others. Bad outcomes of the others may be missing." in finding.words
    assert "--default-outcome 5" in finding.advice
    (finding,) = check(without(log, (log.arms != 2) & (draws < 0.7))).findings
    assert "calm has an outcome 3." in finding.words
    assert "times as often as the others" in finding.words
    found = check(without(log, log.arms != 2)).findings
    assert any("calm has an outcome and the others have none" in finding.words for finding in found)


def test_positives_only_are_noticed() -> None:
    found = check(positives_only(healthy(3)), REWARDS)
    assert [finding.kind for finding in found.findings] == ["one value", "missing"]
    assert "Every reported outcome is 1, and 8" in found.findings[0].words
    assert "--default-outcome 0" in found.findings[0].advice
    assert not found.can_name_best
    assert not found.can_trust_delays


def test_amounts_without_the_zeros_are_noticed() -> None:
    """A log of sales in euros has many values. But it has hardly any outcomes."""
    log = healthy(4)
    generator = np.random.default_rng(104)
    bought = without(log, ~((log.outcomes == 1) & (generator.random(4000) < 0.4)))
    bought.outcomes[:] *= generator.random(4000)
    sparse = check(bought, REWARDS).findings[0]
    assert (sparse.kind, sparse.stops) == ("sparse", True)
    halves = check(without(log, generator.random(4000) < 0.6), REWARDS)
    assert [(finding.kind, finding.stops) for finding in halves.findings] == [("sparse", False)]
    assert halves.can_name_best


def test_equal_outcomes_without_a_blank_make_no_policy_better() -> None:
    log = healthy(5, never=-1)
    log.outcomes[:] = 0.25
    log.outcome_times[:] = log.times + DAYS
    found = check(log, REWARDS)
    assert [finding.words for finding in found.findings] == [
        "Every outcome in the log is 0.25. So no policy is better than another."
    ]
    assert not found.can_name_best
    assert found.can_trust_delays


def test_early_successes_at_the_end_are_told_from_missing_ones() -> None:
    """Successes come within hours and failures after two days. So the last two days have mostly successes."""
    log = healthy(6, 12_000, is_drifting=False)
    exported = without(log, log.outcome_times > log.times[-1])
    (finding,) = check(exported, REWARDS).findings
    assert finding.kind == "young"
    assert finding.stops
    assert finding.words.startswith("Among the decisions of the last 2 days, calm has an outcome ")
    assert "--wait 172801" in finding.advice or "--wait 172800" in finding.advice


@pytest.mark.parametrize(("factor", "order"), [(2.0, "later"), (0.5, "sooner")])
def test_a_slow_or_quick_arm_is_noticed_but_stops_nothing(factor: float, order: str) -> None:
    log = healthy(7)
    late = np.where(log.arms == 0, log.times + factor * (log.outcome_times - log.times), log.outcome_times)
    slow = Log(log.arm_names, log.times, log.arms, log.outcomes, late, log.probabilities)
    found = check(slow, REWARDS)
    assert [finding.kind for finding in found.findings] == ["delay"]
    assert f"The outcomes of wide come {order} than those of the others." in found.findings[0].words
    assert found.can_name_best


@pytest.mark.parametrize("seed", range(5))
def test_outcomes_of_many_values_that_decide_the_delay_are_no_finding(seed: int) -> None:
    """The better arm has larger outcomes, and they come later. Equal ones come equally late."""
    generator = np.random.default_rng(seed)
    times, arms = np.sort(generator.random(8000)) * 1e6, generator.integers(0, 2, 8000)
    outcomes = np.where(arms == 0, generator.beta(2, 4, 8000), generator.beta(4, 2, 8000))
    assert kinds(Log(("a", "b"), times, arms, outcomes, times + 1000 * outcomes)) == []


def test_a_difference_too_small_to_matter_raises_nothing() -> None:
    """Chance cannot explain it in half a million rows, but it hardly shifts an estimate."""
    log = healthy(8, 500_000, is_drifting=False)
    is_lost = (log.arms == 2) & (np.random.default_rng(108).random(500_000) < 0.005)
    found = check(without(log, is_lost), REWARDS)
    assert found.rates.p_value < 0.001
    assert found.findings == ()


def test_a_tiny_or_empty_log_can_be_checked() -> None:
    log = Log(("a", "b"), np.arange(3.0), np.array([0, 1, 0]), np.full(3, math.nan), np.full(3, math.inf))
    found = check(log)
    assert math.isnan(found.wait)
    assert math.isnan(found.rates.p_value)
    assert found.findings == ()
    assert not came(log).any()


def test_percent() -> None:
    assert [percent(share) for share in (0, 0.00012, 0.034, 0.31, 0.994, 0.9987, 1)] == [
        "0%",
        "0.012%",
        "3.4%",
        "31%",
        "99%",
        "99.9%",
        "100%",
    ]
