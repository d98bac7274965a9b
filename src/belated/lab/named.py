"""Problems by name, for the command line and TOML files: `bernoulli:gap=0.2`, `geometric:mean=50`, `losses.csv`."""

import dataclasses
import difflib
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from belated.errors import InvalidInput
from belated.lab import delays, losses
from belated.lab.delays import Delays
from belated.lab.losses import Losses

LOSSES: dict[str, type[Losses]] = {
    "bernoulli": losses.Bernoulli,
    "constrained": losses.Constrained,
    "shifting": losses.Shifting,
    "comeback": losses.Comeback,
    "wave": losses.Wave,
    "sine": losses.Sine,
    "coins": losses.BlockCoins,
}
DELAYS: dict[str, type[Delays]] = {
    "none": delays.NoDelay,
    "fixed": delays.Fixed,
    "uniform": delays.Uniform,
    "geometric": delays.Geometric,
    "pareto": delays.Pareto,
    "lost": delays.Lost,
    "bursts": delays.Bursts,
    "unbalanced": delays.Unbalanced,
    "held": delays.Held,
}
FILE_ENDINGS = (".csv", ".parquet", ".npy")


def nearest(kind: str, name: str, known: Mapping[str, Any]) -> InvalidInput:
    """The error for a wrong name, with the nearest right ones."""
    near = difflib.get_close_matches(name, known, n=3, cutoff=0.4)
    hint = f"did you mean {' or '.join(near)}?" if near else f"there are {', '.join(known)}"
    if "." in name:
        hint += f" (a file must end in {', '.join(FILE_ENDINGS)})"
    return InvalidInput(f"no {kind} called {name!r}; {hint}")


def parse_losses(text: str) -> Losses:
    """Losses from `name`, `name:setting=value,...` or a file."""
    if text.endswith(FILE_ENDINGS):
        return losses.LossesFile(Path(text))
    built: Losses = _build("losses are", text, LOSSES)
    return built


def parse_delays(text: str) -> Delays:
    """Delays from `name`, `name:setting=value,...`, a file, or `permuted:` before any of these."""
    if text.startswith("permuted:"):
        return delays.Permuted(parse_delays(text.removeprefix("permuted:")))
    if text.endswith(FILE_ENDINGS):
        return delays.DelaysFile(Path(text))
    built: Delays = _build("delays are", text, DELAYS)
    return built


def _build(kind: str, text: str, known: Mapping[str, type]) -> Any:
    name, _, settings = text.partition(":")
    if name not in known:
        raise nearest(kind, name, known)
    fields = {field.name: field for field in dataclasses.fields(known[name])}
    values = {}
    for setting in filter(None, settings.split(",")):
        key, _, value = setting.partition("=")
        if key not in fields:
            raise nearest(f"setting of {name} is", key, fields) if fields else InvalidInput(f"{name} has no settings")
        is_whole = "int" in str(fields[key].type)
        try:
            values[key] = int(value) if is_whole else float(value)
        except ValueError:
            kind = "whole number" if is_whole else "number"
            raise InvalidInput(f"{text}: {key} must be a {kind}, got {value!r}") from None
    return known[name](**values)
