"""Off-policy estimates on known problems, compared with the truth."""

import math
from typing import Any

import numpy as np
import pytest

from belated import OutcomeRange
from belated.arrays import Floats
from belated.errors import InvalidInput
from belated.replay import LOGGED, UNIFORM, Log, delays_in_rounds, evaluate, evaluate_all
from belated.replay.off_policy import default_policies, policy_weights
from belated.tunings import Advanced, Shadow, Tuning, schedule
from tests.support.lossy_logs import healthy, positives_only
from tests.support.off_policy import all_probabilities, assert_unbiased_and_covered, log_of, world
from tests.support.oracles import slow_argmin


def literal_distributions(log: Log, tuning: Tuning) -> Floats:
    """x_t from the definition, with the estimates of all outcomes before decision t and the slow argmin."""
    assert log.probabilities is not None
    rates = schedule(tuning, 3, delays_in_rounds(log.times, log.outcome_times))
    x = np.empty((log.times.size, 3))
    for t, now in enumerate(log.times):
        losses = np.zeros(3)
        for s in range(t):
            if log.outcome_times[s] <= now:
                losses[log.arms[s]] += log.outcomes[s] / log.probabilities[s]
        x[t] = slow_argmin(losses, rates.alpha[t], rates.beta[t])
    return x


@pytest.mark.parametrize("tuning", [Advanced()], ids=str)  # tests/system has the others
def test_a_learner_knows_only_what_had_come_weighted_by_the_logged_probabilities(tuning: Tuning) -> None:
    log = log_of(world(60, is_skewed=True), np.random.default_rng(1))
    x = literal_distributions(log, tuning)
    assert log.probabilities is not None
    expected = x[np.arange(60), log.arms] / log.probabilities
    np.testing.assert_allclose(policy_weights(log, tuning, log.outcomes), expected, rtol=1e-9)


def test_a_shadow_is_told_in_the_order_in_which_outcomes_came() -> None:
    log = log_of(world(600, is_skewed=True), np.random.default_rng(2))
    x = all_probabilities(log, Shadow(switch_threshold=0.01))
    assert log.probabilities is not None
    expected = x[np.arange(600), log.arms] / log.probabilities
    assert policy_weights(log, Shadow(switch_threshold=0.01), log.outcomes).tolist() == expected.tolist()


def test_the_logged_policy_is_the_plain_mean() -> None:
    log = log_of(world(is_skewed=True), np.random.default_rng(3))
    estimate, values = evaluate(log, LOGGED), log.outcomes[np.isfinite(log.outcomes)]
    half = 1.96 * values.std(ddof=1) / math.sqrt(values.size)
    assert estimate.ips == pytest.approx((values.mean(), values.mean() - half, values.mean() + half), rel=1e-4)
    assert estimate.snips.value == pytest.approx(values.mean())
    assert estimate.effective == pytest.approx(values.size)
    assert (estimate.n_outcomes, estimate.mean_weight) == (values.size, 1.0)


def test_rewards_in_other_units_are_the_same_losses() -> None:
    """Losses l and rewards 10 - 20 l in [-10, 10] give a learner the same weights. Estimates keep their units."""
    log = log_of(world(is_skewed=True), np.random.default_rng(4))
    rewards = Log(log.arm_names, log.times, log.arms, 10 - 20 * log.outcomes, log.outcome_times, log.probabilities)
    one, other = evaluate(log, Shadow()), evaluate(rewards, Shadow(), OutcomeRange(-10, 10, better="higher"))
    assert other.snips.value == pytest.approx(10 - 20 * one.snips.value)
    assert other.effective == pytest.approx(one.effective)
    came = np.isfinite(log.outcomes)
    mean_weight = policy_weights(log, Shadow(), log.outcomes)[came].mean()
    assert other.ips.value == pytest.approx(10 * mean_weight - 20 * one.ips.value)


