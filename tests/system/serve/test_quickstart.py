"""The quickstart of docs/service.md works in a shell, in Python, and in JavaScript in a browser."""

import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from playwright.sync_api import sync_playwright

from tests.support.service import Served

DOCUMENT = (Path(__file__).parents[3] / "docs" / "service.md").read_text()


def block(language: str, server: Served) -> str:
    """The first block of this language, with the address of the test's service."""
    found, *_ = re.findall(rf"```{language}\n(.*?)```", DOCUMENT, re.DOTALL)
    return str(found).replace("http://127.0.0.1:8321", server.url)


def reported(server: Served, name: str) -> int:
    return int(server.get(f"/v1/experiments/{name}").json()["reported"])


@pytest.mark.parametrize(
    ("language", "program", "name"), [("sh", "sh", "checkout"), ("python", sys.executable, "newsletter")]
)
def test_it_runs_as_it_stands(server: Served, language: str, program: str, name: str) -> None:
    command = [program, "-euc" if language == "sh" else "-c", block(language, server)]
    done = subprocess.run(command, check=True, capture_output=True, text=True)  # noqa: S603
    assert "applied" in done.stdout
    assert reported(server, name) == 1


def test_javascript_runs_in_a_browser(server: Served) -> None:
    code = block("js", server)
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=shutil.which("chromium"), args=["--no-sandbox"])
        page = browser.new_page()
        page.goto(server.url)
        status = page.evaluate(f"async () => {{ {code} return report.status; }}")
        browser.close()
    assert status == "applied"
    assert reported(server, "banner") == 1
