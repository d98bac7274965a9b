"""If a library is missing, the command in the error installs it, for every way in which Belated can be installed."""

import re
import shlex
from importlib.metadata import distribution
from pathlib import Path

import pytest

from tests.support.distributions import ROOT, Environment, metadata_of, needed_by, repacked

Built = dict[str, dict[str, Path]]
SAY = """
try:
    import {module}.client
except ModuleNotFoundError as error:
    print(error)
"""
KINDS = {  # what pip installs, and what the command in the error names
    "clone, editable": ("-e {root}", "-e {root}[client]"),
    "clone": ("{root}", "{root}[client]"),
    "wheel": ("{wheel}", "{wheel}[client]"),
    "wheel that is gone": ("{wheel}", "belated[client]"),
    "registry": ("belated --find-links {folder}", "belated[client]"),
    "client": ("{client}", "{client}"),
}


@pytest.mark.parametrize("kind", KINDS)
def test_the_command_installs_what_is_missing(kind: str, built: Built, tmp_path: Path) -> None:
    wheel = tmp_path / "offers" / built["belated"]["wheel"].name
    wheel.parent.mkdir()
    wheel.write_bytes(built["belated"]["wheel"].read_bytes())
    places = {"root": ROOT, "wheel": wheel, "folder": wheel.parent, "client": built["belated-client"]["wheel"]}
    given, expected = (words.format(**places) for words in KINDS[kind])
    needed = needed_by(metadata_of(wheel), "client") | needed_by(distribution("hatchling"))
    needed |= {name: distribution(name) for name in ("hatchling", "editables")}
    httpx = needed.pop("httpx")
    fresh = Environment(tmp_path / "fresh", needed)
    fresh.pip("install", "--quiet", "--no-deps", *given.split())
    if kind == "wheel that is gone":
        wheel.unlink()
    say = "-c", SAY.format(module="belated_client" if kind == "client" else "belated")
    [hint] = re.findall("^httpx is missing. Install it with `pip (.*)`.$", fresh.run(*say))
    assert shlex.split(hint) == ["install", *expected.split()]
    offers = repacked(httpx, tmp_path).parent
    fresh.pip(*shlex.split(hint), "--quiet", "--find-links", str(offers))
    assert fresh.run(*say) == ""


def test_where_uv_has_installed_it_the_command_is_uv_s(built: Built, tmp_path: Path) -> None:
    fresh = Environment(tmp_path / "fresh", {})
    fresh.pip("install", "--quiet", "--no-deps", str(built["belated-client"]["wheel"]))
    [record] = fresh.site_packages.glob("*.dist-info/INSTALLER")
    record.write_text("uv")
    assert "Install it with `uv pip install /" in fresh.run("-c", SAY.format(module="belated_client"))
