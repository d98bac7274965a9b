"""Every learner of the package, by name: a later algorithm adds itself here and passes the contract."""

import math
from collections.abc import Callable

from belated import FTRL, AdaptiveExp3, Advanced, Exp3, Learner, Simple, Tsallis, Tuning


class Own(Tuning):
    """A rule a user might write: twice as careful in the entropy as the simple tuning."""

    def rates(self, n_arms: int, round: int, outstanding: int, backlog: int) -> tuple[float, float]:
        return math.sqrt(round), 2 * math.sqrt(2 * backlog / math.log(n_arms))


TUNINGS: dict[str, Tuning] = {
    "simple": Simple(),
    "simple, scaled": Simple(scale=0.3),
    "advanced": Advanced(),
    "advanced, scaled": Advanced(scale=2.5),
    "advanced, discarding": Advanced(discard=True),
    "tsallis": Tsallis(),
    "exp3": Exp3(eta=0.05),
    "adaptive exp3": AdaptiveExp3(),
    "own rule": Own(),
}


def ftrl(tuning: Tuning, refresh: int = 1) -> Callable[[int, int], Learner]:
    """A maker of learners from a number of arms and a seed."""
    return lambda n_arms, seed: FTRL(n_arms, tuning, seed=seed, refresh=refresh)


LEARNERS: dict[str, Callable[[int, int], Learner]] = {
    **{name: ftrl(tuning) for name, tuning in TUNINGS.items()},
    "advanced, refresh 7": ftrl(Advanced(), refresh=7),
}
