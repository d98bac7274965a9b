"""A grid of comparisons, as plain data. Every list is an axis, and every combination is played."""

import itertools
import re
import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple, final

import numpy as np

from belated.errors import InvalidInput
from belated.folders import as_path
from belated.lab.comparisons.comparison import Comparison
from belated.suggestions import unknown_name

PROBLEM = ("losses", "delays", "arms", "rounds")
FIELDS = tuple(Comparison.__dataclass_fields__)
PLACE = re.compile(r"\{(\w*)\}")
COLUMNS = (
    *PROBLEM,
    *("algorithm", "seed", "round", "expected_regret", "suffered_regret", "pseudo_regret", "dynamic_regret"),
    *("is_suspicious", "is_partial", "bound", "lower_bound", "seconds"),
)

PREFIXES = ("losses_", "delays_", "algorithm_")  # of the columns with the settings of a rule or an algorithm


class Point(NamedTuple):
    """One problem of a grid with the algorithms that play it.

    `values` has the parameters for each algorithm, in their order. Those that it and the problem do not use are None.
    """

    comparison: Comparison
    values: Sequence[Mapping[str, Any]]


@final
@dataclass(frozen=True)
class Grid:
    """The axes of a sweep, checked."""

    axes: Mapping[str, Sequence[Any]]  # losses, delays, arms, rounds and the parameters
    algorithms: Sequence[Any]
    seeds: Any

    def points(self) -> list[Point]:
        """Every problem once, in the order of the axes, with every algorithm that plays it once."""
        found: dict[Any, tuple[tuple[Any, ...], dict[Any, tuple[Any, dict[str, Any]]]]] = {}
        for combination in itertools.product(*self.axes.values()):
            values = dict(zip(self.axes, combination, strict=True))
            problem = tuple(_filled(values[name], values) for name in PROBLEM)
            _, players = found.setdefault(tuple(map(_key, problem)), (problem, {}))
            for algorithm in self.algorithms:
                places = {place for text in (*combination[:4], algorithm) for place in _places(text)}
                used = {name: values[name] if name in places else None for name in self.axes if name not in PROBLEM}
                filled = _filled(algorithm, values)
                players.setdefault(_key(filled), (filled, used))
        return [self._point(problem, list(players.values())) for problem, players in found.values()]

    def _point(self, problem: Sequence[Any], players: Sequence[tuple[Any, dict[str, Any]]]) -> Point:
        algorithms = tuple(algorithm for algorithm, _ in players)
        comparison = Comparison(algorithms, **dict(zip(PROBLEM, problem, strict=True)), seeds=self.seeds)
        return Point(comparison, [used for _, used in players])


def as_grid(given: Mapping[str, Any] | Path | str) -> Grid:
    """A grid from a mapping, or from a TOML file. Refuses what cannot be played."""
    if not isinstance(given, Mapping | Path | str):
        raise InvalidInput(f"give a mapping of settings or the path of a TOML file, got {given!r:.200}")
    where = "" if isinstance(given, Mapping) else f"{given}: "
    axes = dict(given) if isinstance(given, Mapping) else _read(as_path("the path of a TOML file", given))
    algorithms = axes.pop("algorithms", list(Comparison.algorithms))
    seeds = axes.pop("seeds", Comparison.seeds)
    if isinstance(algorithms, str) or not isinstance(algorithms, Sequence):
        algorithms = [algorithms]
    lists = {name: _axis(where, name, axes.pop(name, getattr(Comparison, name))) for name in PROBLEM}
    parameters = {name: _axis(where, name, values) for name, values in axes.items()}
    places = {name for value in [*lists["losses"], *lists["delays"], *algorithms] for name in _places(value)}
    for name in parameters:
        if name in COLUMNS or name.startswith(PREFIXES):
            raise InvalidInput(f"{where}a parameter cannot be called {name}, because the results have such a column")
    for name in parameters:
        if name not in places:
            note = f" A parameter must be used, as {{{name}}}, in losses, delays or algorithms."
            raise unknown_name("setting", name, FIELDS, note)
    for name in sorted(places - set(parameters)):
        raise InvalidInput(f"{where}{{{name}}} has no values. Give them as {name} = [...]")
    return Grid({**lists, **parameters}, tuple(algorithms), seeds)


def _axis(where: str, name: str, values: Any) -> list[Any]:
    """The values of an axis. One value stands for a list of one. An array of NumPy is a list too."""
    values = values.tolist() if isinstance(values, np.ndarray) else values
    listed = list(values) if isinstance(values, Sequence) and not isinstance(values, str) else [values]
    if not listed:
        raise InvalidInput(f"{where}{name} has no values. Give one or more")
    return listed


def _read(path: Path) -> dict[str, Any]:
    try:
        return tomllib.loads(path.read_text())
    except OSError as error:
        raise InvalidInput(f"{path}: {error.strerror}") from error
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise InvalidInput(f"{path} is not a TOML file. {error}") from error


def _places(value: Any) -> list[str]:
    """The parameters that a text uses."""
    return PLACE.findall(value) if isinstance(value, str) else []


def _filled(value: Any, values: Mapping[str, Any]) -> Any:
    """A text with the values of its parameters. Anything else stays as it is."""
    return PLACE.sub(lambda found: str(values[found[1]]), value) if isinstance(value, str) else value


def _key(value: Any) -> Any:
    """What tells two settings apart. An object of your own is itself."""
    return value if isinstance(value, str | int | float) else id(value)
