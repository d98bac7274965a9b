"""The quickstart of docs/service.md works in a shell, in Python, and in JavaScript in a browser.

The JavaScript also shows its fallback in time if the service fails.
"""

import json
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from playwright.sync_api import sync_playwright

from tests.support.failing import FAILURES, serving
from tests.support.service import Served

DOCUMENT = (Path(__file__).parents[3] / "docs" / "service.md").read_text()


def block(language: str, server: Served) -> str:
    """The first block of this language, with the address of the test's service."""
    found = re.findall(rf"```{language}\n(.*?)```", DOCUMENT, re.DOTALL)[0]
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
    assert reported(server, "button-colour") == 1


@pytest.mark.parametrize("name", ["says nothing", "a body without an end", "a web page", "no key", "closes at once"])
def test_javascript_falls_back_in_time(name: str) -> None:
    found = re.findall(r"```js\n(.*?)```", DOCUMENT, re.DOTALL)[0]
    helpers = found[: found.index("\nawait post(")]
    with serving(FAILURES[name]) as address:
        code = (
            helpers.replace("http://127.0.0.1:8321", f"http://{address}")
            + """
            setInterval(() => {}, 1000); // a program that goes on, as a page does
            const began = performance.now();
            const decision = await ask("banner", "red", 500);
            const seconds = (performance.now() - began) / 1000;
            const of = { decision_id: "7" };
            const told = [await tell(decision, { reward: 1 }), await tell(of, { reward: 1 }, 500)];
            console.log(JSON.stringify({ decision, seconds, told }));
            process.exit(0);
        """
        )
        done = subprocess.run(  # noqa: S603
            [shutil.which("node") or "node", "--input-type=module", "--eval", code],
            check=True, capture_output=True, text=True, timeout=30,
        )  # fmt: skip
    said = json.loads(done.stdout)
    assert said["decision"] == {"arm": "red"}
    assert said["seconds"] < 0.7  # a timer of JavaScript is late now and then
    assert said["told"] == [{"status": "fallback"}, {"status": "lost"}]
    assert "banner shows its fallback red." in done.stderr
    assert 'Not reported: 7 {"reward":1}' in done.stderr
