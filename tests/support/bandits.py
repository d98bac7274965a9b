"""Small bandit games for the tests of the baselines."""

from collections.abc import Sequence

import numpy as np

from belated import Decision
from belated.arrays import Floats
from belated.baselines import Doubling, Skipper


def coins(n: int, means: Sequence[float], seed: int) -> Floats:
    """Bernoulli losses."""
    return (np.random.default_rng(seed).random((n, len(means))) < means).astype(float)


def play_known(learner: Skipper | Doubling, delays: Sequence[int], losses: Floats) -> list[Decision]:
    """A game in which every delay is known when the arm is drawn."""
    due: dict[int, list[int]] = {}
    decisions: list[Decision] = []
    for t, delay in enumerate(delays, 1):
        decisions.append(learner.ask(delay))
        due.setdefault(t + delay, []).append(t)
        for s in due.pop(t, []):
            learner.tell(s, float(losses[s - 1, decisions[s - 1].arm]))
    return decisions


def regret(decisions: Sequence[Decision], losses: Floats) -> float:
    suffered = losses[np.arange(len(losses)), [decision.arm for decision in decisions]].sum()
    return float(suffered - losses.sum(axis=0).min())


def random_delays(n: int, longest: int, seed: int) -> list[int]:
    return np.random.default_rng(seed).integers(0, longest + 1, n).tolist()  # type: ignore[no-any-return]
