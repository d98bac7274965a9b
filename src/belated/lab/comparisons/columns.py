"""What the columns of a sweep say of its rules and its algorithms."""

import dataclasses
from collections.abc import Iterable
from typing import Any

from belated.lab.algorithms import Algorithm
from belated.lab.algorithms.players import Given
from belated.lab.problems.delays import Delays
from belated.lab.problems.feedback import Feedback
from belated.lab.problems.losses import Losses
from belated.lab.problems.reacting import Reacting
from belated.tunings import Tuning

RULES = (Losses, Reacting, Delays, Feedback, Tuning)
TRUTHS = {"true": True, "false": False}


def labels(rules: Iterable[Any]) -> dict[int, str]:
    """The text of each rule, by its id. Of different rules with one text, the second and later ones get a number.

    >>> same = [[1], [1]]
    >>> list(labels(same).values())
    ['[1]', '[1] 2']
    """
    seen: dict[str, int] = {}
    known: dict[str | int, str] = {}  # a text is one rule wherever it is written
    found: dict[int, str] = {}
    for rule in rules:
        key = rule if isinstance(rule, str) else id(rule)
        if key not in known:
            count = seen[str(rule)] = seen.get(str(rule), 0) + 1
            known[key] = str(rule) if count == 1 else f"{rule} {count}"
        found[id(rule)] = known[key]
    return found


def settings_of(prefix: str, what: Any) -> dict[str, Any]:
    """The settings of a rule or a tuning, by the names of columns. Those of the rules inside it count too.

    The settings of a rule inside have the name of its place, such as `delays_failures_d`, unless it is the only one. A
    list of numbers is a text. A player under another name has the settings of what it stands for.

    >>> from belated import lab
    >>> settings_of("delays", lab.OutcomeDelays(lab.Fixed(1), lab.Lagged(lab.Fixed(2), lag=3)))
    {'delays_successes_d': 1, 'delays_failures_d': 2, 'delays_failures_lag': 3}
    """
    if isinstance(what, Algorithm) and isinstance(what.player, Given):
        given = what.player
        return settings_of(prefix, given.what) | {f"{prefix}_{name}": value for name, value in given.settings}
    if isinstance(what, str):
        return {f"{prefix}_{name}": value for name, value in _written(what).items()}
    own: dict[str, Any] = {}
    inside: dict[str, Any] = {}
    is_ours = isinstance(what, RULES) and dataclasses.is_dataclass(what)
    for field in dataclasses.fields(what) if is_ours else ():
        value = getattr(what, field.name)
        (inside if isinstance(value, RULES) else own).update(_parts(prefix, field.name, value))
    return inside | own


def _parts(prefix: str, name: str, value: Any) -> dict[str, Any]:
    """The settings in one field of a rule."""
    if isinstance(value, RULES):
        return settings_of(prefix if name == "of" else f"{prefix}_{name}", value)
    if isinstance(value, bool | int | float | str):
        return {f"{prefix}_{name}": value}
    if isinstance(value, tuple) and all(isinstance(one, int | float) for one in value):
        return {f"{prefix}_{name}": "/".join(map(str, value))}
    rules = enumerate(value) if isinstance(value, tuple) else ()
    return {column: one for number, rule in rules for column, one in settings_of(f"{prefix}_{number}", rule).items()}


def _written(text: str) -> dict[str, Any]:
    """The settings at the end of an algorithm's text, such as `shadow:scale=2`."""
    settings = text.rpartition(":")[2]
    pairs = [one.partition("=") for one in settings.split(",")] if "=" in settings else []
    return {name.strip(): _value(value.strip()) for name, _, value in pairs}


def _value(text: str) -> Any:
    for reading in (int, float, lambda text: TRUTHS[text.lower()]):
        try:
            return reading(text)
        except (ValueError, KeyError):
            continue
    return text
