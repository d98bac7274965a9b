"""Notices a learner whose game depends on more than its seed.

After a game, a new learner with the same seed plays the first rounds once more. If it plays other arms, it draws
numbers that the seed does not fix, or it remembers something from another game. In the second case its regret is
wrong.
"""

from collections.abc import Callable, Iterator

import numpy as np

from belated.arrays import Floats
from belated.lab.algorithms import Game

ROUNDS = 200  # that are played once more


def kept(blocks: Iterator[Floats], opening: list[Floats]) -> Iterator[Floats]:
    """The same blocks. Keeps the first rounds, as they are once they are played. Some games fill them in."""
    missing = ROUNDS
    for block in blocks:
        yield block
        if missing > 0:
            opening.append(block[:missing].copy())
            missing -= len(opening[-1])


def is_repeatable(game: Game, opening: list[Floats], again: Callable[[], Game]) -> bool:
    """Whether a new learner with the same seed plays the same arms in the first rounds."""
    rows = np.vstack(opening)
    try:
        repeated = again()
        repeated.play(rows)
    except Exception:  # noqa: BLE001  (the first game had no error)
        return False
    return np.array_equal(repeated.arms[: len(rows)], game.arms[: len(rows)])


def warning_of(name: str) -> str:
    """What to say of a learner whose game cannot be repeated."""
    return (
        f"{name}: a new learner with the same seed plays other arms in the same game. It draws numbers that the seed "
        "does not fix, so no seed gives this result again. Or it remembers something from game to game, in a class "
        "attribute or a global variable, so its regret is wrong. Make all of it anew from the seed (docs/players.md)"
    )
