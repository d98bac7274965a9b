"""Checks of what rules give. Those of your own may give anything."""

import contextlib
from collections.abc import Iterator
from itertools import tee
from typing import Any

import numpy as np

from belated.arrays import Floats, Integers
from belated.errors import BelatedError, GameError, InvalidInput
from belated.lab.problems.delays import NEVER
from belated.lab.problems.feedback import Feedback
from belated.lab.problems.losses import Losses
from belated.validation import as_numbers


def is_our_own(rule: Any) -> bool:
    """Whether a rule is one of Belated's, with all rules inside it."""
    inside = [value for one in vars(rule).values() for value in (one if isinstance(one, tuple) else (one,))]
    rules = [value for value in inside if hasattr(value, "depends_on_horizon")]
    return type(rule).__module__.startswith(__package__) and all(map(is_our_own, rules))


def checked_blocks(rule: Losses, blocks: Iterator[Floats], what: str, n_arms: int, n_rounds: int) -> Iterator[Floats]:
    """The same blocks. Refuses what does not fit."""
    rows, is_trusted = 0, is_our_own(rule)
    for block in blocks:
        if not is_trusted:
            block = _as_floats(rule, block, what, rows)  # noqa: PLW2901
        shape = block.shape
        rows += shape[0] if shape else 0
        if len(shape) != 2 or shape[1] != n_arms or not shape[0] > 0 or rows > n_rounds:
            raise InvalidInput(f"{rule!r:.80} gave {what} of the wrong shape {shape} up to round {rows}")
        if not is_trusted and not (block.min() >= 0 and block.max() <= 1):
            raise InvalidInput(f"{rule!r:.80} gave {what} outside [0, 1] up to round {rows}")
        yield block
    if rows != n_rounds:
        raise InvalidInput(f"{rule!r:.80} gave {what} for {rows} of {n_rounds} rounds")


def _as_floats(rule: Any, block: Any, what: str, rows: int) -> Floats:
    """A copy, because a rule may fill the same array again for its next block."""
    try:
        numbers = as_numbers(block)
        is_one_row = numbers.ndim == 2 and len(numbers) > 0 and numbers.strides[0] == 0  # as np.broadcast_to gives it
        return np.broadcast_to(numbers[0].copy(), numbers.shape) if is_one_row else numbers.copy()
    except InvalidInput as error:
        raise InvalidInput(f"{rule!r:.80} gave {what} that are not numbers after round {rows}: {error}") from None


def checked_reports(
    rule: Feedback, losses: Iterator[Floats], n_arms: int, n_rounds: int, generator: np.random.Generator, seed: int
) -> Iterator[tuple[Floats, Integers, Floats]]:
    """Losses, delays and reported losses, a block at a time. Refuses what does not fit."""
    losses, given = tee(losses)
    is_trusted, what = is_our_own(rule), "it failed to give reports"
    if not is_trusted:
        given = map(_fixed, given)
    with failures_told(rule, what, seed):
        reports = rule.blocks(given, n_arms, n_rounds, generator)
    for block in losses:
        with failures_told(rule, what, seed):
            report = next(reports, None)
        try:
            given_delays, given_losses = report  # type: ignore[misc]
            delays, reported = np.asarray(given_delays), np.asarray(given_losses)
        except (TypeError, ValueError):
            raise InvalidInput(f"{rule!r:.80} must give lab.Reports(delays, losses), got {report!r:.80}") from None
        if not is_trusted:
            _check_report(rule, block, delays, reported)
            delays = np.minimum(delays, NEVER).astype(np.int64)  # a number near 2**63 also means never
            reported = reported.copy()  # a rule may fill the same array again for its next block
        yield block, delays, reported


def _fixed(block: Floats) -> Floats:
    """The same losses, which nobody can change."""
    view = block.view()
    view.flags.writeable = False
    return view


def _check_report(rule: Feedback, losses: Floats, delays: Integers, reported: Floats) -> None:
    for what, given in (("delays", delays), ("losses", reported)):
        if given.shape != losses.shape:
            raise InvalidInput(f"{rule!r:.80} gave {what} of the shape {given.shape} for losses of {losses.shape}")
    if delays.dtype.kind not in "iu" or delays.min() < 0:
        raise InvalidInput(f"{rule!r:.80} must give delays that are whole numbers from 0, got {delays!r:.80}")
    if reported.dtype.kind not in "iuf" or not (reported.min() >= 0 and reported.max() <= 1):
        raise InvalidInput(f"{rule!r:.80} must report losses from 0 to 1, got {reported!r:.80}")


@contextlib.contextmanager
def failures_told(rule: Any, what: str, seed: int) -> Iterator[None]:
    """Says which rule has failed at what, and with which seed."""
    try:
        yield
    except BelatedError:  # says what is wrong
        raise
    except Exception as error:
        raise GameError(f"{rule!r:.80}, seed {seed}: {what} ({type(error).__name__}: {error})") from error


def blocks_told(rule: Any, what: str, seed: int, blocks: Iterator[Floats]) -> Iterator[Floats]:
    """The same blocks. If the rule fails, the error says after which round."""
    rows = 0
    while True:
        with failures_told(rule, f"it failed to give {what} after round {rows}", seed):
            block = next(blocks, None)
            rows += 0 if block is None else len(block)
        if block is None:
            return
        yield block
