"""Losses and delays from text such as `bernoulli:gap=0.2`, `geometric:mean=50` or `losses.csv`."""

import dataclasses
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from belated.errors import InvalidInput
from belated.lab.problems import delays, losses
from belated.lab.problems.delays import Delays
from belated.lab.problems.losses import Losses
from belated.suggestions import unknown_name

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
AROUND: dict[str, type[Delays]] = {  # rules that change the delays of another
    "permuted": delays.Permuted,
    "lagged": delays.Lagged,
    "replicated": delays.Replicated,
}
FILE_ENDINGS = (".csv", ".parquet", ".npy")


def _unknown(kind: str, name: str, known: Mapping[str, Any]) -> InvalidInput:
    return unknown_name(kind, name, known, f" A file must end in {', '.join(FILE_ENDINGS)}." if "." in name else "")


def parse_losses(text: str) -> Losses:
    """Losses from `name`, `name:setting=value,...` or a file."""
    if text.endswith(FILE_ENDINGS):
        return losses.LossesFile(Path(text))
    built: Losses = _build("losses", text, LOSSES)
    return built


def parse_delays(text: str) -> Delays:
    """Delays from `name`, `name:setting=value,...`, a file, or one of AROUND before any of these."""
    name, _, rest = text.partition(":")
    if name in AROUND:
        return _build_around(name, rest)
    if text.endswith(FILE_ENDINGS):
        return delays.DelaysFile(Path(text))
    if name not in DELAYS:
        raise _unknown("delays", name, {**DELAYS, **AROUND})
    built: Delays = _build("delays", text, DELAYS)
    return built


def _build_around(name: str, rest: str) -> Delays:
    """`permuted:RULE`, `replicated:RULE` or `replicated:replicas=4,lag=20:RULE`."""
    settings, _, rule = rest.partition(":") if "=" in rest.partition(":")[0] else ("", "", rest)
    if not rule:
        raise InvalidInput(
            f"{name}:{rest} changes the delays of another rule. Write that after it, as in {name}:...:RULE"
        )
    return AROUND[name](parse_delays(rule), **_values(name, settings, AROUND[name]))  # type: ignore[call-arg]


def _build(kind: str, text: str, known: Mapping[str, type]) -> Any:
    name, _, settings = text.partition(":")
    if name not in known:
        raise _unknown(kind, name, known)
    return known[name](**_values(name, settings, known[name]))


def settings_of(rule: type) -> dict[str, dataclasses.Field[Any]]:
    """The settings of a rule that are numbers."""
    return {field.name: field for field in dataclasses.fields(rule) if field.type is not Delays}


def _values(name: str, settings: str, rule: type) -> dict[str, float]:
    fields, values = settings_of(rule), dict[str, float]()
    for setting in filter(None, settings.split(",")):
        key, _, value = setting.partition("=")
        if key not in fields:
            raise unknown_name(f"setting of {name}", key, fields) if fields else InvalidInput(f"{name} has no settings")
        is_whole = "int" in str(fields[key].type)
        try:
            values[key] = int(value) if is_whole else float(value)
        except ValueError:
            kind = "whole number" if is_whole else "number"
            raise InvalidInput(f"{name}:{settings}: {key} must be a {kind}, got {value!r}") from None
    return values
