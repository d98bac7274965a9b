"""Applies a JSON Patch."""

import copy
from typing import Any


def patched(document: Any, operations: list[dict[str, Any]]) -> Any:
    """RFC 6902, written down literally for three operations."""
    result = {"": copy.deepcopy(document)}
    for one in operations:
        *way, last = [key.replace("~1", "/").replace("~0", "~") for key in one["path"].split("/")] or [""]
        target: Any = result
        for key in way:
            target = target[int(key) if isinstance(target, list) else key]
        place: Any = last
        if isinstance(target, list):
            place = len(target) if last == "-" else int(last)
        if one["op"] == "remove":
            del target[place]
        elif one["op"] == "add" and isinstance(target, list):
            target.insert(place, one["value"])
        else:
            assert one["op"] == "add" or isinstance(target, list) or place in target
            target[place] = one["value"]
    return result[""]
