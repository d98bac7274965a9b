"""Differences between two documents as a JSON Patch (RFC 6902), with the operations add, replace and remove."""

from typing import Any, Final

import msgspec

ENCODE: Final = msgspec.json.encode
Operation = dict[str, Any]


def difference(old: Any, new: Any, path: str = "") -> list[Operation]:
    """Return the operations that turn one document into another. A field has the same type in both, or null."""
    if old == new:
        return []
    if isinstance(old, dict) and isinstance(new, dict):
        return _of_objects(old, new, path)
    if isinstance(old, list) and isinstance(new, list):
        found = _of_lists(old, new, path)
        if found is not None and (not path or len(ENCODE(found)) < len(ENCODE(new))):
            return found
    return [{"op": "replace", "path": path, "value": new}]


def _of_objects(old: dict[str, Any], new: dict[str, Any], path: str) -> list[Operation]:
    found: list[Operation] = [{"op": "remove", "path": _under(path, key)} for key in old if key not in new]
    for key, value in new.items():
        if key in old:
            found += difference(old[key], value, _under(path, key))
        else:
            found.append({"op": "add", "path": _under(path, key), "value": value})
    return found


def _of_lists(old: list[Any], new: list[Any], path: str) -> list[Operation] | None:
    """Compare item by item, and append what is new. Returns None if items were taken away."""
    if len(new) < len(old):
        return None
    found: list[Operation] = []
    if new[: len(old)] != old:
        for place, (before, after) in enumerate(zip(old, new, strict=False)):
            found += difference(before, after, f"{path}/{place}")
    return found + [{"op": "add", "path": f"{path}/-", "value": value} for value in new[len(old) :]]


def _under(path: str, key: str) -> str:
    return f"{path}/{key.replace('~', '~0').replace('/', '~1')}"
