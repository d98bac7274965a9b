"""The worked example of docs/language-models.md runs against a service, and the page shows its code."""

import re
import subprocess
import sys
from pathlib import Path

import pytest

from tests.support.service import Served

ROOT = Path(__file__).parents[3]
EXAMPLE = ROOT / "examples" / "language_models.py"
PAGE = (ROOT / "docs" / "language-models.md").read_text()


@pytest.mark.parametrize("block", re.findall(r"```py\n(.*?)```", PAGE, re.DOTALL), ids=lambda block: block[:12])
def test_the_page_shows_the_code_of_the_example(block: str) -> None:
    assert block in EXAMPLE.read_text()


@pytest.mark.long
def test_questions_are_routed(server: Served) -> None:
    command = [sys.executable, "-W", "error", str(EXAMPLE), server.url]
    said = subprocess.run(command, check=True, capture_output=True, text=True).stdout  # noqa: S603
    heading, *rows, best = said.splitlines()
    assert heading in PAGE
    assert best.startswith("the best so far: ")
    document = server.get("/v1/experiments/models").json()
    arms = {arm["name"]: arm for arm in document["arms"]}
    assert [row.split()[0] for row in rows] == list(arms)
    assert document["decisions"] > 300, "on a busy machine some questions get the fallback"
    assert document["reported"] + document["expired"] == document["decisions"]
    for name, arm in arms.items():
        answered, rated = (arm["parts"][part]["reports"] for part in ("answered", "rating"))
        assert rated < answered
        assert (answered < 0.8 * arm["chosen"]) == (name == "flaky"), "half of its answers never come"
    assert arms["flaky"]["mean"] < 0.8, "its score says so, although its ratings are the best"
