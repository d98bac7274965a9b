"""Errors for names that are slightly wrong, with suggestions."""

import difflib
from collections.abc import Iterable

from belated.errors import InvalidInput

LEAST_START = 3  # letters. The start of a name stands for it


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
    >>> print(unknown_name("algorithm", "nope", ["bold", "sine"]))
    unknown algorithm 'nope'. The names are bold, sine.
    """
    names = list(known)
    near = list(dict.fromkeys([*closest(name, names, cutoff=0.6), *(one for one in names if _begin_alike(one, name))]))[
        :3
    ]
    hint = f"Did you mean {' or '.join(near)}?" if near else f"The names are {', '.join(names)}."
    return InvalidInput(f"unknown {kind} {name!r}. {hint}{note}")


def _begin_alike(one: str, other: str) -> bool:
    """Whether one is the start of the other."""
    short, long = sorted((one.lower(), other.lower()), key=len)
    return len(short) >= LEAST_START and long.startswith(short)


def given_twice(kind: str, name: str) -> InvalidInput:
    """The error for a name that may be given once only.

    >>> print(given_twice("setting of shadow", "scale"))
    the setting of shadow 'scale' is given twice. Give it once
    """
    return InvalidInput(f"the {kind} {name!r} is given twice. Give it once")
