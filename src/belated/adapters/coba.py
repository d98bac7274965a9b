"""Learners of coba as learners in the lab, and a Belated learner as a learner of coba.

>>> from belated import lab
>>> from belated.adapters import coba
>>> from coba.learners import BanditUCBLearner
>>> problem = lab.Problem(lab.Bernoulli(gap=0.3), lab.Fixed(10), n_arms=3, n_rounds=300)
>>> curves = lab.play(coba.learner(BanditUCBLearner), problem, seeds=range(2))
>>> curves.suffered.shape[0]
2
"""

from collections.abc import Callable, Mapping, Sequence
from typing import Any, final

import numpy as np

from belated.adapters.policies import Maker, ProbabilityLearner, fingerprint_of
from belated.arrays import Floats
from belated.errors import InvalidInput
from belated.extras import missing_package
from belated.learner.decisions import Decision
from belated.learner.ftrl import FTRL
from belated.learner.outcomes import OutcomeRange
from belated.tunings import Tuning, as_tuning
from belated.validation import whole_number

try:
    from coba.primitives import Learner as CobaLearner
except ModuleNotFoundError as error:
    raise ModuleNotFoundError(missing_package("coba")) from error


@final
class _Player:
    """A learner of coba that decides without a context, between numbered actions."""

    def __init__(self, inner: Any, n_arms: int) -> None:
        self.inner, self.actions = inner, list(range(n_arms))
        self.predict, self.learn = inner.predict, inner.learn

    def pull(self) -> tuple[int, float, object]:
        prediction = self.predict(None, self.actions)
        try:
            action, probability, *rest = prediction
        except (TypeError, ValueError):
            raise unclear(prediction) from None
        if type(action) is int and type(probability) is float and not rest:
            return action, probability, None
        return self._cleaned(prediction, action, probability, rest)

    @staticmethod
    def _cleaned(prediction: object, action: Any, probability: Any, rest: list[Any]) -> tuple[int, float, object]:
        note = rest[0] if len(rest) == 1 else {}
        if len(rest) > 1 or not isinstance(note, Mapping) or not isinstance(probability, float | int | None):
            raise unclear(prediction)
        chance = 1.0 if probability is None else float(probability)
        return int(action) if action == int(action) else action, chance, note or None

    def update(self, arm: int, reward: float, probability: float, note: Any) -> None:
        if note is None:
            self.learn(None, arm, reward, probability)
        else:
            self.learn(None, arm, reward, probability, **note)

    def distribution(self) -> Floats:
        return np.array([self.inner.score(None, self.actions, arm) for arm in self.actions], np.float64)


def unclear(prediction: object) -> InvalidInput:
    """A prediction in a form that only coba itself understands."""
    return InvalidInput(
        "the learner must predict an action and its probability, and may add a dictionary. Wrap it in "
        f"coba.safety.SafeLearner, which makes that of all other forms. It gave {prediction!r:.80}"
    )


def learner(make: Callable[..., Any], *, distribution: bool = False, **settings: Any) -> Maker:
    """A learner of coba for `lab.play`. `make` is its class, or a function, that takes `seed` and the settings.

    A report comes back to it with the probability at which its arm was drawn. With `distribution=True` the lab can
    measure expected regret, because coba's learners can say the score of an action. That takes a score for each arm
    and round.

    >>> from coba.learners import BanditEpsilonLearner
    >>> learner(BanditEpsilonLearner, epsilon=0.1)
    coba BanditEpsilonLearner
    """
    if not callable(make):
        raise InvalidInput(f"give a class of coba.learners or a function that takes a seed, got {make!r}")
    name = f"coba {getattr(make, '__name__', 'learner')}"

    def one(n_arms: int, seed: int) -> ProbabilityLearner:
        arms = whole_number("n_arms", n_arms, 1)
        player = _Player(make(seed=whole_number("seed", seed, 0), **settings), arms)
        score = player.distribution if distribution else None
        return ProbabilityLearner(name, arms, player.pull, player.update, score)

    return Maker(name, one, fingerprint_of("coba", make, (settings, distribution)))


@final
class Learner(CobaLearner):  # type: ignore[misc]  # coba has no types here
    """A Belated learner as a learner of coba. It ignores contexts, and its actions must stay the same.

    tuning:   the rule of the learner, Means() by default
    outcomes: the range of the rewards. Without it they go from 0 to 1
    seed:     makes the predictions repeatable

    The prediction carries its decision, and coba gives it back to `learn`. So rewards may come in any order. An
    interaction that was decided elsewhere comes without one. It is learned with its logged probability.

    >>> one = Learner(seed=1)
    >>> action, probability, kwargs = one.predict(None, ["blue", "green"])
    >>> one.learn(None, action, 0.8, probability, **kwargs)
    """

    def __init__(self, tuning: Tuning | None = None, *, outcomes: OutcomeRange | None = None, seed: int = 1) -> None:
        self._tuning, self._outcomes, self._seed = as_tuning(tuning), outcomes, whole_number("seed", seed, 0)
        self._actions: list[Any] = []
        self._learner: FTRL[int] | None = None

    @property
    def params(self) -> dict[str, Any]:
        """What coba shows of a learner."""
        return {"family": "Belated", "tuning": repr(self._tuning), "seed": self._seed}

    def _on(self, actions: Sequence[Any]) -> FTRL[int]:
        if self._learner is None:
            self._actions = list(actions)
            self._learner = FTRL(len(self._actions), self._tuning, seed=self._seed, outcomes=self._outcomes)
        elif actions != self._actions and (
            len(actions) != len(self._actions) or any(action not in self._actions for action in actions)
        ):
            raise InvalidInput(f"the actions must stay as at first, {self._actions!r:.200}, got {actions!r:.200}")
        return self._learner

    def predict(self, _context: Any, actions: Sequence[Any]) -> tuple[Any, float, dict[str, Decision]]:
        """An action, its probability, and the decision to give back to `learn`."""
        decision = self._on(actions).ask()
        place = decision[1] if actions == self._actions else actions.index(self._actions[decision[1]])
        return actions[place], decision[2], {"decision": decision}  # coba wants the very object that it gave

    def score(self, _context: Any, actions: Sequence[Any], action: Any) -> float:
        """The probability of an action in the coming round."""
        return float(self._on(actions).distribution()[self._arm(action)])

    def learn(
        self, _context: Any, action: Any, reward: float, probability: float, decision: Decision | None = None
    ) -> None:
        """Learn the reward of a prediction, or of an action that was logged with its probability."""
        if self._learner is None:
            raise InvalidInput("the learner begins with the first prediction. Call predict first")
        if decision is None:
            decision = self._learner.record(self._arm(action), probability)
        if self._outcomes is None and type(reward) is float and 0.0 <= reward <= 1.0:
            self._learner.tell(decision[0], 1.0 - reward)  # the same, and faster
        else:
            self._learner.tell(decision, reward=reward)

    def _arm(self, action: Any) -> int:
        if action not in self._actions:
            raise InvalidInput(f"{action!r} is none of the actions {self._actions!r:.200}")
        return self._actions.index(action)
