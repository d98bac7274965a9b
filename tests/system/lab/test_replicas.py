"""Lag acts like delay. The regret of real copies equals that of one learner with longer delays, over many seeds."""

import numpy as np
import pytest
from numpy.typing import NDArray

from belated import lab
from belated.lab.intervals import half_width
from belated.tunings import Simple, Tsallis, Tuning
from tests.lab import test_replicas as quick
from tests.lab.test_replicas import DELAYS, TUNINGS

pytestmark = pytest.mark.long

PROBLEMS = {
    "coin flips": lab.Problem(lab.Bernoulli(0.4), lab.Geometric(3.0), 4, 1500),
    "sine": lab.Problem(lab.Sine(1500.0), lab.Geometric(3.0), 4, 1500),
    "some never reported": lab.Problem(lab.Bernoulli(0.4), lab.Lost(0.05, 3), 4, 1500),
}
SEEDS, LAG = range(20), 100
OTHER_DELAYS = [name for name in DELAYS if name != "lost"]


def errors_above(first: NDArray[np.float64], second: NDArray[np.float64]) -> float:
    """The difference of two means, in standard errors."""
    errors = [values.std(ddof=1) / np.sqrt(len(values)) for values in (first, second)]
    return float((first.mean() - second.mean()) / np.hypot(*errors))


@pytest.mark.parametrize("tuning", TUNINGS, ids=repr)
@pytest.mark.parametrize("name", PROBLEMS)
def test_the_effective_delay_explains_the_regret_of_real_copies(tuning: Tuning, name: str) -> None:
    problem, end = PROBLEMS[name], [1500]

    def single(rule: lab.Delays) -> NDArray[np.float64]:
        transformed = lab.Problem(problem.losses, rule, problem.n_arms, problem.n_rounds)
        return lab.play(tuning, transformed, range(100, 200), checkpoints=end).expected[:, -1]

    assert isinstance(problem.delays, lab.Delays)
    plain, later = single(problem.delays), single(lab.Lagged(problem.delays, LAG))
    copies = lab.replicas.play_apart(tuning, problem, SEEDS, replicas=2, lag=LAG, checkpoints=end).expected[:, -1]
    assert abs(errors_above(copies, single(lab.Replicated(problem.delays, 2, LAG)))) < 3.5
    assert errors_above(later, copies) > 5  # so the whole lag is too much
    assert errors_above(copies, plain) > 2.5
    journal = lab.replicas.play(tuning, problem, SEEDS, replicas=3, lag=LAG, checkpoints=[50, 400])
    assert errors_above(journal.regret[:, -1], later) < 3.5  # its rates are older, which may help
    assert errors_above(journal.regret[:, -1], plain) > 5
    assert_certificates_hold(journal)


def assert_certificates_hold(played: lab.Certified) -> None:
    regret = played.regret.mean(axis=0)
    assert (played.proven.mean(axis=0) >= regret + half_width(played.regret)).all()
    assert (played.measured.mean(axis=0) >= regret).all()


@pytest.mark.parametrize("tuning", TUNINGS, ids=repr)
@pytest.mark.parametrize("lag", [5, 300])
def test_both_certificates_of_the_journal_stay_above_the_regret(tuning: Tuning, lag: int) -> None:
    for losses in (lab.Bernoulli(0.5), lab.Wave(half_period=40), lab.Comeback()):
        problem = lab.Problem(losses, lab.Lost(0.05, 10), 2, 800)
        assert_certificates_hold(lab.replicas.play(tuning, problem, range(3), lag=lag, checkpoints=[50, 400]))


@pytest.mark.parametrize("tuning", TUNINGS, ids=repr)
@pytest.mark.parametrize("rule", [DELAYS[name] for name in OTHER_DELAYS], ids=OTHER_DELAYS)
def test_without_lag_or_others_the_game_is_the_plain_one_bit_for_bit(tuning: Tuning, rule: lab.Delays) -> None:
    quick.test_without_lag_or_others_the_game_is_the_plain_one_bit_for_bit(tuning, rule)


@pytest.mark.parametrize("tuning", [*TUNINGS, Simple(), Tsallis()], ids=repr)
@pytest.mark.parametrize("lag", [1, 60])
def test_one_journal_is_a_single_learner_that_is_told_later_and_has_older_rates(tuning: Tuning, lag: int) -> None:
    quick.test_one_journal_is_a_single_learner_that_is_told_later_and_has_older_rates(tuning, lag)
