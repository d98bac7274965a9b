"""What to compare."""

import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any, final

from belated.errors import InvalidInput
from belated.folders import as_path
from belated.lab.algorithms import BY_NAME, Algorithm, resolve
from belated.lab.algorithms.players import check_games, with_unique_names
from belated.lab.games.seeds import as_seeds
from belated.lab.problems.delays import Delays
from belated.lab.problems.feedback import Feedback
from belated.lab.problems.losses import Losses
from belated.lab.problems.parsing import parse_delays, parse_losses
from belated.lab.problems.problem import Problem, as_problem
from belated.lab.problems.reacting import Reacting
from belated.suggestions import unknown_name
from belated.validation import whole_number


@final
@dataclass(frozen=True)
class Comparison:
    """Several algorithms on one problem, by the names of the command line or as objects of your own.

    An algorithm is anything that `lab.play` takes. `seeds` is their number, or the seeds themselves.

    >>> from belated import lab
    >>> from belated.tunings import Shadow
    >>> wanted = lab.Comparison(["bold", "shadow:scale=2", Shadow(scale=4)], rounds=500, seeds=range(4))
    >>> [algorithm.name for algorithm in wanted.players]
    ['bold', 'shadow:scale=2', 'Shadow(scale=4)']
    """

    algorithms: Sequence[Any] = tuple(BY_NAME)
    losses: str | Losses | Reacting = "bernoulli"
    delays: str | Delays | Feedback = "geometric"
    arms: int = 10
    rounds: int = 10_000
    seeds: int | Sequence[int] = 8

    def __post_init__(self) -> None:
        if isinstance(self.algorithms, str) or not (isinstance(self.algorithms, Sequence) and self.algorithms):
            raise InvalidInput(
                f"algorithms must be one or more names, or other players, in a list, got {self.algorithms!r:.200}"
            )
        whole_number("arms", self.arms, 2)
        whole_number("rounds", self.rounds, 1)
        object.__setattr__(self, "algorithms", tuple(self.algorithms))
        names = [algorithm.name for algorithm in self.players]
        if len(set(names)) < len(names):
            raise InvalidInput(
                f"every algorithm can be compared once only, got {', '.join(names)}. For another name use lab.named"
            )
        for algorithm in self.players:
            check_games(algorithm, self.arms, len(self.seed_numbers))
        _ = self.problem

    @classmethod
    def on(
        cls, problem: Problem, algorithms: Sequence[Any] = tuple(BY_NAME), seeds: int | Sequence[int] = 8
    ) -> "Comparison":
        """A comparison on a problem as `lab.play` takes it, such as one of `lab.from_literature`.

        >>> from belated import lab
        >>> wanted = lab.Comparison.on(lab.from_literature("li-2019"), ["means", "bold"], seeds=4)
        >>> wanted.arms, wanted.rounds
        (5, 2000)
        """
        given = as_problem(problem)
        return cls(algorithms, given.losses, given.delays, given.n_arms, given.n_rounds, seeds)

    @cached_property
    def players(self) -> list[Algorithm]:
        """The algorithms. Of classes and functions that share a name, the second and later ones get a number."""
        return with_unique_names(map(resolve, self.algorithms), [callable(given) for given in self.algorithms])

    @cached_property
    def seed_numbers(self) -> list[int]:
        """The seeds."""
        return as_seeds(self.seeds)

    @property
    def problem(self) -> Problem:
        """The problem by its names."""
        losses = parse_losses(self.losses) if isinstance(self.losses, str) else self.losses
        delays = parse_delays(self.delays) if isinstance(self.delays, str) else self.delays
        return Problem(losses, delays, self.arms, self.rounds)


def as_comparison(given: Comparison | Mapping[str, Any] | Path | str) -> Comparison:
    """A comparison from its settings in a mapping, or in a TOML file."""
    if isinstance(given, Comparison):
        return given
    if isinstance(given, Mapping):
        check_names(given)
        return Comparison(**given)
    if not isinstance(given, str | Path):
        raise InvalidInput(
            f"give a lab.Comparison, a mapping of its settings or the path of a TOML file, got {given!r:.200}"
        )
    return Comparison(**read_toml(as_path("the path of a TOML file", given)))


def check_names(settings: Mapping[str, Any]) -> None:
    """Refuse what is no field of a Comparison."""
    for key in settings:
        if key not in Comparison.__dataclass_fields__:
            raise unknown_name("setting", str(key), Comparison.__dataclass_fields__, _hint(settings))


def read_toml(path: Path) -> dict[str, Any]:
    """The settings of a TOML file, with the names of Comparison's fields."""
    try:
        settings = tomllib.loads(path.read_text())
    except OSError as error:
        raise InvalidInput(f"{path}: {error.strerror}") from error
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise InvalidInput(f"{path} is not a TOML file. {error}") from error
    check_names(settings)
    for key, value in settings.items():
        kind: Any = {"algorithms": list, "losses": str, "delays": str}.get(key, int)
        if not (isinstance(value, kind) or (key == "seeds" and isinstance(value, list))):
            raise InvalidInput(f"{path}: {key} must be of type {kind.__name__}, got {value!r}.{_hint(settings)}")
    return settings


def _hint(settings: Mapping[str, Any]) -> str:
    """What to say about a file that seems to be a grid."""
    is_grid = any(isinstance(value, list) for key, value in settings.items() if key not in ("algorithms", "seeds"))
    return " A grid, which has lists of values, is for `belated sweep` and lab.sweep." if is_grid else ""
