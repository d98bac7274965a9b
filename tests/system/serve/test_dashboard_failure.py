"""The page in a real browser says in words that an experiment has failed."""

from contextlib import closing

from playwright.sync_api import Page, expect

from belated.serve.domain import timestamps
from belated.serve.domain.entries import Entry, EntryKind
from belated.serve.store.sqlite.journal import SQLiteJournal
from tests.support.service import Served
from tests.system.serve.test_dashboard import FAINT_TEXT, create, post, visit


def test_a_failed_experiment_is_told_and_the_others_are_shown(page: Page, server: Served) -> None:
    create(server, "layout")
    create(server, "sales")
    visit(page, server)
    expect(page.get_by_test_id("state")).to_have_text("Running")
    with closing(SQLiteJournal(server.folder / "belated.db")) as journal:  # as another server might
        at, number = timestamps.now(), journal.named(["layout"])["layout"]
        wrong = Entry(at, EntryKind.DECIDED, number, round=1, arm=0, probability=7.0, nonce=1, seen=journal.last())
        journal.append([wrong])
    expect(page.get_by_test_id("state")).to_have_text("Failed")
    expect(page.get_by_test_id("headline")).to_have_text("This experiment has failed.")
    expect(page.get_by_test_id("sure")).to_contain_text(
        "cannot be applied. It makes no decisions and takes no reports."
    )
    expect(page.locator("#content")).to_be_hidden()
    assert page.evaluate(FAINT_TEXT)[1] == []
    page.goto(server.url)
    expect(page.get_by_test_id("state-layout")).to_have_text("Failed")
    expect(page.get_by_test_id("state-sales")).to_have_text("Running")
    expect(page.get_by_test_id("headline")).to_have_text("1 experiment running.")
    expect(page.get_by_test_id("lead")).to_contain_text("1 experiment has failed.")
    post(server, "/experiments/sales/decisions", {})
    visit(page, server, "sales")
    expect(page.get_by_test_id("decisions")).to_have_text("1")
