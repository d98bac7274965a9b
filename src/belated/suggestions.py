"""Suggestions for names that are slightly wrong."""

import difflib
from collections.abc import Iterable

from belated.errors import InvalidInput


def closest(name: str, known: Iterable[str], n: int = 3, cutoff: float = 0.4) -> list[str]:
    """The known names that are most similar, best first. Upper and lower case are the same.

    >>> closest("Arms", ["arms", "seeds"])
    ['arms']
    """
    lowered = {one.lower(): one for one in known}
    return [lowered[key] for key in difflib.get_close_matches(name.lower(), lowered, n=n, cutoff=cutoff)]


def unknown_name(kind: str, name: str, known: Iterable[str], note: str = "") -> InvalidInput:
    """The error for a name that does not exist, with the most similar names that do.

    >>> print(unknown_name("algorithm", "boldd", ["bold", "dew"]))
    unknown algorithm 'boldd'. Did you mean bold?
    """
    names = list(known)
    near = closest(name, names)
    hint = f"Did you mean {' or '.join(near)}?" if near else f"The names are {', '.join(names)}."
    return InvalidInput(f"unknown {kind} {name!r}. {hint}{note}")
