"""What the policy that made a log has lost, for any delays (docs/theory/any-delays.md, "This run")."""

import math

import numpy as np

from belated import kernels
from belated.arrays import Floats
from belated.learner.certificates import run_bounds
from belated.replay.decision_log import Log

CONFIDENCE = 0.95


def logged_bound(log: Log, losses: Floats, confidence: float = CONFIDENCE) -> float:
    """The regret of the logged decisions against the best arm is below this, in losses. At most their number.

    `losses` are from 0 to 1, and NaN for a decision without an outcome, which counts with its worst one. The log needs
    probabilities.
    """
    n, known = losses.size, np.isfinite(losses)
    arms, loss, odds = log.arms[known], losses[known], 1 / np.asarray(log.probabilities)[known] - 1
    logs = np.empty((kernels.GRID.size, log.n_arms))
    for j, g in enumerate(kernels.GRID.tolist()):
        others = np.log1p(-g * loss)  # ln(1 + g U) of every arm that was not drawn
        own = np.bincount(arms, np.log1p(g * loss * odds) - others, log.n_arms)
        logs[j] = others.sum() + own + (n - loss.size) * math.log1p(-g)
    return min(float(n), float(run_bounds(logs, math.log(log.n_arms / (1 - confidence))).max()))
