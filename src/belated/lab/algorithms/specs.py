"""Algorithms from text, such as `bold`, `shadow:scale=2`, `mine.py:MyLearner` or the name of an entry point."""

import dataclasses
import inspect
from collections.abc import Mapping
from functools import cache
from typing import Any

import numpy as np

from belated.errors import InvalidInput
from belated.lab.algorithms import entry_points
from belated.lab.algorithms.algorithm import Algorithm, Setting
from belated.lab.algorithms.files import from_file
from belated.lab.algorithms.players import TAKEN, Given, Source, as_algorithm, check, check_callable, kind_of
from belated.lab.algorithms.registry import BY_NAME
from belated.lab.algorithms.settings import read_settings
from belated.lab.problems.bernoulli import Bernoulli
from belated.lab.problems.delays import NoDelay
from belated.lab.problems.problem import Problem
from belated.suggestions import unknown_name
from belated.tunings import AdaptiveExp3, Advanced, Exp3, Masoudian2022, Means, Shadow, Simple, Tsallis, Tuning

TUNINGS: Mapping[str, type[Tuning]] = {
    kind.__name__.lower(): kind
    for kind in (AdaptiveExp3, Advanced, Exp3, Masoudian2022, Means, Shadow, Simple, Tsallis)
}  # a name of the table comes first
ENDING = ".py"


def find(text: str) -> Algorithm:
    """An algorithm by its name, with settings if you like. The error for a wrong name suggests similar ones.

    >>> find("bold").citation
    'Joulani, Gyorgy & Szepesvari 2013'
    >>> find("shadow:scale=2").name
    'shadow:scale=2'
    """
    path, is_file, rest = text.partition(f"{ENDING}:") if isinstance(text, str) else (text, "", "")
    if is_file:
        name, _, settings = rest.partition(":")
        return _from_source(text, from_file(path + ENDING, name), settings)
    name, _, settings = str(text).partition(":")
    if name in BY_NAME:
        return _of_the_table(text, BY_NAME[name], settings) if settings else BY_NAME[name]
    if name in TUNINGS:
        return _of_tuning(text, TUNINGS[name], settings)
    if name in entry_points.installed():
        return _from_source(text, entry_points.find_point(name), settings)
    if name.endswith(ENDING):
        raise InvalidInput(f"{text} is a file. Write {name}:NAME, with a class, a function or a tuning that is in it")
    raise unknown_name("algorithm", str(name), dict.fromkeys([*BY_NAME, *TUNINGS, *entry_points.installed()]))


def resolve(player: Any) -> Algorithm:
    """Anything that can play, as an algorithm. A text is found as on the command line."""
    return find(player) if isinstance(player, str) else as_algorithm(player)


def named(name: str, player: Any) -> Algorithm:
    """The same player under a name of your own, which tables and figures show.

    >>> from belated.tunings import Shadow
    >>> named("hasty", Shadow(switch_threshold=0.1)).name
    'hasty'
    """
    return as_algorithm(find(player) if isinstance(player, str) else player, name)


def _of_the_table(text: str, algorithm: Algorithm, settings: str) -> Algorithm:
    """An algorithm of the table with other settings. What is published does not hold for them, but a certificate does.

    What is not set has the default of its class. A learner is made by its class alone. So it also plays where what the
    table would give it cannot be known.
    """
    name, example = algorithm.name, algorithm.player(_example())
    kind, is_tuning = kind_of(name, example), isinstance(example, Tuning)
    values = read_settings(kind, name, settings, TAKEN)
    given = Given(algorithm if is_tuning else kind, tuple(values.items()))
    if not is_tuning:
        check_callable(kind, values)
        kind(2, seed=0, **values)
    given(_example())  # refuses values that are out of range
    return dataclasses.replace(algorithm, name=text, needs="-", mark="-", player=given, bound=given.bound)


def _of_tuning(text: str, kind: type[Tuning], settings: str) -> Algorithm:
    """A tuning by the name of its class in small letters."""
    values = read_settings(kind, text.partition(":")[0], settings)
    check_callable(kind, values)
    return as_algorithm(kind(**values), text)


def _from_source(text: str, source: Source, settings: str) -> Algorithm:
    """An algorithm that is found in a file or a package, here and wherever it is played."""
    found: Any = source.load()
    values = _settings_of(text, found, settings)
    given = Given(source, tuple(values.items()))
    if isinstance(found, Algorithm):
        return dataclasses.replace(found, name=text, player=given, bound=given.bound, fingerprint=None)
    summary = (inspect.getdoc(found) or "").partition("\n")[0]
    return Algorithm(text, summary, "-", "-", "-", given, given.bound)


def _settings_of(text: str, found: Any, settings: str) -> dict[str, Any]:
    """The settings of what was found. Refuses what cannot play with them."""
    if isinstance(found, Algorithm) or (hasattr(found, "ask") and not isinstance(found, type)):
        if settings:
            raise InvalidInput(f"{text}: this one has no settings, so leave out {settings!r}")
        if not isinstance(found, Algorithm):
            check(found)
        return {}
    if isinstance(found, Tuning):
        values = read_settings(type(found), text, settings) if settings else {}
        if values and not dataclasses.is_dataclass(found):
            raise InvalidInput(f"{text}: this tuning is made already, so it takes no settings. Name its class")
        return values
    if not callable(found):
        raise InvalidInput(f"{text} is {found!r:.80}, which cannot play. Name a class, a function or a tuning")
    is_tuning = isinstance(found, type) and issubclass(found, Tuning)
    values = read_settings(found, text.rpartition(":")[0] if settings else text, settings, () if is_tuning else TAKEN)
    check_callable(found, values)
    return values


@cache
def _example() -> Setting:
    """A game that tells which settings an algorithm of the table has."""
    problem = Problem(Bernoulli(), NoDelay(), 2, 2)
    return Setting(problem, 0, np.zeros(2, np.int64))
