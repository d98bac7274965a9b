"""Policies of MABWiser as learners in the lab.

>>> from belated import lab
>>> from belated.adapters import mabwiser
>>> from mabwiser.mab import LearningPolicy
>>> problem = lab.Problem(lab.Bernoulli(gap=0.3), lab.Fixed(5), n_arms=3, n_rounds=50)
>>> curves = lab.play(mabwiser.learner(LearningPolicy.UCB1(alpha=1)), problem, seeds=range(2))
>>> curves.suffered.shape[0]
2
"""

from typing import Any, final

import numpy as np

from belated.adapters.policies import Maker, PolicyLearner, fingerprint_of
from belated.errors import InvalidInput
from belated.extras import missing_package
from belated.validation import whole_number

try:
    from mabwiser.mab import MAB
except ModuleNotFoundError as error:
    raise ModuleNotFoundError(missing_package("mabwiser")) from error


@final
class _Fitted:
    """A policy that is asked only when every arm has a reward. Until then an arm without one is drawn."""

    def __init__(self, policy: Any, n_arms: int, seed: int) -> None:
        self.mab = MAB(list(range(n_arms)), policy, seed=seed)
        self.generator = np.random.default_rng(seed)
        self.unknown = list(range(n_arms))

    def pull(self) -> int:
        if self.unknown:
            return self.unknown[self.generator.integers(len(self.unknown))]
        arm: int = self.mab.predict()
        return arm

    def update(self, arm: int, reward: float) -> None:
        self.mab.partial_fit([arm], [reward])
        if arm in self.unknown:
            self.unknown.remove(arm)


def learner(policy: Any) -> Maker:
    """A learning policy of MABWiser for `lab.play`, such as `LearningPolicy.UCB1(alpha=1.25)`.

    A new MAB plays each game, with the seed of the game. MABWiser wants to be fitted before it predicts, and gives an
    arm without rewards the mean 0. So the adapter draws one of the arms without rewards as long as there are any.

    >>> from mabwiser.mab import LearningPolicy
    >>> learner(LearningPolicy.EpsilonGreedy(epsilon=0.1))
    MABWiser EpsilonGreedy
    """
    try:
        needs_context = MAB([0, 1], policy).is_contextual
    except (AttributeError, TypeError, ValueError) as error:
        raise InvalidInput(
            f"give a learning policy of MABWiser, such as LearningPolicy.UCB1(), got {policy!r}: {error}"
        ) from error
    if needs_context:
        raise InvalidInput(f"{policy!r} needs contexts, which problems of the lab do not have. Choose another policy")
    name = f"MABWiser {type(policy).__name__.lstrip('_')}"

    def make(n_arms: int, seed: int) -> PolicyLearner:
        number = whole_number("seed", seed, 0, 2**32 - 1)  # NumPy's seeds are no larger
        fitted = _Fitted(policy, whole_number("n_arms", n_arms, 1), number)
        return PolicyLearner(name, n_arms, fitted.pull, fitted.update)

    return Maker(name, make, fingerprint_of("mabwiser", type(policy), policy))
