"""The page shows what outcomes are made of, and its commands fit the experiment."""

import shlex
from typing import Any

import httpx
import pytest
from playwright.sync_api import Page, expect

from tests.system.serve.conftest import Server
from tests.system.serve.test_dashboard import decide, get, post, visit

pytestmark = pytest.mark.long
PARTS: dict[str, dict[str, Any]] = {
    "quality": {"lowest": 1, "highest": 5, "weight": 3, "default": 3},
    "cost": {"highest": 0.1, "better": "lower", "weight": 1, "default": 0.1},
}


def new(server: Server, **settings: Any) -> None:
    post(server, "/experiments", {"name": "models", "arms": ["small"], **settings})


def run(page: Page, testid: str, **words: str) -> Any:
    """Do what a command of the page does, with these words in place of others."""
    text = page.get_by_test_id(testid).inner_text().replace("\\\n", "")
    for old, fresh in words.items():
        text = text.replace(old, fresh)
    curl, *arguments = shlex.split(text)
    assert (curl, arguments[:2]) == ("curl", ["-X", "POST"])
    body = arguments[arguments.index("-d") + 1] if "-d" in arguments else None
    headers = {"Content-Type": "application/json"} if body else {}
    return httpx.post(arguments[2], content=body, headers=headers).raise_for_status().json()


def test_an_experiment_with_parts_is_created_through_the_form(page: Page, server: Server) -> None:
    page.set_viewport_size({"width": 360, "height": 740})
    page.goto(server.url)
    page.get_by_label("Name").fill("models")
    page.get_by_label("Option 1").fill("small")
    page.get_by_label("Option 2").fill("large")
    for number, fields in enumerate(
        (("quality", "1", "5", "higher", "3", "3"), ("cost", "0", "0.1", "lower", "1", "0.1"))
    ):
        page.get_by_role("button", name="Add a part").click()
        page.keyboard.type(fields[0])  # its name has the focus
        part = page.get_by_role("group", name=f"Part {number + 1}")
        part.get_by_label("Smallest value").fill(fields[1])
        part.get_by_label("Largest value").fill(fields[2])
        part.get_by_label("Which is better").select_option(fields[3])
        part.get_by_label("Weight").fill(fields[4])
        part.get_by_label("If it has not come").fill(fields[5])
    page.get_by_role("button", name="Add a part").click()
    page.keyboard.type("cost")
    page.get_by_role("button", name="Create experiment").click()
    expect(page.get_by_test_id("create-error")).to_contain_text("Two parts are called “cost”.")
    page.get_by_label("Part 3", exact=True).last.fill("")  # one without a name is left out
    assert page.evaluate("document.documentElement.scrollWidth") <= 360
    page.get_by_label("Wait for an outcome at most").fill("2")
    page.get_by_role("button", name="Create experiment").click()
    page.wait_for_url("**/experiments/models")
    created = get(server, "models")
    whole = {name: {"lowest": 0, "better": "higher", **part} for name, part in PARTS.items()}
    assert (created["parts"], created["reward_wait"]) == (whole, 7200)


def test_the_parts_of_each_option_are_shown(page: Page, server: Server) -> None:
    new(server, parts=PARTS, reward_wait=3600)
    first, second = decide(server, "models"), decide(server, "models")
    for one, parts in ((first, {"quality": 5, "cost": 0.02}), (second, {"cost": 0.04})):
        post(server, f"/decisions/{one['decision_id']}/feedback", {"parts": parts})
    visit(page, server, "models")
    expect(page.get_by_test_id("parts-words")).to_contain_text("its missing parts count as their defaults")
    weights = page.get_by_test_id("parts-weights")
    expect(weights).to_contain_text("quality: 75% of the score, from 1 to 5, higher is better, 3 if it does not come")
    expect(weights).to_contain_text("cost: 25% of the score, from 0 to 0.1, lower is better, 0.1 if it does not come")
    expect(page.get_by_test_id("part-small-quality")).to_have_text("5.000 (1 report)")
    expect(page.get_by_test_id("part-small-cost")).to_have_text("0.0300 (2 reports)")
    expect(page.get_by_test_id("outstanding")).to_have_text("1")
    expect(page.get_by_test_id("about")).to_contain_text("An outcome is made of quality and cost.")
    expect(page.get_by_test_id("expired-label")).to_have_text("Ended with defaults for what was missing")
    page.get_by_test_id("manage").click()
    expect(page.locator("#edit [name=default_outcome]")).to_be_disabled()
    post(server, f"/decisions/{second['decision_id']}/feedback", {"parts": {"quality": 1}})
    expect(page.get_by_test_id("part-small-quality")).to_have_text("3.000 (2 reports)")


def test_parts_that_came_count_when_the_wait_ends(page: Page, server: Server) -> None:
    """A decision that lacks one part has not ended without a report."""
    new(server, parts=PARTS, reward_wait=0.5)
    for _ in range(3):
        one = decide(server, "models")
        post(server, f"/decisions/{one['decision_id']}/feedback", {"parts": {"cost": 0.0}})
    visit(page, server, "models")
    expect(page.get_by_test_id("expired")).to_have_text("3")
    expect(page.get_by_test_id("share-never")).to_have_text("100%")
    words = "of the finished decisions ended with defaults for what was missing."
    expect(page.get_by_test_id("share-never-words")).to_have_text(words)
    assert get(server, "models")["arms"][0]["mean"] == 0.625  # 0.75 * 0.5 + 0.25, and silence is 0.375
    about = page.get_by_test_id("about")
    expect(about).to_contain_text("Until its wait ends or all parts have come, it counts as 0.375.")
    expect(about).to_contain_text("When the wait ends, missing parts count as their defaults.")


def test_an_experiment_without_parts_shows_none(page: Page, server: Server) -> None:
    new(server)
    visit(page, server, "models")
    expect(page.get_by_test_id("parts-words")).to_be_hidden()


@pytest.mark.parametrize("settings", [{}, {"several": "sum"}, {"parts": PARTS, "reward_wait": 3600}], ids=str)
def test_the_commands_fit_people_and_outcomes(page: Page, server: Server, settings: dict[str, Any]) -> None:
    new(server, **settings)
    visit(page, server, "models")
    first = run(page, "decide-subject", USER_ID="ann")
    assert run(page, "decide-subject", USER_ID="ann") == {**first, "repeated": True}
    assert run(page, "report-subject", USER_ID="ann", ORDER_ID="order 1")["decision_id"] == first["decision_id"]
    other = run(page, "decide")
    assert run(page, "report", DECISION_ID=other["decision_id"], ORDER_ID="order 2")["status"] == "applied"
    found = get(server, "models")
    assert (found["decisions"], found["reported"]) == (2, 2)
    assert found["arms"][0]["mean"] == 1.0
