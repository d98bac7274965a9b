"""The error tree is drawn as it is, in belated.errors and in docs/learner.md."""

import re
from pathlib import Path

import belated
from belated import errors

PAGE = Path(__file__).parent.parent.parent / "docs" / "learner.md"


def drawn(text: str) -> dict[str, str]:
    """Each error of a drawn tree with its parent."""
    tree: dict[str, str] = {}
    path = ["BelatedError"]
    for line in text.splitlines():
        if branch := re.match(r"((?:│   |    )*)[├└]── (\w+) ", line):
            depth = len(branch[1]) // 4
            path[depth + 1 :] = [branch[2]]
            tree[branch[2]] = path[depth]
    return tree


def existing(root: type[Exception]) -> dict[str, str]:
    tree: dict[str, str] = {}
    for error in root.__subclasses__():
        if error.__module__ == errors.__name__:
            tree |= {error.__name__: root.__name__, **existing(error)}
    return tree


def test_the_exception_tree_of_the_guide_is_the_drawn_one() -> None:
    assert drawn(PAGE.read_text()) == existing(errors.BelatedError)


def test_the_exception_tree_is_the_drawn_one() -> None:
    assert drawn(errors.__doc__ or "") == existing(errors.BelatedError)
    assert belated.BelatedError is errors.BelatedError
