"""Notices a learner whose game depends on more than its seed.

After its first game, a new learner with the same seed plays the first rounds once more. If it plays other arms, it
draws numbers that the seed does not fix, or it remembers something from another game. In the second case its regret is
wrong. One game tells it, so the others are not played again. It plays alone. A learner that remembers would know from
a game beside it what to play, and would play that both times.
"""

import threading
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from typing import Any
from weakref import WeakKeyDictionary

import numpy as np

from belated.arrays import Floats
from belated.lab.algorithms import BY_NAME, Algorithm, Game
from belated.lab.algorithms.players import Given

ROUNDS = 200  # that are played once more
_lock = threading.Lock()
_known: WeakKeyDictionary[Any, bool] = WeakKeyDictionary()  # whether the games of a player are repeatable
_turns: WeakKeyDictionary[Any, Any] = WeakKeyDictionary()  # a lock for each player, which its first game holds


def is_of_your_own(algorithm: Algorithm) -> bool:
    """Whether to look. The systems of the table are tested, and a learner that was given plays as a copy."""
    given = algorithm.player
    is_copied = isinstance(given, Given) and given.is_learner
    return not is_copied and algorithm is not BY_NAME.get(algorithm.name)


def kept(blocks: Iterator[Floats], opening: list[Floats]) -> Iterator[Floats]:
    """The same blocks. Keeps the first rounds, as they are once they are played. Some games fill them in."""
    missing = ROUNDS
    for block in blocks:
        yield block
        if missing > 0:
            opening.append(block[:missing].copy())
            missing -= len(opening[-1])


@contextmanager
def first_alone(algorithm: Algorithm) -> Iterator[None]:
    """Play a game. If it is the first one of its player, others wait until it has told whether it is repeatable."""
    player = algorithm.player
    with ExitStack() as stack:
        try:
            with _lock:
                turn = _turns.setdefault(player, threading.RLock())
        except TypeError:  # a player that cannot be a key
            yield
            return
        stack.enter_context(turn)
        if player in _known:
            stack.close()
        yield


def is_repeatable(algorithm: Algorithm, game: Game, opening: list[Floats], again: Callable[[], Game]) -> bool:
    """Whether a new learner with the same seed plays the same arms in the first rounds."""
    try:
        with _lock:
            known = _known.get(algorithm.player)
    except TypeError:  # a player that cannot be a key is looked at in each of its games
        return _is_same(game, np.vstack(opening), again)
    if known is None:
        known = _is_same(game, np.vstack(opening), again)
        with _lock:
            _known[algorithm.player] = known
    return known


def _is_same(game: Game, rows: Floats, again: Callable[[], Game]) -> bool:
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
