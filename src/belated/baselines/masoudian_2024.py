"""The best-of-both-worlds algorithm that is robust to excessive delays.

S. Masoudian, J. Zimmert, Y. Seldin. A Best-of-both-worlds Algorithm for Bandits with Delayed Feedback with Robustness
to Excessive Delays. NeurIPS 2024.
ZS20: J. Zimmert, Y. Seldin. An Optimal Algorithm for Adversarial Bandits with Arbitrary Delays. AISTATS 2020.
"""

import math
from dataclasses import dataclass
from typing import final

from belated.arrays import Floats
from belated.baselines.baseline import Baseline
from belated.baselines.open_rounds import OpenRounds
from belated.learner.decisions import Decision
from belated.learner.ftrl import FTRL
from belated.tunings import Tuning
from belated.validation import whole_number


@final
@dataclass(frozen=True)
class MasoudianRates(Tuning):
    """alpha_t = sqrt(t), beta_t = 7 sqrt(D_t / ln k). A round counts while t - s <= sqrt(D_t / (49 k^(2/3) ln k))."""

    discard: bool = True

    def rates(self, n_arms: int, round: int, outstanding: int, backlog: int) -> tuple[float, float]:
        return math.sqrt(round), 7 * math.sqrt(backlog / math.log(n_arms))

    def patience(self, n_arms: int) -> float:
        return 1 / (7 * math.pow(n_arms, 1 / 3) * math.sqrt(math.log(n_arms)))


@final
class Masoudian2024(Baseline):
    """ZS20's algorithm with more entropy, earlier skipping, and implicit exploration in place of a known d_max [read].

        alpha_t = sqrt(t),  beta_t = 7 sqrt(D_t / ln k)
        a round is skipped permanently, and its feedback dropped, once t - s > sqrt(D_t / (49 k^(2/3) ln k))
        lhat_s = loss / max{ x_s[A_s], lambda_{s,t} },  lambda_{s,t} = exp(-D_t / (D_t - D_s)),  0 if D_t = D_s,
        for feedback of round s that comes at the end of round t

    D_t counts an outstanding round until it is skipped. A round that is not skipped has
    lambda <= exp(-24.5 k^(2/3) ln k) [derived], so lambda matters only for arms that are hardly ever drawn.

    Needs nothing in advance. The guarantee is near ZS20's in the worst case. At the same time the regret is logarithmic
    if losses are independent and identically distributed. The constants were not at hand.
    """

    def __init__(self, n_arms: int, *, seed: int | None = None) -> None:
        self._n_arms = whole_number("n_arms", n_arms, 1)
        self._base = FTRL(self._n_arms, MasoudianRates(), seed=seed)
        self._rounds: OpenRounds[int] = OpenRounds()  # the note is D_s

    @property
    def backlog(self) -> int:
        """D_t, the number of outstanding rounds not skipped, summed over all rounds so far."""
        return self._base.status.backlog

    @property
    def estimated_losses(self) -> Floats:
        """Lobs: each arm's estimated total loss."""
        return self._base.status.estimated_losses

    def ask(self) -> Decision:
        """Decide the next round."""
        own = self._base.ask()
        return self._rounds.open(own.arm, own.probability, self.backlog)

    def _learn(self, round: int, loss: float) -> None:
        value, (_, probability, before) = self._rounds.close(round, loss)
        weight = probability / max(probability, implicit_exploration(before, self.backlog))
        # The base divides by its probability, which leaves lhat = loss / max{ x, lambda }.
        self._base.tell(round, value * weight)

    def distribution(self) -> Floats:
        """x of the next round, the probability of each arm. Changes nothing."""
        return self._base.distribution()


def implicit_exploration(before: int, now: int) -> float:
    """lambda_{s,t} = exp(-D_t / (D_t - D_s)), from D_s and D_t."""
    return math.exp(-now / (now - before)) if now > before else 0.0
