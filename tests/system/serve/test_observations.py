"""Estimated earnings are unbiased, and their intervals cover the truth as often as they say."""

import math

import numpy as np

from belated.serve.domain.observations import estimate
from tests.serve.test_observations import MEANS, played


def test_the_intervals_cover_what_they_say() -> None:
    generator, runs = np.random.default_rng(2), 200
    covered, widths, means = np.zeros(len(MEANS)), np.zeros(len(MEANS)), np.zeros((runs, len(MEANS)))
    for run in range(runs):
        earnings = played(1200, generator)
        for arm, mean in enumerate(MEANS):
            found = estimate([earnings.sums(arm)])
            covered[arm] += found.low <= mean <= found.high
            widths[arm] += (found.high - found.low) / runs
            means[run, arm] = found.mean
            assert 0 <= found.low <= found.mean <= found.high <= 1
    assert (covered / runs > 0.92).all()
    assert (widths < 2 * 2 * 1.96 * means.std(axis=0)).all()  # not so wide that they say nothing


def test_the_estimate_is_unbiased() -> None:
    """Over many runs the mean of the estimates is the true mean, for frequent and for rare arms."""
    generator, runs, outcomes = np.random.default_rng(1), 600, 100
    found = np.zeros((runs, len(MEANS)))
    for run in range(runs):
        earnings = played(outcomes, generator)
        found[run] = [earnings.sums(arm).total / outcomes for arm in range(len(MEANS))]
    standard_error = found.std(axis=0) / math.sqrt(runs)
    assert (standard_error < 0.03).all()
    assert (abs(found.mean(axis=0) - MEANS) < 4 * standard_error).all()
