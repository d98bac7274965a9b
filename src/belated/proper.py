"""Refuses rules for the rates that are not proper. FTRL and the compiled games refuse the same ones."""

import math
from collections.abc import Callable
from typing import Any

import numpy as np

from belated.arrays import Floats, Integers
from belated.errors import ImproperRule
from belated.kernels import LARGEST_RATE, SMALLEST_RATE
from belated.scalars import as_float


def proper_rates(tuning: Any, round: int, before: tuple[float, float], rates: Any) -> tuple[float, float]:
    """The rates of a round as floats. An ImproperRule if they may not follow those of the round before."""
    try:
        alpha, beta = rates
        if before[0] <= alpha <= LARGEST_RATE and before[1] <= beta <= LARGEST_RATE and alpha + beta >= SMALLEST_RATE:
            return float(alpha), float(beta)
    except (TypeError, ValueError):  # not two numbers
        pass
    raise ImproperRule(
        f"{tuning!r} gave (alpha, beta) = {rates!r} in round {round} after {before!r}: both must be numbers from 0 to "
        f"{LARGEST_RATE:g} that never decrease, and their sum at least {SMALLEST_RATE:g}"
    )


def proper_patience(tuning: Any, n_arms: int) -> float:
    """The tuning's patience as a float, or an ImproperRule if it is not a number >= 0. One arm skips nothing."""
    if n_arms == 1:
        return math.inf
    patience = tuning.patience(n_arms)
    if not as_float(patience) >= 0:
        raise ImproperRule(f"{tuning!r} has the patience {patience!r}: it must be a number >= 0, or infinite")
    return as_float(patience)


def rates_at_once(tuning: Any, n_arms: int, *columns: Integers) -> Any:
    """The rates that an elementwise rule gives for arrays of rounds and counts."""
    try:
        return tuning.rates(n_arms, *columns, sqrt=np.sqrt)
    except (TypeError, ValueError) as error:  # math.sqrt, or `if` on an array
        raise ImproperRule(
            f"{tuning!r} has elementwise = True, but its rates do not take arrays with sqrt=np.sqrt ({error}). "
            "Use the given sqrt in place of math.sqrt, or leave elementwise out"
        ) from error


def proper_arrays(tuning: Any, rates: Any, n: int) -> tuple[Floats, Floats]:
    """The rates of all rounds as two arrays. Raises for the first round whose rates are improper."""
    try:
        alpha, beta = (
            np.full(n, rate, np.float64) if np.ndim(rate) == 0 else np.array(rate, np.float64) for rate in rates
        )
        is_whole = alpha.shape == beta.shape == (n,)
    except (TypeError, ValueError):
        is_whole = False
    if not is_whole:
        raise ImproperRule(
            f"{tuning!r} has elementwise = True, so its rates must be two arrays of {n} numbers, got {rates!r:.80}"
        )
    if not (_is_proper(alpha) and _is_proper(beta) and alpha[0] + beta[0] >= SMALLEST_RATE):
        before = 0.0, 0.0
        for round, pair in enumerate(zip(alpha.tolist(), beta.tolist(), strict=True), 1):  # finds the first and raises
            before = proper_rates(tuning, round, before, pair)
    return alpha, beta


def _is_proper(rates: Floats) -> bool:
    never_decreases = bool((rates[1:] >= rates[:-1]).all())  # not so with a NaN
    return never_decreases and bool(rates[0] >= 0 and rates[-1] <= LARGEST_RATE)


def check_pure(tuning: Any, alpha: Floats, beta: Floats, alone: Callable[[int], Any]) -> None:
    """Ask a rule again for some of its rates, the first and the last among them, each time for one round alone."""
    n = alpha.size
    for index in sorted({0, min(1, n - 1), n - 1, *(np.geomspace(1, n, 12).astype(int) - 1).tolist()}):
        found, again = (float(alpha[index]), float(beta[index])), alone(index)
        if not _is_close(found, again):
            raise ImproperRule(
                f"{tuning!r} gave (alpha, beta) = {found!r} in round {index + 1} of a game, and {again!r} when it was "
                "asked for that round alone. Its rates may depend on nothing but their arguments"
                + (". With elementwise = True, arrays and numbers must give the same" if tuning.elementwise else "")
            )


def _is_close(found: tuple[float, float], again: Any) -> bool:
    try:
        alpha, beta = map(as_float, again)
    except (TypeError, ValueError):  # not two
        return False
    return math.isclose(found[0], alpha, rel_tol=1e-9) and math.isclose(found[1], beta, rel_tol=1e-9)
