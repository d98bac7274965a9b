"""Every public name, option, route and metric is documented."""

import re
from collections import Counter
from pathlib import Path
from typing import Any

import pytest
from typer.main import get_command

import belated
from belated import cli, lab, paper, replay
from belated.lab.algorithms import setting_of
from belated.lab.problems import parsing
from belated.serve.http.metrics import Metrics
from belated.serve.http.routes import ROUTES
from belated.serve.service.service import Service

ROOT = Path(__file__).parents[2]


def test_every_public_name_resolves_and_is_documented() -> None:
    documents = "".join(path.read_text() for path in [ROOT / "README.md", *(ROOT / "docs").rglob("*.md")])
    assert dir(belated) == sorted(belated.__all__)
    for name in belated.__all__:
        assert getattr(belated, name).__doc__, name
        assert f"`{name}" in documents or f"belated.{name}" in documents, f"{name} is in no document"
    with pytest.raises(AttributeError, match="no attribute 'Magic'"):
        _ = belated.Magic  # type: ignore[attr-defined]


def test_every_name_of_the_lab_is_in_its_document() -> None:
    names = "lab.md", "problems.md", "algorithms.md"
    document, problems, systems = ((ROOT / "docs" / name).read_text() for name in names)
    for name in (*parsing.LOSSES, *parsing.AROUND_LOSSES, *parsing.DELAYS, *parsing.AROUND, *parsing.SEVERAL):
        assert f"`{name}" in problems, name
    for algorithm in lab.ALGORITHMS:
        (row,) = [line for line in systems.splitlines() if line.startswith(f"| `{algorithm.name}`:")]
        assert row.endswith(f" | {algorithm.needs} | {algorithm.mark} |"), algorithm.name
        if not algorithm.citation.startswith("Belated"):
            assert f" | {algorithm.citation} | " in row, algorithm.name
    for name in lab.__all__:
        assert re.search(rf"`(lab\.)?{name}\b", document + problems), name


def test_the_numbers_of_systems_are_true() -> None:
    marks = Counter(algorithm.mark for algorithm in lab.ALGORITHMS if algorithm.name not in ("means", "shadow"))
    del marks["-"]  # the yardsticks
    settings = [setting_of(lab.Problem(lab.Bernoulli(), lab.Fixed(d), 3, 500), 1) for d in (0, 9)]
    of_read = [algorithm.bound for algorithm in lab.ALGORITHMS if algorithm.mark == "read"]
    bounded = sum(any(bound(setting) is not None for setting in settings) for bound in of_read)
    n, read, derived = marks.total(), marks["read"], marks["derived"]
    readme, document, claims, of_lab = (
        " ".join((ROOT / name).read_text().split())
        for name in ("README.md", "docs/algorithms.md", "docs/paper.md", "docs/lab.md")
    )
    for text in (readme, document):
        assert f"plays {n} published systems" in text
        assert f"The {n} include" in text
    assert f"plays {n} [published systems]" in of_lab
    assert read + derived == n  # nothing is as commonly quoted
    assert f"rules of {read} systems were read in their papers, and the bounds of {bounded} of them." in readme
    assert f"The bounds of the {derived} others are proven" in readme
    assert f"Of the {n} published systems {read} are read and {derived} derived" in document
    assert f"{n + 2} systems on three kinds of delay" in claims  # with our own two


def test_every_command_and_option_is_documented() -> None:
    names = ("lab.md", "plan.md", "sweeps.md", "paper.md", "replay.md", "reproduction.md", "service.md")
    documents = "".join((ROOT / "docs" / name).read_text() for name in names)
    commands: Any = get_command(cli.app)
    keys = commands.commands.pop("keys").commands
    for name, command in {**commands.commands, **{f"keys {name}": one for name, one in keys.items()}}.items():
        assert f"belated {name}" in documents, name
        for option in command.params:
            if option.opts[0].startswith("--"):
                assert f"`{option.opts[0]}" in documents or f" {option.opts[0]} " in documents, (name, option.opts)


def test_every_route_and_metric_is_documented(tmp_path: Path) -> None:
    document = (ROOT / "docs" / "service.md").read_text()
    for route in ROUTES:
        last = route.path.removeprefix("/v1/experiments/{name}")
        assert f"{route.path}`" in document or f"`{last}`" in document, route.path
    service = Service.open(tmp_path / "belated.db")
    text = Metrics(service).text()[0].decode()
    service.close()
    for name in re.findall(r"^# TYPE (\w+) \w+$", text, re.MULTILINE):
        if not name.endswith("_created"):
            assert f"`{name}`" in document, name


def test_every_claim_is_in_its_document() -> None:
    document = (ROOT / "docs" / "paper.md").read_text()
    for number, claim in enumerate(paper.CLAIMS, 1):
        assert f"| {number} | `{claim.name}` | {claim.kind} |" in document, claim.name
    for name in paper.__all__:
        assert re.search(rf"`(paper\.)?{name}\b|paper\.{name}\b", document), name


def test_every_name_of_replay_is_in_its_document() -> None:
    document = (ROOT / "docs" / "replay.md").read_text()
    for name in replay.__all__:
        assert re.search(rf"`(replay\.)?{name}\b", document), name


def test_every_method_of_the_learner_is_in_the_documents() -> None:
    documents = (ROOT / "README.md").read_text() + (ROOT / "docs" / "learner.md").read_text()
    for name in vars(belated.FTRL):
        if not name.startswith("_"):
            assert f"`{name}" in documents, name


def test_every_method_of_the_client_is_in_its_document() -> None:
    document = (ROOT / "docs" / "service.md").read_text()
    for name in vars(belated.Client):
        if not name.startswith("_"):
            assert f"`{name}(" in document, name


def test_the_version_is_in_the_changelog() -> None:
    assert f"## {belated.__version__}" in (ROOT / "CHANGELOG.md").read_text()


def test_guides_of_the_same_experiment_have_subjects_of_their_own() -> None:
    """Who follows one after the other would be told that an outcome is a duplicate."""
    subject = re.compile(r"(?:subject|targeting_?key)\W{1,5}([a-z]+-\d+)", re.IGNORECASE)
    first, second = (
        set(subject.findall((ROOT / "docs" / name).read_text())) for name in ("service.md", "openfeature.md")
    )
    assert first
    assert second
    assert not first & second
