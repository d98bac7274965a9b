"""Refuses losses and delays that the seed does not fix."""

import hashlib
from collections.abc import Iterator
from typing import Any, final

from belated.arrays import Floats, Integers
from belated.errors import InvalidInput
from belated.lab.problems.checks import is_our_own
from belated.lab.problems.problem import Problem

HINT = (
    "A rule must draw everything from the generator that it gets, and keep nothing from one game to the next. Losses "
    "that react to what is played belong into lab.Reacting(...). Play it with problem.start(seed) and game.step(arm), "
    "or with lab.play (docs/problems.md)"
)


def reproducible(problem: Problem, seed: int, delays: Integers, blocks: Iterator[Floats]) -> Iterator[Floats]:
    """The same blocks of losses. At the end, a rule of your own is asked again, and must give the same.

    So losses that react to what was played are found out. They would differ with the number of workers. A block counts
    as it is after its rounds were played, because some games fill it in.
    """
    if problem.has_fixed_losses and not is_our_own(problem.losses):
        blocks = _same_again(problem, seed, delays, blocks)
    yield from blocks
    if is_our_own(problem.delays):
        return
    if problem.has_fixed_delays:
        is_same = (problem.draw_delays(seed) == delays).all()
    else:  # asked twice, because nobody has the reports of arms that were not played
        is_same = not problem.has_fixed_losses or _reports(problem, seed) == _reports(problem, seed)
    if not is_same:
        raise _refusal(problem.delays, "delays", seed)


def _same_again(problem: Problem, seed: int, delays: Integers, blocks: Iterator[Floats]) -> Iterator[Floats]:
    played = hashlib.blake2b()
    for block in blocks:
        yield block
        played.update(block.tobytes())
    again = hashlib.blake2b()
    for block in problem.loss_blocks(seed, delays):
        again.update(block.tobytes())
    if played.digest() != again.digest():
        raise _refusal(problem.losses, "losses", seed)


def _reports(problem: Problem, seed: int) -> bytes:
    """A digest of what a rule of feedback gives for the losses of a game."""
    digest = hashlib.blake2b()
    for rows in problem.rows(seed, lambda: 0):
        digest.update(rows.delays.tobytes() + rows.reported.tobytes())
    return digest.digest()


@final
class Reactions:
    """The losses of a reacting game, which are asked for again at its end with the same arms."""

    def __init__(self, problem: Problem, seed: int) -> None:
        self.problem, self.seed, self.digest = problem, seed, hashlib.blake2b()

    def add(self, losses: Floats) -> None:
        """The losses of the next rounds, as they were played."""
        self.digest.update(losses.tobytes())

    def check(self, arms: list[int]) -> None:
        """Refuse a rule that gives other losses after the same arms. It remembers something from another game."""
        again = hashlib.blake2b()
        for block in self.problem.reacting_blocks(self.seed, arms):
            again.update(block.tobytes())
        if again.digest() != self.digest.digest():
            rule = self.problem.losses
            raise InvalidInput(
                f"{rule!r:.80} gave other losses when it was asked again with the seed {self.seed} and the same arms. "
                "A rule must draw everything from the generator that it gets. What it remembers must be variables of "
                "the function itself, made anew in each call (docs/problems.md)"
            )


def _refusal(rule: Any, what: str, seed: int) -> InvalidInput:
    return InvalidInput(f"{rule!r:.80} gave other {what} when it was asked again with the seed {seed}. {HINT}")
