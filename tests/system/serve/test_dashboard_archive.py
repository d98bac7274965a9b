"""The page in a real browser says in words that decisions were archived or erased."""

import os
from pathlib import Path

from playwright.sync_api import Page, expect
from typer.testing import CliRunner

from belated.cli import app
from tests.support.service import Served
from tests.system.serve.test_dashboard import FAINT_TEXT, create, post, visit


def run(server: Served, *arguments: str) -> None:
    done = CliRunner().invoke(app, [*arguments, "--store", str(server.folder / "belated.db"), "--grace", "0.3"])
    assert done.exit_code == 0, done.output
    assert "from the store" in done.output or "archived" in done.output, done.output


def picture(page: Page, name: str) -> None:
    """Save a picture of the page if somebody wants to look at it."""
    if folder := os.environ.get("PICTURES"):
        page.screenshot(path=str(Path(folder, f"{name}.png")), full_page=True)


def test_what_left_the_store_is_told(page: Page, server: Served, tmp_path: Path) -> None:
    create(server, "layout", reward_wait=None, default_outcome=None)
    made = post(server, "/experiments/layout/decisions/batch", {"size": 20})["decisions"]
    reports = [{"decision_id": one["decision_id"], "reward": 1} for one in made[:12]]
    post(server, "/feedback", {"reports": reports})
    visit(page, server)
    expect(page.get_by_test_id("decisions")).to_have_text("20")
    notice = page.get_by_test_id("archive")
    expect(notice).to_be_hidden()
    expect(page.get_by_test_id("export-scope")).to_have_text("all decisions and outcomes")
    run(server, "erase", made[0]["decision_id"], made[19]["decision_id"])
    expect(notice).to_be_visible(timeout=15_000)
    expect(page.get_by_test_id("archive-words")).to_contain_text("The first decision is no longer in the store. The")
    expect(page.get_by_test_id("archive-left")).to_contain_text("1 decision had no outcome, and can no longer")
    expect(page.get_by_test_id("outstanding")).to_have_text("7")
    expect(page.get_by_test_id("store-removed")).to_contain_text("may have been archived or erased.")
    post(server, "/experiments/layout/close")
    run(server, "archive", "--to", str(tmp_path / "archive"))
    expect(page.get_by_test_id("archive-words")).to_have_text(
        "None of the 20 decisions is in the store any more.", timeout=15_000
    )
    expect(page.get_by_test_id("archive-left")).to_contain_text("All numbers and charts on this page still count them.")
    expect(page.get_by_test_id("archive-left")).to_contain_text("There is nothing left to list or to download here.")
    expect(notice).to_contain_text("in the Parquet files that belated archive has written")
    expect(page.get_by_test_id("decisions")).to_have_text("20")
    expect(page.get_by_test_id("outstanding")).to_have_text("0")
    expect(page.get_by_test_id("expired")).to_have_text("8")
    assert page.evaluate(FAINT_TEXT)[1] == []
    picture(page, "archived")
