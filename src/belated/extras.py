"""Hints for missing optional libraries."""


def missing(module: str | None, *extras: str) -> str:
    """What to say when a library is missing that one of Belated's extras installs.

    Belated is in no package index, so the command is one that works in a clone.

    >>> print(missing("httpx", "client"))
    httpx is missing. Install it with `pip install '.[client]'` in Belated's folder.
    """
    return f"{module} is missing. Install it with `pip install '.[{','.join(extras)}]'` in Belated's folder."


def missing_package(package: str) -> str:
    """What to say when a library is missing that has nothing to do with Belated's extras.

    >>> print(missing_package("river"))
    river is missing. Install it with `pip install river`.
    """
    return f"{package} is missing. Install it with `pip install {package}`."
