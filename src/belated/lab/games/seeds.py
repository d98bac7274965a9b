"""The seeds of games."""

from collections.abc import Sequence
from typing import Any

from belated.errors import InvalidInput
from belated.validation import whole_number


def as_seeds(seeds: int | Sequence[int] | range) -> list[int]:
    """Different seeds. A number n stands for 0..n-1.

    >>> as_seeds(3)
    [0, 1, 2]
    """
    given: Any = seeds
    if not isinstance(given, str) and hasattr(given, "__iter__"):
        numbers = [whole_number("seed", seed, 0) for seed in given]
    else:
        numbers = list(range(whole_number("seeds", given, 1)))
    if not numbers or len(set(numbers)) < len(numbers):
        raise InvalidInput(f"at least one seed is needed, and none twice, got {numbers!r:.80}")
    return numbers
