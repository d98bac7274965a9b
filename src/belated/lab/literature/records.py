"""What a paper played, what it printed, and what is played here beside it. Plain records."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Protocol, final

from belated.arrays import Floats


class Game(Protocol):
    """A game of a paper, which anything with a name here can play."""

    @property
    def n_rounds(self) -> int:
        """The published length."""

    def regrets(self, system: str, seeds: Sequence[int], n_rounds: int) -> Floats:
        """The regret of a system after n rounds, one number for each seed."""


@final
@dataclass(frozen=True)
class Published:
    """A number that a paper printed in its text or in a table, or that was read off a figure.

    `same_as` names the system of the lab that follows the same rule. Only then can the numbers agree or differ.
    """

    system: str  # as the paper calls it
    value: float
    same_as: str | None = None
    deviation: float | None = None  # the standard deviation of a run, if it was printed
    reading: float = 0.0  # the largest error of a value that was read off a figure


@final
@dataclass(frozen=True)
class Case:
    """One game of a paper, its published numbers, and the systems of the lab that play it here."""

    name: str
    title: str
    game: Game
    systems: tuple[str, ...]
    published: tuple[Published, ...] = ()
    runs: int | None = None  # of a published number, if it was printed
    trim: float = 0.0  # the share of the games that the paper left out at either end before it took the mean
    seeds: int = 16  # games in the quick mode
    full_seeds: int = 24
    fewer: Mapping[str, int] = field(default_factory=dict)  # full games of systems that take long
    quick_rounds: int | None = None  # if the published length takes too long


@final
@dataclass(frozen=True)
class Paper:
    """A paper with what was read of it. Without cases it is named, and `note` says why nothing is played."""

    name: str
    citation: str
    settings: str
    read: str  # where the settings and the numbers were read
    cases: tuple[Case, ...] = ()
    note: str = ""
