"""Reads PromQL as far as its names go: which metrics an expression uses, and with which labels."""

import re
from typing import Final, NamedTuple

TOKENS: Final = re.compile(
    r"""(?P<string>"[^"]*")|(?P<number>\d[\w.]*)|(?P<range>\[(?:\d+[smhd]|\$__\w+)\])|(?P<name>[A-Za-z_]\w*)"""
    r"""|(?P<mark>=~|!~|!=|==|>=|<=|[-+*/%^(){},=<>])|(?P<space>\s+)"""
)
FUNCTIONS: Final = {"abs", "avg", "histogram_quantile", "increase", "label_values", "max", "min", "rate", "sum"}
GROUPING: Final = {"by", "without", "on", "ignoring", "group_left", "group_right"}
OPERATORS: Final = {"and", "or", "unless", "bool"}


class Used(NamedTuple):
    """What an expression uses: metrics with the labels and texts that select them, and labels to group by."""

    selected: list[tuple[str, dict[str, tuple[str, str]]]]
    grouped: set[str]


def used(text: str) -> Used:
    """Read an expression. Raises ValueError for what is not understood."""
    tokens, found = tokenised(text), Used([], set())
    if [one for one in tokens if one in "({"] and not is_balanced(tokens):
        raise ValueError(f"brackets do not match in {text}")
    place = 0
    while place < len(tokens):
        token, following = tokens[place], tokens[place + 1] if place + 1 < len(tokens) else ""
        place += 1
        if not re.fullmatch(r"[A-Za-z_]\w*", token) or token in OPERATORS:
            continue
        if token in GROUPING:
            end = tokens.index(")", place)
            found.grouped.update(one for one in tokens[place + 1 : end] if one != ",")
            place = end + 1
        elif following == "(" or (following in GROUPING and token in FUNCTIONS):
            if token not in FUNCTIONS:
                raise ValueError(f"{token} in {text} is no known function")
        elif following == "{":
            end = tokens.index("}", place)
            parts = [one for one in tokens[place + 1 : end] if one != ","]
            matchers = zip(parts[::3], parts[1::3], parts[2::3], strict=True)
            found.selected.append((token, {label: (mark, value.strip('"')) for label, mark, value in matchers}))
            place = end + 1
        else:
            found.selected.append((token, {}))
    return found


def tokenised(text: str) -> list[str]:
    """Split an expression. Raises ValueError for a character that belongs to nothing."""
    tokens, place = list[str](), 0
    while place < len(text):
        match = TOKENS.match(text, place)
        if match is None:
            raise ValueError(f"{text[place:]!r} in {text!r} is not PromQL")
        if match.lastgroup != "space":
            tokens.append(match.group())
        place = match.end()
    return tokens


def is_balanced(tokens: list[str]) -> bool:
    """Whether each bracket is closed by its own kind."""
    opened, pairs = list[str](), {")": "(", "}": "{"}
    for token in tokens:
        if token in pairs.values():
            opened.append(token)
        elif token in pairs and (not opened or opened.pop() != pairs[token]):
            return False
    return not opened
