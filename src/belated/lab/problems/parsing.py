"""Losses and delays from text such as `bernoulli:gap=0.2`, `geometric:mean=50` or `losses.csv`."""

import dataclasses
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from belated.errors import InvalidInput
from belated.lab.problems import delays, losses
from belated.lab.problems.bernoulli import Bernoulli
from belated.lab.problems.delays import Delays
from belated.lab.problems.feedback import ArmDelays, Feedback, LostByArm, OutcomeDelays, PositivesOnly
from belated.lab.problems.given_delays import DelaysFile
from belated.lab.problems.given_losses import LossesFile
from belated.lab.problems.losses import Losses
from belated.lab.problems.shuffled import Shuffled
from belated.suggestions import given_twice, unknown_name

LOSSES: dict[str, type[Losses]] = {
    "bernoulli": Bernoulli,
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
AROUND: dict[str, type[Delays | Feedback]] = {  # rules that change the delays of another
    "permuted": delays.Permuted,
    "lagged": delays.Lagged,
    "replicated": delays.Replicated,
    "positives": PositivesOnly,
    "lost-by-arm": LostByArm,
}
SEVERAL: dict[str, type[Feedback]] = {"by-arm": ArmDelays, "by-outcome": OutcomeDelays}  # rules that join several
AROUND_LOSSES: dict[str, type[Losses]] = {"shuffled": Shuffled}
FILE_ENDINGS = (".csv", ".parquet", ".npy")


def _unknown(kind: str, name: str, known: Mapping[str, Any]) -> InvalidInput:
    return unknown_name(kind, name, known, f" A file must end in {', '.join(FILE_ENDINGS)}." if "." in name else "")


def parse_losses(text: str) -> Losses:
    """Losses from `name`, `name:setting=value,...`, a file, or `shuffled:` before any of these."""
    name, _, rest = text.partition(":")
    if name in AROUND_LOSSES:
        around: Losses = _build_around("losses", AROUND_LOSSES[name], parse_losses, name, rest)
        return around
    if text.endswith(FILE_ENDINGS):
        return LossesFile(Path(text))
    if name not in LOSSES:
        raise _unknown("losses", name, {**LOSSES, **AROUND_LOSSES})
    built: Losses = _build(text, LOSSES)
    return built


def parse_delays(text: str) -> Delays | Feedback:
    """Delays from `name`, `name:setting=value,...`, a file, or one of AROUND or SEVERAL before any of these."""
    name, _, rest = text.partition(":")
    if name in SEVERAL:
        return _build_several(name, rest)
    if name in AROUND:
        around: Delays | Feedback = _build_around("delays", AROUND[name], parse_delays, name, rest)
        return around
    if text.endswith(FILE_ENDINGS):
        return DelaysFile(Path(text))
    if name not in DELAYS:
        raise _unknown("delays", name, {**DELAYS, **AROUND, **SEVERAL})
    built: Delays = _build(text, DELAYS)
    return built


def _build_several(name: str, rest: str) -> Feedback:
    """`by-arm:RULE+RULE+...` with a rule for each arm, or `by-outcome:RULE+RULE` for successes and failures."""
    rules = [parse_delays(one) for one in rest.split("+")]
    if name == "by-arm":
        return ArmDelays(rules)
    if len(rules) != 2:
        raise InvalidInput(f"{name}:{rest} needs two rules, for successes and for failures, as in {name}:RULE+RULE")
    return OutcomeDelays(*rules)


def _build_around(kind: str, around: type, parse: Callable[[str], Any], name: str, rest: str) -> Any:
    """`permuted:RULE`, `replicated:RULE` or `replicated:replicas=4,lag=20:RULE`."""
    settings, _, rule = rest.partition(":") if "=" in rest.partition(":")[0] else ("", "", rest)
    if not rule:
        raise InvalidInput(
            f"{name}:{rest} changes the {kind} of another rule. Write that after it, as in {name}:...:RULE"
        )
    values, needed = _values(name, settings, around), settings_of(around)
    for key, field in needed.items():
        if field.default is dataclasses.MISSING and key not in values:
            raise InvalidInput(f"{name} needs {key}, as in {name}:{key}=0.1/0.2:{rule}")
    return around(parse(rule), **values)


def _build(text: str, known: Mapping[str, type]) -> Any:
    name, _, settings = text.partition(":")
    return known[name](**_values(name, settings, known[name]))


def settings_of(rule: type) -> dict[str, dataclasses.Field[Any]]:
    """The settings of a rule. `of` is the rule inside."""
    return {field.name: field for field in dataclasses.fields(rule) if field.name != "of"}


def _values(name: str, settings: str, rule: type) -> dict[str, Any]:
    fields, values = settings_of(rule), dict[str, Any]()
    for setting in filter(None, settings.split(",")):
        key, _, value = setting.partition("=")
        if key not in fields:
            raise unknown_name(f"setting of {name}", key, fields) if fields else InvalidInput(f"{name} has no settings")
        if key in values:
            raise given_twice(f"setting of {name}", key)
        kind, read = _KINDS[next(one for one in _KINDS if one in str(fields[key].type))]
        try:
            values[key] = read(value)
        except ValueError:
            raise InvalidInput(f"{name}:{settings}: {key} must be a {kind}, got {value!r}") from None
    return values


def _numbers(text: str) -> list[float]:
    return [float(one) for one in text.split("/")]


_KINDS: dict[str, tuple[str, Callable[[str], Any]]] = {  # by what the type of a setting has in its name
    "Sequence": ("list of numbers, such as 0.1/0.2", _numbers),
    "int": ("whole number", int),
    "float": ("number", float),
}