def test_all_candidates() -> None:
    log = log_of(world(is_skewed=False), np.random.default_rng(4))
    estimates = evaluate_all(log)
    tunings = ["Means", "Shadow", "Simple", "Advanced", "AdaptiveExp3", "Tsallis"]
    assert [one.name for one in estimates] == [*tunings, "always a", "always b", "always c", "uniform", "logged"]
    assert estimates[-2].ips == pytest.approx(estimates[-1].ips)  # it was logged uniformly
    assert all(0.7 < one.mean_weight < 1.3 for one in estimates)
    blind = Log(log.arm_names, log.times, log.arms, log.outcomes, log.outcome_times)
    assert default_policies(blind) == [LOGGED]
    assert [one.name for one in evaluate_all(blind)] == ["logged"]


def test_an_arm_without_outcomes_has_no_estimate() -> None:
    one = np.ones(3)
    log = Log(
        ("a", "b"), np.arange(3.0), np.array([0, 0, 1]), np.array([1, 0, math.nan]), np.array([1, 2, math.inf]), one
    )
    estimate = evaluate(log, 1)
    assert all(map(math.isnan, (*estimate.ips, *estimate.snips)))
    assert estimate.effective == 0
    assert estimate.mean_weight == pytest.approx(1 / 3)  # of all rows


def test_missing_outcomes_do_not_change_the_mean_weight() -> None:
    """It is about the probabilities, and they are right for rows without an outcome as well."""
    log = healthy(1)
    for policy in (0, 2, UNIFORM):
        whole, part = evaluate(log, policy), evaluate(positives_only(log), policy)
        assert part.mean_weight == whole.mean_weight
        assert part.weight_chance == whole.weight_chance > 0.001
    assert log.probabilities is not None
    weights = (log.arms == 2) / log.probabilities
    assert evaluate(log, 2).mean_weight == pytest.approx(weights.mean())


def test_the_interval_of_snips_is_cut_at_the_range_and_ips_is_not() -> None:
    outcomes, chances = np.array([1.0] * 19 + [0.0]), np.full(20, 0.4)
    log = Log(("a", "b"), np.arange(20.0), np.arange(20) % 2, outcomes, np.arange(20.0), chances)
    estimate = evaluate(log, LOGGED)
    assert (estimate.snips.value, estimate.snips.high) == (0.95, 1.0)
    assert estimate.snips.low == pytest.approx(0.95 - 1.96 * math.sqrt(0.95 * 0.05 / 20), rel=1e-4)
    assert evaluate(log, 0).ips.value == pytest.approx(1.25)
    assert evaluate(log, LOGGED, OutcomeRange(0, 2, better="lower")).snips.high > 1


def test_what_cannot_be_evaluated_is_refused() -> None:
    log = log_of(world(20, is_skewed=False), np.random.default_rng(4))
    blind = Log(log.arm_names, log.times, log.arms, log.outcomes, log.outcome_times)
    silent = Log(log.arm_names, log.times, log.arms, np.full(20, math.nan), np.full(20, math.inf))
    with pytest.raises(InvalidInput, match=r"without probabilities\. Add a column 'probability'"):
        evaluate(blind, Shadow())
    with pytest.raises(InvalidInput, match="no decision of the log has an outcome"):
        evaluate(silent, LOGGED)
    with pytest.raises(InvalidInput, match="the arm of a policy must be a whole number from 0 to 2, got 3"):
        evaluate(log, 3)
    with pytest.raises(InvalidInput, match="got 'best'"):
        evaluate(log, "best")  # type: ignore[arg-type]
    with pytest.raises(
        InvalidInput, match=r"decision \d+: the outcome 1 is outside the range from 0 to 0.5. The outcomes"
    ):
        evaluate(log, LOGGED, OutcomeRange(0, 0.5, better="lower"))


@pytest.mark.parametrize("settings", [(1, 1), (1, 0), (math.nan, 1), (0, math.inf), ("0", 1), (0, 1, "yes")])
def test_ranges_are_checked(settings: Any) -> None:
    with pytest.raises(InvalidInput):
        OutcomeRange(*settings)


@pytest.mark.parametrize("is_skewed", [False, True])
@pytest.mark.parametrize("policy", [0, 1, 2, UNIFORM, LOGGED], ids=str)
def test_estimates_are_unbiased_and_their_intervals_cover(policy: Any, is_skewed: bool) -> None:
    assert_unbiased_and_covered(policy, is_skewed=is_skewed)
