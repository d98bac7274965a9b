"""What every adapter of a policy shares: rounds that are numbered, open and reported once."""

from collections.abc import Callable
from importlib.metadata import version
from typing import Any, final

import numpy as np

from belated.arrays import Floats
from belated.errors import DuplicateReport, InvalidInput, UnknownRound
from belated.learner.decisions import Decision, Learner, MakeLearner, as_round
from belated.validation import as_loss

Pull = Callable[[], int]
Update = Callable[[int, float], object]
new_tuple = tuple.__new__  # makes a Decision without its detour through Python


@final
class PolicyLearner:
    """A policy of another package as a learner. The policy pulls an arm and is updated with an arm and a reward.

    A loss becomes the reward 1 - loss. The policy does not say its probabilities, so a decision has probability 1.0.
    That is its probability once the policy has drawn. Do not log it as a propensity.

    name:   the policy, for messages and tables
    pull:   draws the next arm
    update: takes an arm and its reward
    """

    __slots__ = "_open", "_pull", "_round", "_update", "n_arms", "name"

    def __init__(self, name: str, n_arms: int, pull: Pull, update: Update) -> None:
        self.name, self.n_arms = name, n_arms
        self._pull, self._update = pull, update
        self._round = 0
        self._open: dict[int, int] = {}  # the arm of each round without a report

    @property
    def outstanding(self) -> int:
        """Decisions without a report."""
        return len(self._open)

    def ask(self) -> Decision:
        """Decide the next round."""
        arm = self._pull()
        if type(arm) is not int or not 0 <= arm < self.n_arms:
            raise wrong_arm(self.name, arm, self.n_arms)
        self._round = round = self._round + 1
        self._open[round] = arm
        return new_tuple(Decision, (round, arm, 1.0))

    def tell(self, decision: Decision | int, loss: float) -> None:
        """Report the loss in [0, 1] of an earlier decision or its round, in any order, once."""
        if not (type(loss) is float and 0.0 <= loss <= 1.0):
            loss = as_loss(loss)
        if type(decision) is Decision:
            decision = decision[0]
        round = decision if type(decision) is int else as_round(decision)
        arm = self._open.pop(round, None)
        if arm is None:
            raise not_open(round, self._round)
        self._update(arm, 1.0 - loss)

    def __repr__(self) -> str:
        return f"{self.name}: round {self._round}, {self.outstanding} outstanding"


@final
class ProbabilityLearner:
    """A policy that says the probability of its draws, and wants it back with the reward.

    pull:   draws the next arm. Gives it, its probability and a note
    update: takes an arm, its reward, the probability of its draw and the note
    """

    distribution: Callable[[], Floats]  # only if it was given

    def __init__(
        self,
        name: str,
        n_arms: int,
        pull: Callable[[], tuple[int, float, object]],
        update: Callable[[int, float, float, object], object],
        distribution: Callable[[], Floats] | None = None,
    ) -> None:
        self.name, self.n_arms = name, n_arms
        self._pull, self._update = pull, update
        self._round = 0
        self._open: dict[int, tuple[int, float, object]] = {}
        if distribution is not None:
            self.distribution = distribution

    @property
    def outstanding(self) -> int:
        """Decisions without a report."""
        return len(self._open)

    def ask(self) -> Decision:
        """Decide the next round."""
        drawn = self._pull()
        arm = drawn[0]
        if type(arm) is not int or not 0 <= arm < self.n_arms:
            raise wrong_arm(self.name, arm, self.n_arms)
        self._round = round = self._round + 1
        self._open[round] = drawn
        return new_tuple(Decision, (round, arm, drawn[1]))

    def tell(self, decision: Decision | int, loss: float) -> None:
        """Report the loss in [0, 1] of an earlier decision or its round, in any order, once."""
        if not (type(loss) is float and 0.0 <= loss <= 1.0):
            loss = as_loss(loss)
        if type(decision) is Decision:
            decision = decision[0]
        round = decision if type(decision) is int else as_round(decision)
        drawn = self._open.pop(round, None)
        if drawn is None:
            raise not_open(round, self._round)
        self._update(drawn[0], 1.0 - loss, drawn[1], drawn[2])

    def __repr__(self) -> str:
        return f"{self.name}: round {self._round}, {self.outstanding} outstanding"


@final
class Maker:
    """Makes a learner for each game from a number of arms and a seed. `lab.play` takes it.

    `fingerprint` is a text that differs whenever the policy or its settings do. There is none for code of your own,
    because nothing shows whether it has changed.
    """

    fingerprint: str

    def __init__(self, name: str, make: MakeLearner, fingerprint: str | None = None) -> None:
        self.name = self.__name__ = name
        self.__doc__ = f"{name}, through an adapter."
        self._make = make
        if fingerprint is not None:
            self.fingerprint = fingerprint

    def __call__(self, n_arms: int, seed: int) -> Learner:
        """A new learner."""
        return self._make(n_arms, seed)

    def load(self) -> MakeLearner:
        """The function that makes the learners. Comparisons call it where they play."""
        return self._make

    def __repr__(self) -> str:
        return self.name


def fingerprint_of(package: str, kind: Any, settings: object) -> str | None:
    """A text that says which policy of a package this is. None if it is not of the package, or holds other objects."""
    words = f"{package} {version(package)} {getattr(kind, '__qualname__', '')} {settings!r}"
    is_known = isinstance(kind, type) and is_plain((kind, settings), package)
    return words if is_known else None


def is_plain(value: Any, package: str) -> bool:
    """Whether the text of a value says all of it. That of an object may leave out settings."""
    if isinstance(value, dict):
        return all(is_plain(part, package) for part in value.items())
    if isinstance(value, tuple | list):
        return all(is_plain(part, package) for part in value)
    if isinstance(value, type):
        return value.__module__.partition(".")[0] == package
    return value is None or isinstance(value, bool | int | float | str | np.number | np.bool_)


def wrong_arm(name: str, arm: object, n_arms: int) -> InvalidInput:
    """A policy chose something that is no arm."""
    return InvalidInput(f"{name} chose {arm!r}, which is no arm. The arms are the whole numbers 0 to {n_arms - 1}")


def not_open(round: int, asked: int) -> UnknownRound | DuplicateReport:
    """A report of a round that does not wait for one."""
    return DuplicateReport(round) if 1 <= round <= asked else UnknownRound(round, asked)
