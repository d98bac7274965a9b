"""Games of two learners, each of whose losses depend on both arms."""

from collections.abc import Generator
from dataclasses import dataclass, field, replace
from typing import Any, final

import numpy as np
from numpy.typing import ArrayLike

from belated.arrays import Floats
from belated.errors import InvalidInput
from belated.lab.problems.delays import Delays, NoDelay
from belated.lab.problems.feedback import Feedback
from belated.lab.problems.losses import flip
from belated.lab.problems.problem import Problem
from belated.lab.problems.reacting import Reacting
from belated.lab.problems.steps import Step, StepGame
from belated.lab.problems.texts import text_of_code
from belated.learner.decisions import MakeLearner
from belated.learner.ftrl import FTRL
from belated.tunings import Tuning
from belated.validation import as_numbers, truth, whole_number


@final
@dataclass(frozen=True, eq=False)
class Duel:
    """A matrix game that two learners repeat, each with delays of its own.

    first:         what the first learner loses, with a row for each of its arms and a column for each arm of the second
    second:        what the second learner loses, in the same shape. Without it the game is zero-sum, 1 - first
    delays:        of the first learner
    second_delays: of the second learner. The same rule if it is not given
    coins:         whether the losses are coin flips with these means

    >>> from belated import lab
    >>> pennies = lab.Duel([[0, 1], [1, 0]], delays=lab.Fixed(10), n_rounds=100)
    >>> game = pennies.start(seed=1)
    >>> mine, theirs = game.step(0, 1)
    >>> mine.suffered, theirs.suffered
    (1.0, 0.0)
    """

    first: ArrayLike
    second: ArrayLike | None = None
    delays: Delays | Feedback = field(default_factory=NoDelay)
    second_delays: Delays | Feedback | None = None
    n_rounds: int = 10_000
    coins: bool = False

    def __post_init__(self) -> None:
        first = _losses(self.first)
        second = 1 - first if self.second is None else _losses(self.second)
        if first.shape != second.shape:
            raise InvalidInput(f"both learners need losses of the same shape, got {first.shape} and {second.shape}")
        object.__setattr__(self, "first", first)
        object.__setattr__(self, "second", second)
        object.__setattr__(self, "second_delays", self.second_delays or self.delays)
        whole_number("n_rounds", self.n_rounds, 1)
        truth("coins", self.coins)

    @property
    def turned(self) -> "Duel":
        """The same game seen from the other side."""
        first, second = np.transpose(np.asarray(self.second)), np.transpose(np.asarray(self.first))
        delays: Any = self.second_delays
        return replace(self, first=first, second=second, delays=delays, second_delays=self.delays)

    def start(self, seed: int) -> "DuelGame":
        """A game that is played a round at a time."""
        return DuelGame(self, whole_number("seed", seed, 0))

    def against(self, opponent: Tuning | type[Any] | MakeLearner) -> Problem:
        """The game of the first learner against an opponent, as a problem for `lab.play`.

        The opponent is a tuning, a class of learners, or a function of the number of arms and a seed that makes one.
        """
        is_tuning = isinstance(opponent, type) and issubclass(opponent, Tuning)
        if is_tuning or not (isinstance(opponent, Tuning) or callable(opponent)):
            raise InvalidInput(
                "an opponent must be a tuning such as Tsallis(), a class of learners, or a function (n_arms, seed) "
                f"that makes a learner, got {opponent!r:.80}"
            )
        return Problem(Reacting(_Against(self, opponent)), self.delays, len(np.asarray(self.first)), self.n_rounds)

    def side(self, number: int, arms: list[int]) -> Problem:
        """The game of the first (0) or the second (1) learner, when both arms of each round are written into a list."""
        own = (np.asarray(self.first), np.asarray(self.second).T)[number]

        def rule(_n_arms: int, _n_rounds: int, generator: np.random.Generator) -> Generator[Floats, int, None]:
            while True:
                yield self.row(own[:, arms[1 - number]], generator)

        delays: Any = (self.delays, self.second_delays)[number]
        return Problem(Reacting(rule), delays, len(own), self.n_rounds)

    def row(self, means: Floats, generator: np.random.Generator) -> Floats:
        """The losses of a learner's arms in a round, given their means."""
        return flip(generator, means) if self.coins else means


@final
class DuelGame:
    """A game of two learners under way. Both decide a round before either hears of it."""

    def __init__(self, duel: Duel, seed: int) -> None:
        self._arms = [0, 0]
        self.first: StepGame = duel.side(0, self._arms).start(seed)
        self.second: StepGame = duel.side(1, self._arms).start(other_seed(seed))

    @property
    def round(self) -> int:
        """Rounds played."""
        return self.first.round

    @property
    def is_over(self) -> bool:
        """Whether all rounds are played."""
        return self.first.is_over

    def step(self, arm: int, other: int) -> tuple[Step, Step]:
        """Play the arms of the first and of the second learner. Returns what each of them hears."""
        whole_number("the arm of the second learner", other, 0, self.second.n_arms - 1)
        self._arms[:] = whole_number("the arm of the first learner", arm, 0, self.first.n_arms - 1), other
        return self.first.step(arm), self.second.step(other)


def other_seed(seed: int) -> int:
    """A seed for the second side that has nothing to do with the first."""
    return int(np.random.SeedSequence(seed, spawn_key=(2,)).generate_state(1)[0] >> 1)


@final
class _Against:
    """A reacting rule with an opponent inside."""

    def __init__(self, duel: Duel, opponent: Tuning | type[Any] | MakeLearner) -> None:
        self.duel, self.opponent = duel, opponent

    def __call__(self, n_arms: int, n_rounds: int, generator: np.random.Generator) -> Generator[Floats, int, None]:
        arms, seed = [0, 0], int(generator.integers(2**31))
        game = self.duel.side(1, arms).start(other_seed(seed))
        opponent, own = self._made(game.n_arms, seed), np.asarray(self.duel.first)
        while True:
            arm = whole_number("the arm of the opponent", opponent.ask().arm, 0, game.n_arms - 1)
            arms[1] = arm
            arms[0] = yield self.duel.row(own[:, arm], generator)
            for report in game.step(arm).reports:
                opponent.tell(report.round, report.loss)

    def __repr__(self) -> str:
        return f"against {text_of_code(self.opponent)}"

    def _made(self, n_arms: int, seed: int) -> Any:
        make: Any = self.opponent
        if isinstance(make, Tuning):
            return FTRL(n_arms, make, seed=seed)
        made = make(n_arms, seed=seed) if isinstance(make, type) else make(n_arms, seed)
        if getattr(made, "needs_delay", False) or getattr(made, "feedback", "loss") == "vector":
            raise InvalidInput(
                f"{text_of_code(make)} needs the delay of a round or the losses of all arms. An opponent hears only "
                "its own losses, when they arrive"
            )
        return made


def _losses(given: Any) -> Floats:
    try:
        matrix = as_numbers(given).copy()
    except InvalidInput:
        matrix = np.empty(0)
    if matrix.ndim != 2 or matrix.size == 0 or not (matrix.min() >= 0 and matrix.max() <= 1):
        raise InvalidInput(f"the losses of a duel must be a matrix with numbers from 0 to 1, got {given!r:.80}")
    return matrix
