"""What a learner mixes into its distribution: a floor for every arm, and a holdout (docs/theory/mixing.md).

    p_i = even + (1 - mixed) x_i, and the holdout's share on top for the control

x is the distribution of the tuning. Decisions are drawn from p, p is recorded, and estimates are weighted by 1 / p.
"""

from typing import Any, NamedTuple

from belated.arrays import Floats
from belated.errors import InvalidInput
from belated.scalars import as_float

NO_CONTROL = -1  # the holdout is uniform
SLACK = 1e-9  # for 1/k, rounded


class Mix(NamedTuple):
    """A floor for every arm, and the share of the decisions that are drawn without learning."""

    floor: float = 0.0
    holdout: float = 0.0
    control: int = NO_CONTROL  # the only arm of the holdout, or NO_CONTROL if it draws uniformly

    def mixed(self, n_arms: int) -> float:
        """The share of the decisions that does not come from the tuning."""
        by_floor = min(1.0, n_arms * self.floor)
        return by_floor if self.holdout == 0 else self.holdout + (1 - self.holdout) * by_floor

    def even(self, n_arms: int) -> float:
        """The probability that every arm has at least."""
        if self.holdout == 0:
            return self.floor
        return (1 - self.holdout) * self.floor + (self.holdout / n_arms if self.control == NO_CONTROL else 0.0)

    def cost(self, n_arms: int) -> float:
        """What a decision loses by the mix at most, on average."""
        uniform = (1 - self.holdout) * self.floor * (n_arms - 1)
        return uniform + self.holdout * (1 - 1 / n_arms if self.control == NO_CONTROL else 1.0)


NO_MIX = Mix()


def share_of(mix: Mix, n_arms: int) -> float:
    """The share of the decisions that does not come from the tuning. With a single arm there is nothing to mix."""
    return 0.0 if n_arms == 1 else mix.mixed(n_arms)


def write_mix(clock: Any, mix: Mix, n_arms: int) -> None:
    """Tell the kernels. With a single arm there is nothing to mix."""
    if n_arms == 1:
        mix = NO_MIX
    has_control = mix.control != NO_CONTROL
    clock["even"], clock["mixed"], clock["mix_cost"] = mix.even(n_arms), mix.mixed(n_arms), mix.cost(n_arms)
    clock["control"], clock["control_share"] = (mix.control, mix.holdout) if has_control else (0, 0.0)


def drawn_from(clock: Any, x: Floats) -> Floats:
    """The probability with which each arm is drawn, from the distribution x of the tuning. x itself without a mix."""
    if clock["mixed"] == 0:
        return x
    p: Floats = clock["even"] + (1 - clock["mixed"]) * x
    p[int(clock["control"])] += clock["control_share"]
    return p


def as_floor(floor: Any, n_arms: int) -> float:
    """A probability that each of these arms can have at the same time."""
    value = as_float(floor)
    if not 0 <= value * n_arms <= 1 + SLACK:
        raise InvalidInput(
            f"floor must be a probability that each of {n_arms} arms can have, from 0 to 1/{n_arms}, got {floor!r}"
        )
    return value
