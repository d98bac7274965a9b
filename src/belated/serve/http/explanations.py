"""Says in JSON's words what is wrong with a body. msgspec says it in Python's."""

import re
from collections.abc import Iterable, Iterator
from typing import Any, Final

import msgspec
from msgspec import inspect

from belated.serve.domain.settings import well_formed_name
from belated.suggestions import closest

WHERE: Final = re.compile(r" - at `\$(.*)`$")
STEP: Final = re.compile(r"\.([^.\[]+)|\[(\d+)\]|\[(\.{3})\]")
FIELD: Final = re.compile(r"Object (missing required|contains unknown) field `(.*?)`")
LONGEST: Final = 80  # characters of a value
CUT: Final = "..."
OUTCOMES: Final = ("outcome", "value", "score", "result")  # what callers may take for the name of a reward
DOCUMENTED: Final = "See /docs for what is allowed."


def explained(said: str, content: bytes, expected: Any) -> str:
    """Explain an error of msgspec about a body that should be of this type."""
    try:
        body, type_, path = msgspec.json.decode(content), bare(inspect.type_info(expected)), ""
        value = body
        for name, index, unnamed in steps(said):
            key = wrong_key(said, value, body, expected) if unnamed else name
            value, type_ = value[key or int(index)], inside(type_, key)
            path += f".{key}" if key else f"[{index}]"
    except (LookupError, TypeError, ValueError, RecursionError):
        return said
    text = sentence(said, path.lstrip("."), value, type_)
    return f"{text}{'' if text.endswith(('?', CUT)) else '.'} {DOCUMENTED}"


def steps(said: str) -> Iterator[tuple[str, str, str]]:
    """The fields and positions that lead to the place of an error. msgspec does not name keys of the caller's own."""
    found = WHERE.search(said)
    yield from STEP.findall(found[1] if found else "")


def wrong_key(said: str, items: dict[str, Any], body: Any, expected: Any) -> str:
    """The key in `items`, which are somewhere in the body, whose value is the error."""
    whole, keys = dict(items), list(items)
    while len(keys) > 1:
        half = keys[: len(keys) // 2]
        items.clear()
        items.update((key, whole[key]) for key in half)
        keys = half if error_of(body, expected) == said else keys[len(half) :]
    items.clear()
    items.update(whole)
    return keys[0]


def error_of(body: Any, expected: Any) -> str:
    """What msgspec says of a body, or nothing if it is fine."""
    try:
        msgspec.json.decode(msgspec.json.encode(body), type=expected)
    except msgspec.ValidationError as error:
        return str(error)
    return ""


def bare(type_: inspect.Type) -> inspect.Type:
    """A type without its description."""
    return bare(type_.type) if isinstance(type_, inspect.Metadata) else type_


def inside(type_: inspect.Type, key: str) -> inspect.Type:
    """The type of a field of an object, or of an item of an array."""
    if isinstance(type_, inspect.UnionType):
        type_ = next(one for one in map(bare, type_.types) if not isinstance(one, inspect.NoneType))
    if isinstance(type_, inspect.StructType):
        return next(bare(field.type) for field in type_.fields if field.encode_name == key)
    if isinstance(type_, inspect.ListType):
        return bare(type_.item_type)
    if isinstance(type_, inspect.DictType):
        return bare(type_.value_type)
    raise LookupError(key)


def sentence(said: str, path: str, value: Any, type_: inspect.Type) -> str:
    """What is wrong with this value, without a full stop."""
    field = FIELD.search(said)
    if field is None:
        return f"{path or 'the body'} must be {described(type_, value)}, got {shown(value)}"
    prefix = f"{path}." if path else ""
    if field[1] == "missing required":
        return f"{prefix}{field[2]} is missing"
    known = [one.encode_name for one in type_.fields] if isinstance(type_, inspect.StructType) else []
    if field[2] in OUTCOMES and "reward" in known:
        return f"unknown field {prefix}{field[2]}. Did you mean reward, or loss if lower is better?"
    near = closest(field[2], known, n=1, cutoff=0.6) if len(field[2]) <= LONGEST else []
    hint = f"Did you mean {near[0]}?" if near else f"Known are {', '.join(known)}" if known else "It takes none"
    return f"unknown field {prefix}{cut(field[2])}. {hint}"


def described(type_: inspect.Type, value: Any) -> str:
    """What a value of this type may be."""
    match type_:
        case inspect.UnionType(types=types):
            words = " or ".join(dict.fromkeys(described(one, value) for one in alternatives(types)))
        case inspect.LiteralType(values=values):
            words = f"one of {', '.join(map(str, values))}"
        case inspect.StrType(pattern=str()) if isinstance(value, str):
            words = well_formed_name(value[:LONGEST])
        case inspect.StrType(min_length=least, max_length=most):
            words = f"a string{sized(least, most, 'character')}"
        case inspect.ListType(min_length=least, max_length=most):
            words = f"an array{sized(least, most, 'item')}"
        case inspect.IntType() | inspect.FloatType():
            words = f"{'a whole' if isinstance(type_, inspect.IntType) else 'a'} number{bounded(type_)}"
        case inspect.BoolType():
            words = "true or false"
        case inspect.NoneType():
            words = "null"
        case inspect.DictType(min_length=least, max_length=most):
            words = f"an object{sized(least, most, 'field')}"
        case _:
            words = f"an object{example(type_, value)}"
    return words


def example(type_: inspect.Type, value: Any) -> str:
    """How to write an object, such as a tuning, if somebody has sent only its name."""
    fields = type_.fields if isinstance(type_, inspect.StructType) else ()
    for field in fields if isinstance(value, str) else ():
        kind = bare(field.type)
        if field.encode_name == "name" and isinstance(kind, inspect.LiteralType):
            if value in kind.values:
                return f' such as {{"name":"{value}"}}'
            return f' such as {{"name":"{field.default}"}}, where the name is one of {", ".join(map(str, kind.values))}'
    return ""


def alternatives(types: Iterable[inspect.Type]) -> list[inspect.Type]:
    """The types of a union. A whole number is a number."""
    found = list(map(bare, types))
    has_floats = any(isinstance(one, inspect.FloatType) for one in found)
    return [one for one in found if not (has_floats and isinstance(one, inspect.IntType))]


def sized(least: int | None, most: int | None, unit: str) -> str:
    """The limits of a length."""
    if most is None:
        return "" if not least else f" with at least {least:,} {unit}{'' if least == 1 else 's'}"
    return f" with {f'{least:,} to ' if least else 'at most '}{most:,} {unit}s"


def bounded(type_: inspect.IntType | inspect.FloatType) -> str:
    """The limits of a number."""
    limits = (("above", type_.gt), ("of at least", type_.ge), ("below", type_.lt), ("of at most", type_.le))
    if type_.ge is not None and type_.le is not None:
        return f" from {type_.ge:,.15g} to {type_.le:,.15g}"
    found = [f"{word} {limit:,.15g}" for word, limit in limits if limit is not None]
    return f" {' and '.join(found)}" if found else ""


def shown(value: Any) -> str:
    """A value as JSON, cut if it is long."""
    return cut(msgspec.json.encode(value).decode())


def cut(text: str) -> str:
    """Text from a caller, which may be of any length."""
    return text if len(text) <= LONGEST else f"{text[:LONGEST]}{CUT}"
