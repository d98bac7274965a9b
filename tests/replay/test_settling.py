"""A default outcome for old blanks, and young rows that are left out."""

import math

import numpy as np
import pytest

from belated import OutcomeRange
from belated.errors import InvalidInput
from belated.replay import Log, check, evaluate_all, settle
from tests.support.lossy_logs import RATES, healthy, positives_only, without


def small() -> Log:
    return Log(
        ("a", "b"),
        np.array([0.0, 2.0, 4.0, 6.0, 8.0]),
        np.array([0, 1, 0, 1, 0]),
        np.array([1, math.nan, 1, math.nan, 1]),
        np.array([1, math.inf, 9, math.inf, 10]),
        np.full(5, 0.5),
        ("log.csv, line", np.arange(2, 7)),
    )


def test_old_blanks_get_the_default_at_the_end_of_the_wait() -> None:
    settled = settle(small(), 3.5, 0.0)
    assert settled.log.times.tolist() == [0, 2, 4, 6]  # the log ends at 10
    assert settled.log.outcomes.tolist() == [1, 0, 1, 0]
    assert settled.log.outcome_times.tolist() == [1, 5.5, 9, 9.5]  # a late outcome stays as it is
    assert settled.log.location(3) == "log.csv, line 5"
    assert (settled.n_defaults, settled.n_young, settled.wait) == (2, 1, 3.5)


def test_without_a_default_blanks_stay() -> None:
    settled = settle(small(), 3.5)
    assert np.isnan(settled.log.outcomes).tolist() == [False, True, False, True]
    assert (settled.n_defaults, settled.n_young) == (0, 1)


def test_without_a_wait_it_is_that_of_99_in_100() -> None:
    assert settle(small(), default_outcome=0.0).wait == 5


def test_without_probabilities_and_locations() -> None:
    log = small()
    bare = settle(Log(log.arm_names, log.times, log.arms, log.outcomes, log.outcome_times), 3.5, 0.0).log
    assert (bare.probabilities, bare.locations) == (None, None)


@pytest.mark.parametrize("wait", [0, -1, math.nan, math.inf])
def test_a_wait_is_positive(wait: float) -> None:
    with pytest.raises(InvalidInput, match="wait must be a positive finite number"):
        settle(small(), wait)


def test_too_long_a_wait_is_refused() -> None:
    with pytest.raises(InvalidInput, match="no decision is older than the wait 11, because the log spans 10"):
        settle(small(), 11)
    silent = without(small(), np.full(5, fill_value=True))
    with pytest.raises(InvalidInput, match="Give a wait"):
        settle(silent, default_outcome=0.0)
    assert settle(silent, 2.0, 0.0).log.outcomes.tolist() == [0, 0, 0, 0]


def test_a_default_repairs_a_log_of_positives_only() -> None:
    """Without it every policy seems perfect. With it the estimates find the true rates again."""
    rewards = OutcomeRange(0, 1, better="higher")
    settled = settle(positives_only(healthy(9, 8000, never=-1, is_drifting=False)), default_outcome=0.0)
    assert check(settled.log, rewards).findings == ()
    for estimate, rate in zip(evaluate_all(settled.log, rewards, [0, 1, 2]), RATES, strict=True):
        assert estimate.snips.low < rate < estimate.snips.high
        assert estimate.snips.value == pytest.approx(rate, abs=0.03)


def test_leaving_out_the_young_repairs_a_log_whose_failures_come_late() -> None:
    rewards = OutcomeRange(0, 1, better="higher")
    log = healthy(6, 12_000, is_drifting=False)
    exported = without(log, log.outcome_times > log.times[-1])
    assert not check(exported, rewards).can_name_best
    assert check(settle(exported, 2 * 86400.0 + 1).log, rewards).can_name_best
