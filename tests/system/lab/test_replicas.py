"""Lag is delay: the regret of real copies against that of one learner, over many seeds."""

import numpy as np
import pytest
from numpy.typing import NDArray

from belated import lab
from belated.tunings import Advanced, Shadow, Tuning
from tests.lab.test_replicas import TUNINGS, assert_certificates_hold, assert_certificates_stay_above_the_regret

PROBLEMS = {
    "coin flips": lab.Problem(lab.Bernoulli(0.4), lab.Geometric(3.0), 4, 1500),
    "sine": lab.Problem(lab.Sine(1500.0), lab.Geometric(3.0), 4, 1500),
    "some never reported": lab.Problem(lab.Bernoulli(0.4), lab.Lost(0.05, 3), 4, 1500),
}
SEEDS, LAG = range(10), 100


def errors_above(first: NDArray[np.float64], second: NDArray[np.float64]) -> float:
    """The difference of two means, in its standard errors."""
    errors = [values.std(ddof=1) / np.sqrt(len(values)) for values in (first, second)]
    return float((first.mean() - second.mean()) / np.hypot(*errors))


@pytest.mark.parametrize("tuning", TUNINGS, ids=repr)
@pytest.mark.parametrize("name", PROBLEMS)
def test_the_effective_delay_explains_the_regret_of_real_copies(tuning: Tuning, name: str) -> None:
    problem, end = PROBLEMS[name], [1500]

    def single(rule: lab.Delays) -> NDArray[np.float64]:
        transformed = lab.Problem(problem.losses, rule, problem.n_arms, problem.n_rounds)
        return lab.play(tuning, transformed, range(100, 200), checkpoints=end).expected[:, -1]

    plain, later = single(problem.delays), single(lab.Lagged(problem.delays, LAG))
    copies = lab.replicas.play_apart(tuning, problem, SEEDS, replicas=2, lag=LAG, checkpoints=end).expected[:, -1]
    assert abs(errors_above(copies, single(lab.Replicated(problem.delays, 2, LAG)))) < 3.5
    assert errors_above(later, copies) > 5  # so neither with the whole lag nor without it
    assert errors_above(copies, plain) > 2.5
    journal = lab.replicas.play(tuning, problem, SEEDS, replicas=3, lag=LAG, checkpoints=[50, 400])
    assert errors_above(journal.regret[:, -1], later) < 3.5  # its rates are older, which may help
    assert errors_above(journal.regret[:, -1], plain) > 5
    assert_certificates_hold(journal)


@pytest.mark.parametrize(("lag", "tuning"), [(5, Advanced()), (300, Shadow()), (300, Advanced())], ids=repr)
def test_both_certificates_of_the_journal_stay_above_the_regret(tuning: Tuning, lag: int) -> None:
    assert_certificates_stay_above_the_regret(tuning, lag)
