"""Policies of river as learners in the lab, and a Belated learner as a policy of river.

>>> from belated import lab
>>> from belated.adapters import river
>>> from river import bandit
>>> problem = lab.Problem(lab.Bernoulli(gap=0.3), lab.Fixed(10), n_arms=3, n_rounds=300)
>>> curves = lab.play(river.learner(bandit.UCB(delta=1)), problem, seeds=range(2))
>>> curves.suffered.shape[0]
2
"""

import inspect
from collections import deque
from collections.abc import Sequence
from functools import partial
from typing import Any

from belated.adapters.policies import Maker, PolicyLearner, fingerprint_of
from belated.errors import InvalidInput
from belated.extras import missing_package
from belated.learner.decisions import Decision
from belated.learner.ftrl import FTRL
from belated.learner.outcomes import OutcomeRange
from belated.tunings import Tuning, as_tuning
from belated.validation import whole_number

try:
    from river import proba
    from river.bandit import ThompsonSampling, base
except ModuleNotFoundError as error:
    raise ModuleNotFoundError(missing_package("river")) from error


def learner(policy: Any) -> Maker:
    """A policy of river for `lab.play`. Each game plays a new clone of it, with the seed of the game.

    >>> from river import bandit
    >>> learner(bandit.EpsilonGreedy(epsilon=0.1))
    river EpsilonGreedy
    """
    if not isinstance(policy, base.Policy) or isinstance(policy, base.ContextualPolicy):
        shown = (
            type(policy).__name__ if isinstance(policy, base.Policy) else repr(policy)
        )  # river's fail without rewards
        raise InvalidInput(f"give a policy of river.bandit that needs no context, such as bandit.UCB(1), got {shown}")
    if isinstance(policy, ThompsonSampling) and not isinstance(policy.reward_obj, proba.base.Distribution):
        raise InvalidInput(
            "river's ThompsonSampling draws from a distribution, so it cannot play without one. For losses of 0 and 1 "
            "write bandit.ThompsonSampling(reward_obj=proba.Beta()), for others proba.Gaussian()"
        )
    name = type(policy).__name__
    has_seed = "seed" in inspect.signature(type(policy)).parameters

    def make(n_arms: int, seed: int) -> PolicyLearner:
        clone = policy.clone({"seed": whole_number("seed", seed, 0)} if has_seed else None)
        arms = list(range(whole_number("n_arms", n_arms, 1)))
        return PolicyLearner(f"river {name}", n_arms, partial(clone.pull, arms), clone.update)

    is_known = type(policy).__module__.startswith("river.")
    settings = dict(policy._get_params()) if is_known else {}  # with those of the objects inside
    settings.pop("seed", None)
    return Maker(f"river {name}", make, fingerprint_of("river", type(policy), settings))


class Policy(base.Policy):  # type: ignore[misc]  # river has no types here
    """A Belated learner as a policy of river. All arms must be there at the first pull.

    tuning:   the rule of the learner, Means() by default
    outcomes: the range of the rewards. Without it they go from 0 to 1
    seed:     makes the pulls repeatable

    river's policies know rewards by their arm only. So a reward belongs to the oldest pull of its arm that still waits.
    That is right if the rewards of an arm come in order. If they may overtake each other, keep `decision` after the
    pull, and pass it on to `update`.

    >>> policy = Policy(seed=1)
    >>> arm = policy.pull(["blue", "green"])
    >>> late = policy.decision
    >>> _ = policy.pull(["blue", "green"])
    >>> policy.update(arm, 0.8, decision=late)
    >>> policy.learner.outstanding
    1
    """

    def __init__(
        self, tuning: Tuning | None = None, outcomes: OutcomeRange | None = None, seed: int | None = None
    ) -> None:
        super().__init__()
        self.tuning, self.outcomes, self.seed = as_tuning(tuning), outcomes, seed
        self._arms: list[Any] = []
        self._learner: FTRL[int] | None = None
        self._waiting: dict[Any, deque[Decision]] = {}  # of each arm, the oldest first
        self._decision: Decision | None = None

    @property
    def learner(self) -> FTRL[int]:
        """The learner behind the policy. Its arms are numbered as in the first pull."""
        if self._learner is None:
            raise InvalidInput("the learner begins with the first pull. Call pull(arm_ids) first")
        return self._learner

    @property
    def decision(self) -> Decision:
        """The decision of the last pull, with its probability."""
        if self._decision is None:
            raise InvalidInput("no arm has been pulled yet. Call pull(arm_ids) first")
        return self._decision

    def pull(self, arm_ids: Sequence[Any]) -> Any:
        """Choose an arm."""
        if self._learner is None:
            arms = list(arm_ids)
            self._learner = FTRL(len(arms), self.tuning, seed=self.seed, outcomes=self.outcomes)
            self._arms, self._waiting = arms, {arm: deque() for arm in arms}
        elif arm_ids != self._arms and list(arm_ids) != self._arms:
            raise InvalidInput(f"the arms must stay as in the first pull, {self._arms!r:.200}, got {arm_ids!r:.200}")
        self._decision = decision = self._learner.ask()
        arm = self._arms[decision[1]]
        self._waiting[arm].append(decision)
        return arm

    _pull = pull  # what river calls within its own pull

    def update(self, arm_id: Any, reward: float, *, decision: Decision | None = None) -> None:
        """Learn the reward of an arm, for its oldest pull without a reward or for a decision."""
        waiting = self._waiting.get(arm_id)
        if not waiting or not (decision is None or decision in waiting):
            raise InvalidInput(f"no pull of the arm {arm_id!r} waits for a reward, got {decision or reward!r}")
        found = waiting[0] if decision is None else decision
        if self.outcomes is None and type(reward) is float and 0.0 <= reward <= 1.0:
            self.learner.tell(found[0], 1.0 - reward)  # the same, and faster
        else:
            self.learner.tell(found, reward=reward)
        if decision is None:
            waiting.popleft()
        else:
            waiting.remove(found)
        super().update(arm_id, reward)

    def __repr__(self) -> str:
        return str(super().__repr__()) if self._n else f"Policy({self.tuning!r})"  # river shows a table of rewards
