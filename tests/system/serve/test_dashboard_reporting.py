"""The page in a real browser says which options report less often, and what that means for the averages."""

from typing import Any

import pytest
from playwright.sync_api import Page, expect

from tests.support.pages import pretend
from tests.system.serve.conftest import Server
from tests.system.serve.test_dashboard import FAINT_TEXT, create, get, post, visit

ARMS = ["blue", "green", "red", "pink", "grey"]


def test_an_option_that_reports_less_is_told_on_top(page: Page, server: Server) -> None:
    post(server, "/experiments", {"name": "layout", "arms": ["blue", "green", "red"]})
    decisions = decided_and_told(server, "layout", lost_of_green=3)
    visit(page, server)
    warning, words = page.get_by_test_id("missing"), page.get_by_test_id("missing-words")
    expect(words).to_contain_text("less often than the others")
    green = get(server, "layout")["reporting"]["arms"][1]
    assert green["less"] == pytest.approx(1 / 3, abs=0.03)
    expect(words).to_have_text(
        f"green reports {100 * green['less']:.0f}% less often than the others: its failures may be missing."
    )
    expect(page.get_by_test_id("missing-numbers")).to_contain_text(f"{green['reports']} got an outcome.")
    expect(page.get_by_test_id("missing-repair")).to_contain_text("goes away when they arrive")
    expect(warning).to_contain_text("no method can repair this without such an assumption")
    assert page.evaluate(FAINT_TEXT)[1] == []
    page.set_viewport_size({"width": 360, "height": 740})
    assert page.evaluate("document.documentElement.scrollWidth") <= 360
    report_all(server, decisions)
    expect(warning).to_be_hidden()


def test_a_silent_option_is_told_unless_silence_is_an_answer(page: Page, server: Server) -> None:
    create(server, "sales", arms=("blue", "green", "red"))  # with a default outcome
    post(server, "/experiments", {"name": "layout", "arms": ["blue", "green", "red"]})
    for name in ("sales", "layout"):
        decided_and_told(server, name, lost_of_green=1)
    visit(page, server)
    said = "green has never reported, though the others have: its failures may be missing."
    expect(page.get_by_test_id("missing-words")).to_have_text(said)
    visit(page, server, "sales")
    expect(page.get_by_test_id("decisions")).to_have_text("900")
    expect(page.get_by_test_id("missing")).to_be_hidden()


def decided_and_told(server: Server, name: str, *, lost_of_green: int) -> list[Any]:
    """Make decisions and report them at once, but not each n-th of green. Returns all of them."""
    decisions: list[Any] = post(server, f"/experiments/{name}/decisions/batch", {"size": 900})["decisions"]
    lost = [one for one in decisions if one["arm"] == "green"][::lost_of_green]
    report_all(server, [one for one in decisions if one not in lost])
    return decisions


def report_all(server: Server, decisions: list[Any]) -> None:
    post(server, "/feedback", {"reports": [{"decision_id": one["decision_id"], "reward": 1} for one in decisions]})


def test_missing_reports_are_told_next_to_the_verdict(page: Page, server: Server) -> None:
    """It counts open decisions at their worst, so it still holds."""
    post(server, "/experiments", {"name": "layout", "arms": ["blue", "green", "red"]})
    decisions = decided_and_told(server, "layout", lost_of_green=3)
    visit(page, server)
    caveat = page.get_by_test_id("caveat")
    expect(caveat).to_have_text(
        "Reports of green are missing. Decisions without a report count at their worst, so what is said here still "
        "holds. But the averages below may be wrong."
    )
    report_all(server, decisions)
    expect(caveat).to_be_hidden()


def test_a_closed_experiment_has_no_warning(page: Page, server: Server) -> None:
    post(server, "/experiments", {"name": "layout", "arms": ["blue", "green", "red"]})
    decided_and_told(server, "layout", lost_of_green=1)
    visit(page, server)
    expect(page.get_by_test_id("missing")).to_be_visible()
    post(server, "/experiments/layout/close")
    expect(page.get_by_test_id("state")).to_have_text("Closed")
    expect(page.get_by_test_id("missing")).to_be_hidden()


