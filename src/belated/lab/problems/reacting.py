"""Losses that react to what was played."""

from collections.abc import Callable, Generator, Iterator
from dataclasses import dataclass
from typing import Any, final

import numpy as np
from numpy.typing import ArrayLike

from belated.arrays import Floats
from belated.errors import InvalidInput
from belated.lab.problems.texts import text_of_code
from belated.validation import as_numbers

Rule = Callable[[int, int, np.random.Generator], Generator[ArrayLike, int, Any]]


@final
@dataclass(frozen=True, repr=False)
class Reacting:
    """Losses that may depend on the arms played before.

    `rule(n_arms, n_rounds, generator)` is a generator function. It yields the losses of all arms in the coming round,
    and receives the arm that was played there. What it remembers are its own variables, so every game starts afresh.

    >>> from belated import lab
    >>> def wearing_out(n_arms, n_rounds, generator):
    ...     wear = [0.0] * n_arms
    ...     while True:
    ...         arm = yield wear
    ...         wear = [0.9 * one for one in wear]
    ...         wear[arm] += 0.1
    >>> problem = lab.Problem(lab.Reacting(wearing_out), lab.Fixed(5), n_arms=3, n_rounds=100)
    """

    rule: Rule
    fingerprint: str | None = None  # change it with the code of the rule, to keep games in a folder (docs/sweeps.md)

    def __repr__(self) -> str:
        return f"Reacting({text_of_code(self.rule)})"

    def __post_init__(self) -> None:
        if not callable(self.rule):
            raise InvalidInput(f"a reacting rule must be a generator function, got {self.rule!r:.80}")

    @property
    def depends_on_horizon(self) -> bool:
        """Whether the first rounds of a longer game differ. Nobody knows it of a function."""
        return False

    @property
    def follows_delay(self) -> bool:
        """Whether the typical delay changes the losses. A rule does not hear of it."""
        return False

    def loaded(self) -> "Reacting":
        """The same rule."""
        return self

    def rows(
        self, n_arms: int, n_rounds: int, generator: np.random.Generator, last_arm: Callable[[], int]
    ) -> Iterator[Floats]:
        """The losses of each round as a block of one row. The arm of the round before is asked for in between."""
        under_way = self.rule(n_arms, n_rounds, generator)
        if not isinstance(under_way, Generator):
            raise InvalidInput(
                f"a reacting rule must be a generator function. It yields the losses of a round and receives the arm. "
                f"{self.rule!r:.80} returned {under_way!r:.80}"
            )
        for round in range(1, n_rounds + 1):
            try:
                given = next(under_way) if round == 1 else under_way.send(last_arm())
            except StopIteration:
                raise InvalidInput(f"{self.rule!r:.80} gave losses for {round - 1} of {n_rounds} rounds") from None
            yield self._checked(given, n_arms, round)

    def _checked(self, given: Any, n_arms: int, round: int) -> Floats:
        try:
            row = as_numbers(given).copy()  # because the rule may go on changing its own
        except InvalidInput:
            row = np.empty(0)
        if row.shape != (n_arms,) or not (row.min() >= 0 and row.max() <= 1):
            raise InvalidInput(
                f"{self.rule!r:.80} must yield {n_arms} losses from 0 to 1, got {given!r:.80} in round {round}"
            )
        return row[None]
