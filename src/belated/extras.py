"""Hints for missing optional libraries. They name a command that works for how Belated was installed."""

import json
import shlex
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

NAME = (__package__ or "belated").replace("_", "-")  # belated-client has this module too


def missing(module: str | None, *extras: str) -> str:
    """What to say when a library is missing that one of Belated's extras installs."""
    return f"{module} is missing. Install it with `{command(*extras)}`."


@contextmanager
def needs(*extras: str) -> Iterator[None]:
    """Import what these extras install inside the `with` block. If it is missing, the error names the command."""
    try:
        yield
    except ModuleNotFoundError as error:
        raise ModuleNotFoundError(missing(error.name, *extras), name=error.name) from error


def missing_package(package: str) -> str:
    """What to say when a library is missing that has nothing to do with Belated's extras.

    >>> print(missing_package("river"))
    river is missing. Install it with `pip install river`.
    """
    return f"{package} is missing. Install it with `{_installer()} install {package}`."


def command(*extras: str) -> str:
    """The command that adds extras to this installation."""
    wanted = f"[{','.join(extras)}]" if NAME == "belated" else ""  # belated-client has no extras
    package = Path(__file__).parent
    clone = package.parents[1]
    if package == clone / "src" / "belated" and (clone / "pyproject.toml").is_file():
        return f"{_installer()} install -e {shlex.quote(f'{clone}{wanted}')}"
    return f"{_installer()} install {shlex.quote(requirement(wanted, json.loads(_record('direct_url.json') or '{}')))}"


def requirement(wanted: str, source: dict[str, Any]) -> str:
    """The requirement that names this installation, with the extras that are wanted.

    `source` is the file direct_url.json, which pip writes unless a package comes from a registry.

    >>> requirement("[lab]", {})
    'belated[lab]'
    >>> requirement("[lab]", {"url": "https://127.0.0.1/b.git", "vcs_info": {"vcs": "git", "commit_id": "e2f4"}})
    'belated[lab] @ git+https://127.0.0.1/b.git@e2f4'
    >>> requirement("", {"url": "https://127.0.0.1/b.tar.gz", "archive_info": {}, "subdirectory": "client"})
    'belated @ https://127.0.0.1/b.tar.gz#subdirectory=client'
    """
    url = source.get("url", "")
    folder = f"#subdirectory={source['subdirectory']}" if "subdirectory" in source else ""
    if "vcs_info" in source:
        vcs = source["vcs_info"]
        return f"{NAME}{wanted} @ {vcs['vcs']}+{url}@{vcs['commit_id']}{folder}"
    if not url.startswith("file:"):
        return f"{NAME}{wanted} @ {url}{folder}" if url else f"{NAME}{wanted}"
    from urllib.parse import urlsplit  # noqa: PLC0415
    from urllib.request import url2pathname  # noqa: PLC0415  # slow to load

    path = url2pathname(urlsplit(url).path)
    # If the folder or the wheel is gone, pip takes what is installed and adds only what the extras need.
    return f"{path}{wanted}" if Path(path).exists() else f"{NAME}{wanted}"


def _installer() -> str:
    """An environment that uv has made has no pip."""
    return "uv pip" if _record("INSTALLER").strip() == "uv" else "pip"


def _record(name: str) -> str:
    """A file that the installer has written about this package."""
    from importlib.metadata import PackageNotFoundError, distribution  # noqa: PLC0415  # slow to load

    try:
        return distribution(NAME).read_text(name) or ""
    except PackageNotFoundError:
        return ""
