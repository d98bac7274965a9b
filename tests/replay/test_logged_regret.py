"""What the policy that made a log has lost is what its learner says."""

import numpy as np
import pytest

from belated import FTRL
from belated.replay.decision_log import Log
from belated.replay.logged_regret import logged_bound
from belated.tunings import Tsallis


def test_it_is_the_bound_of_the_learner_that_made_the_log() -> None:
    """Up to the small share of the confidence that a learner keeps for changes of its arms."""
    learner, generator, n = FTRL(3, Tsallis(), seed=1), np.random.default_rng(2), 2000
    decisions = learner.ask(n)
    losses = np.where(generator.random(n) < 0.9, generator.integers(0, 3, n) / 2, np.nan)
    for decision, loss in zip(decisions, losses.tolist(), strict=True):
        if not np.isnan(loss):
            learner.tell(decision, loss)
    arms = np.array([decision.arm for decision in decisions])
    probabilities = np.array([decision.probability for decision in decisions])
    log = Log(("a", "b", "c"), np.arange(n, dtype=float), arms, losses, np.arange(n, dtype=float), probabilities)
    for confidence in (0.5, 0.95):
        own = learner.regret_bound(1 - (1 - confidence) / 0.9)
        assert logged_bound(log, losses, confidence) == pytest.approx(own, rel=1e-9)
    assert logged_bound(log, np.full(n, np.nan)) == n
