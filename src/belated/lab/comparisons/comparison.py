"""What to compare."""

import tomllib
from dataclasses import dataclass
from pathlib import Path
from typing import Any, final

from belated.errors import InvalidInput
from belated.lab.algorithms import BY_NAME, Algorithm, find
from belated.lab.problems.delays import Delays
from belated.lab.problems.losses import Losses
from belated.lab.problems.parsing import parse_delays, parse_losses
from belated.lab.problems.problem import Problem
from belated.suggestions import unknown_name
from belated.validation import whole_number


@final
@dataclass(frozen=True)
class Comparison:
    """Several algorithms on one problem, by the names of the command line or as objects of your own."""

    algorithms: tuple[str | Algorithm, ...] = tuple(BY_NAME)
    losses: str | Losses = "bernoulli"
    delays: str | Delays = "geometric"
    arms: int = 10
    rounds: int = 10_000
    seeds: int = 8

    def __post_init__(self) -> None:
        if not (isinstance(self.algorithms, tuple) and self.algorithms):
            raise InvalidInput(f"algorithms must be one or more names, got {self.algorithms!r}")
        whole_number("arms", self.arms, 2)
        whole_number("rounds", self.rounds, 1)
        whole_number("seeds", self.seeds, 1)
        names = [algorithm.name for algorithm in self.players]
        if len(set(names)) < len(names):
            raise InvalidInput(f"every algorithm can be compared once only, got {', '.join(names)}")
        _ = self.problem

    @property
    def players(self) -> list[Algorithm]:
        """The algorithms by their names."""
        return [algorithm if isinstance(algorithm, Algorithm) else find(algorithm) for algorithm in self.algorithms]

    @property
    def problem(self) -> Problem:
        """The problem by its names."""
        losses = self.losses if isinstance(self.losses, Losses) else parse_losses(self.losses)
        delays = self.delays if isinstance(self.delays, Delays) else parse_delays(self.delays)
        return Problem(losses, delays, self.arms, self.rounds)


def read_toml(path: Path) -> dict[str, Any]:
    """The settings of a TOML file, with the names of Comparison's fields."""
    try:
        settings = tomllib.loads(path.read_text())
    except OSError as error:
        raise InvalidInput(f"{path}: {error.strerror}") from error
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise InvalidInput(f"{path} is not a TOML file. {error}") from error
    for key in settings:
        if key not in Comparison.__dataclass_fields__:
            raise unknown_name("setting", key, Comparison.__dataclass_fields__)
    for key, value in settings.items():
        kind: Any = {"algorithms": list, "losses": str, "delays": str}.get(key, int)
        if not isinstance(value, kind):
            raise InvalidInput(f"{path}: {key} must be of type {kind.__name__}, got {value!r}")
    if "algorithms" in settings:
        settings["algorithms"] = tuple(settings["algorithms"])
    return settings
