"""Settings in text, such as `scale=2,discard=true`, for any class or function."""

import inspect
from collections.abc import Callable, Collection, Mapping
from typing import Any

from belated.errors import InvalidInput
from belated.suggestions import given_twice, unknown_name

TRUTHS = {"true": True, "false": False}


def signature_of(kind: Callable[..., Any]) -> inspect.Signature | None:
    """The parameters of a class or function, or None if Python does not know them."""
    try:
        return inspect.signature(kind)
    except (TypeError, ValueError):
        return None


def read_settings(kind: Callable[..., Any], name: str, text: str, taken: Collection[str] = ()) -> dict[str, Any]:
    """The values of settings in text, by the parameters of what takes them. `taken` are set by the game.

    >>> from belated.tunings import Advanced
    >>> read_settings(Advanced, "advanced", "scale=2,discard=true")
    {'scale': 2.0, 'discard': True}
    """
    signature = signature_of(kind)
    known = {} if signature is None else {key: p for key, p in signature.parameters.items() if key not in taken}
    is_open = any(parameter.kind is parameter.VAR_KEYWORD for parameter in known.values())
    named = {key: p for key, p in known.items() if p.kind in (p.POSITIONAL_OR_KEYWORD, p.KEYWORD_ONLY) and _is_plain(p)}
    values: dict[str, Any] = {}
    for setting in filter(None, text.split(",")):
        key, _, value = (part.strip() for part in setting.partition("="))
        if key not in named and not is_open:
            raise unknown_name(f"setting of {name}", key, named) if named else InvalidInput(f"{name} has no settings")
        if key in values:
            raise given_twice(f"setting of {name}", key)
        values[key] = _value(f"{name}:{text}: {key}", value, named.get(key))
    return values


def _value(what: str, text: str, parameter: inspect.Parameter | None) -> Any:
    """A value of the type that the parameter has by its annotation, or else by its default, or else by its looks."""
    kind = "" if parameter is None else _kind_of(parameter)
    if kind == "str":
        return text
    readings: Mapping[str, Callable[[str], Any]] = {"int": int, "float": float, "bool": lambda t: TRUTHS[t.lower()]}
    for reading in [readings[kind]] if kind else readings.values():
        try:
            return reading(text)
        except (ValueError, KeyError):
            continue
    if kind:
        words = {"int": "whole number", "float": "number", "bool": "truth value (true or false)"}
        raise InvalidInput(f"{what} must be a {words[kind]}, got {text!r}")
    return text


def _is_plain(parameter: inspect.Parameter) -> bool:
    """Whether text may stand for it. A parameter with neither an annotation nor a default may be anything."""
    return parameter.annotation is parameter.empty or bool(_kinds(parameter.annotation))


def _kinds(annotation: Any) -> set[str]:
    words = annotation if isinstance(annotation, str) else getattr(annotation, "__name__", str(annotation))
    return {word.strip() for word in words.split("|")} & {"int", "float", "bool", "str", "Any"}


def _kind_of(parameter: inspect.Parameter) -> str:
    """int, float, bool, str, or nothing if the parameter does not say."""
    annotation, default = parameter.annotation, parameter.default
    if annotation is not parameter.empty:
        found = _kinds(annotation) - {"Any"}
        return found.pop() if len(found) == 1 else ""
    return type(default).__name__ if type(default) in (int, float, bool, str) else ""
