"""Consecutive decisions that share one reference distribution and one centre (docs/theory/verdicts.md, "Blocks")."""

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from operator import truediv

EAGER, LEAST = 0.8, 0.2  # a block ends when some probability / reference is below EAGER, later when below LEAST
LEARNED, A_FEW = 2, 4  # it also ends when twice as many outcomes are known as at its start, and a few more
PIECES, OF_ROOM = 40, 4  # and when it has 1/40 of all decisions, or with many arms 4 / room
ROOM, LEAST_ROOM = (
    320,
    16,
)  # room = 320 / arms, at least 16. There are at most room (1 + ln(1 + decisions / room)) blocks


@dataclass(slots=True)
class Block:
    """Sums over consecutive decisions, by arm. A weight is reference / probability.

    Decisions from `paused` on count for the means only. An arm that is not active has the reference 0.
    """

    first: int  # the position of its first decision
    known: int  # outcomes known before it
    centre: float  # c: the mean of those
    means: list[float]  # the mean of each arm's own
    reference: list[float]
    lowest: list[float]  # the least probability / reference of its counted decisions
    counted: int  # decisions that count for differences
    paused: int | None
    open: list[int]  # decisions without an outcome
    weights: list[float]  # of counted decisions: the sum of weights with an outcome
    sums: list[float]  # of weight (outcome - c)
    squares: list[float]  # of its square
    cubes: list[float]  # and of its cube
    open_weights: list[float]  # the sum of weights without an outcome
    open_squares: list[float]  # of their squares
    open_cubes: list[float]  # and of their cubes

    def copy(self) -> "Block":
        """A copy that does not change with this one. The means and the reference of a block never change."""
        return replace(  # `lowest` is replaced, too, and never changed
            self,
            open=self.open.copy(),
            weights=self.weights.copy(),
            sums=self.sums.copy(),
            squares=self.squares.copy(),
            cubes=self.cubes.copy(),
            open_weights=self.open_weights.copy(),
            open_squares=self.open_squares.copy(),
            open_cubes=self.open_cubes.copy(),
        )


def new_block(first: int, known: int, centre: float, means: list[float], reference: list[float]) -> Block:
    """A block without decisions."""
    n = len(means)
    zeros = [[0.0] * n for _ in range(7)]
    return Block(first, known, centre, means, reference, [1.0] * n, 0, None, [0] * n, *zeros)


def ratios_of(distribution: Sequence[float], reference: Sequence[float]) -> list[float]:
    """Probability / reference by arm. 1 for an arm that is not active."""
    if 0.0 in reference:
        return [x / r if r else (math.inf if x else 1.0) for x, r in zip(distribution, reference, strict=True)]
    return list(map(truediv, distribution, reference))


def n_allowed(n_arms: int, decisions: int) -> float:
    """How many blocks there may be."""
    room = max(LEAST_ROOM, ROOM // n_arms)
    return room * (1 + math.log1p(decisions / room))


def piece(n_arms: int, decisions: int) -> float:
    """How many decisions a block has at most. Short blocks allow a look to leave out the youngest decisions."""
    return max(A_FEW, decisions / min(PIECES, max(LEAST_ROOM, ROOM // n_arms) / OF_ROOM))


def is_over(block: Block, lowest: float, highest: float, known: int, decisions: int, share: float) -> bool:
    """Whether a new block should begin. The larger the share of the allowed blocks in use, the less eager it is."""
    if share >= 1:
        return False
    if block.counted >= piece(len(block.means), decisions):
        return True
    least = max(LEAST, EAGER ** (1 / (1 - share)))
    is_paused = block.paused is not None
    return is_paused or lowest < least or highest * least**2 > 1 or known >= LEARNED * block.known + A_FEW