def arm(name: str, less: float | None = None, reports: int = 50) -> dict[str, Any]:
    """How often an option reports. It is warned of if it reports less."""
    return {
        "name": name,
        "decisions": 100,
        "reports": reports,
        "share": reports / 100,
        "less": less,
        "warning": less is not None,
    }


def show(page: Page, server: Server, arms: list[dict[str, Any]], never: tuple[str, ...] = (), **changes: Any) -> None:
    """Open the page of an experiment whose options report like this."""
    post(server, "/experiments", {"name": "layout", "arms": ARMS})
    said = get(server, "layout") | {"decisions": 500, **changes}
    said["reporting"] = {"warning": True, "judged_after": 7200.0, "arms": arms}
    for one in said["arms"]:
        few = {"mean": 0.5, "low": 0.4, "high": 0.6, "share": 0.2, "open": 40}
        one.update(few, chosen=100, reports=0 if one["name"] in never else 60)
    said["verdict"].update(leader="blue", sure=0.6, open=200)
    pretend(page, "layout", said)
    page.goto(f"{server.url}/experiments/layout")
    expect(page.get_by_test_id("missing")).to_be_visible()


def test_never_means_never_and_not_only_among_judged_decisions(page: Page, server: Server) -> None:
    show(page, server, [arm("blue"), arm("green", 1.0, 0), arm("red"), arm("pink"), arm("grey")])
    expect(page.get_by_test_id("missing-words")).to_have_text(
        "green reports 100% less often than the others: its failures may be missing."
    )
    expect(page.get_by_test_id("missing-numbers")).to_have_text(
        "Of 100 decisions for green that could be judged, 0 got an outcome. This is hardly chance. The averages below "
        "may be wrong. A decision is judged after 2 hours at the earliest."
    )


def test_only_some_tunings_take_a_missing_report_as_a_perfect_outcome(page: Page, server: Server) -> None:
    silent = [arm("blue"), arm("green", 1.0, 0), arm("red"), arm("pink"), arm("grey")]
    show(page, server, silent, tuning={"name": "shadow"})
    expect(page.get_by_test_id("missing-numbers")).to_contain_text(
        "A missing report counts as a perfect outcome, so what reports less is chosen too often."
    )


def test_two_options_are_both_named(page: Page, server: Server) -> None:
    show(page, server, [arm("blue"), arm("green", 0.4), arm("red", 1.0, 0), arm("pink"), arm("grey")], never=("red",))
    expect(page.get_by_test_id("missing-words")).to_have_text(
        "red has never reported, though the others have, and green reports 40% less often than the others: "
        "their failures may be missing."
    )
    expect(page.get_by_test_id("caveat")).to_contain_text("Reports of 2 options are missing.")


def test_of_many_options_the_worst_are_named(page: Page, server: Server) -> None:
    show(page, server, [arm("blue"), arm("green", 0.1), arm("red", 0.2), arm("pink", 0.3), arm("grey", 0.4)])
    words = page.get_by_test_id("missing-words")
    expect(words).to_contain_text("grey reports 40% less often than the others, pink reports 30%")
    expect(words).to_contain_text(
        "red reports 20% less often than the others, and 1 more option reports less often: their"
    )


def test_with_a_wait_slow_reports_take_the_warning_away_too(page: Page, server: Server) -> None:
    show(page, server, [arm("blue"), arm("green", 0.4), arm("red"), arm("pink"), arm("grey")], reward_wait=7200.0)
    repair = page.get_by_test_id("missing-repair")
    expect(repair).to_contain_text("Check that your system reports every outcome, failures too.")
    expect(repair).to_contain_text("If they are only slow, this message goes away when they arrive.")
