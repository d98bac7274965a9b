"""Always the same arm. With the best arm, this is what regret is measured against."""

from typing import final

from belated.arrays import Floats
from belated.baselines.baseline import Baseline, one_hot
from belated.baselines.open_rounds import OpenRounds
from belated.baselines.seeds import generator_of
from belated.learner.decisions import Decision
from belated.validation import whole_number


@final
class OneArm(Baseline):
    """Plays the same arm in every round.

    To be the best arm in hindsight, it needs the whole game in advance. Then Reg = 0 by definition. The seed is checked
    and not used, because nothing is random.
    """

    def __init__(self, n_arms: int, arm: int = 0, *, seed: int | None = None) -> None:
        self._n_arms = whole_number("n_arms", n_arms, 1)
        self._arm = whole_number("arm", arm, 0, self._n_arms - 1)
        generator_of(seed)
        self._rounds: OpenRounds[None] = OpenRounds()

    def ask(self) -> Decision:
        """Decide the next round."""
        return self._rounds.open(self._arm, 1.0, None)

    def _learn(self, round: int, loss: float) -> None:
        """Accept the loss in [0, 1] of an earlier round, once, and ignore it."""
        self._rounds.close(round, loss)

    def distribution(self) -> Floats:
        """All probability on the arm."""
        return one_hot(self._n_arms, self._arm)
