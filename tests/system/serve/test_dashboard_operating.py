"""A team runs an experiment from its page alone: a floor, a holdout, a pause, a freeze, other settings and a winner."""

import random

import httpx
import pytest
from playwright.sync_api import Page, expect

from tests.support.pages import pretend
from tests.system.serve.conftest import Server
from tests.system.serve.test_dashboard import decide, get, number, post, report, visit


def confirm(page: Page, button: str) -> None:
    """Press a button of the page, and confirm it."""
    page.get_by_test_id(button).click()
    page.get_by_test_id("yes").click()


def teach(server: Server, n: int, best: str = "green") -> None:
    """Decide and report many times. Most outcomes come at once."""
    decisions = post(server, "/experiments/checkout/decisions/batch", {"size": n})["decisions"]
    chance = random.Random(1)  # noqa: S311
    reports = [
        {"decision_id": one["decision_id"], "reward": float(chance.random() < (0.8 if one["arm"] == best else 0.2))}
        for one in decisions[: -n // 20]
    ]
    post(server, "/feedback", {"reports": reports})


def create_by_form(page: Page, server: Server) -> None:
    page.goto(server.url)
    page.get_by_label("Name").fill("checkout")
    page.get_by_label("Option 1").fill("blue")
    page.get_by_label("Option 2").fill("green")
    page.get_by_label("What is it about?").fill("The colour of the button")
    page.get_by_label("Show every option to at least").fill("10")
    page.get_by_label("Hold out").fill("20")
    page.get_by_label("They always show").focus()
    page.get_by_label("They always show").select_option("blue")
    page.get_by_role("button", name="Create experiment").click()
    page.wait_for_url("**/experiments/checkout")
    expect(page.get_by_test_id("description")).to_have_text("The colour of the button")
    expect(page.get_by_test_id("about")).to_contain_text("Every option is shown in at least 10% of the decisions.")
    made = get(server, "checkout")
    assert (made["floor"], made["holdout"]["share"], made["holdout"]["control"]) == (0.1, 0.2, "blue")


def test_an_experiment_is_run_from_the_page_alone(page: Page, server: Server) -> None:
    create_by_form(page, server)
    for _ in range(8):
        teach(server, 100)
    expect(page.get_by_test_id("gain-groups")).to_contain_text("20% of the decisions, drawn by chance, are held out.")
    expect(page.get_by_test_id("gain")).to_contain_text("+0.")
    expect(page.get_by_test_id("gain-words")).to_contain_text("Learning is better than the holdout.")

    page.get_by_test_id("manage").click()
    confirm(page, "pause")
    expect(page.get_by_test_id("state")).to_have_text("Paused")
    expect(page.get_by_test_id("operation-words")).to_have_text("This experiment is paused.")
    assert httpx.post(f"{server.url}/v1/experiments/checkout/decisions").status_code == 409
    confirm(page, "pause")
    expect(page.get_by_test_id("state")).to_have_text("Running")
    expect(page.get_by_test_id("operation")).to_be_hidden()

    page.get_by_test_id("freeze-name").select_option("blue")
    confirm(page, "freeze")
    expect(page.get_by_test_id("operation-words")).to_have_text("This experiment is frozen. Every decision shows blue.")
    expect(page.get_by_test_id("favourite")).to_have_text("Every decision shows blue now.")
    expect(page.get_by_test_id("about")).not_to_contain_text("Every option is shown")
    expect(page.get_by_test_id("gain-groups")).to_contain_text("20% of them were held out.")
    expect(page.get_by_test_id("probability-blue")).to_have_text("100%")
    frozen = decide(server, "checkout")
    assert (frozen["arm"], frozen["probability"]) == ("blue", 1)
    report(server, frozen, 1)
    expect(page.get_by_test_id("aside")).to_contain_text(
        "1 decision showed one option to all. It counts as a decision and, while it waits, as an open one,"
    )
    confirm(page, "unfreeze")
    expect(page.get_by_test_id("state")).to_have_text("Running")
    expect(page.get_by_test_id("about")).to_contain_text("Every option is shown in at least 10% of the decisions.")

    page.locator("#edit-floor").fill("5")
    page.locator("#edit-wait").fill("2")
    page.locator("#edit [name=unit]").select_option("3600")
    page.locator("#edit-description").fill("The checkout button")
    confirm(page, "save")
    expect(page.get_by_test_id("description")).to_have_text("The checkout button")
    edited = get(server, "checkout")
    assert (edited["floor"], edited["reward_wait"], edited["holdout"]["share"]) == (0.05, 7200, 0.2)
    expect(page.get_by_test_id("events").locator("li").first).to_contain_text(
        "changed the wait to 2 hours, the least share of an option to 5% and the description"
    )
    page.get_by_test_id("save").click()
    expect(page.get_by_test_id("manage-error")).to_have_text("Nothing has changed.")

    confirm(page, "end")
    expect(page.get_by_test_id("state")).to_have_text("Ended")
    expect(page.get_by_test_id("operation-words")).to_have_text(
        "This experiment has ended. Every decision shows green."
    )
    assert decide(server, "checkout")["arm"] == "green"
    expect(page.locator("#chosen-title")).to_have_text("What is chosen now")
    expect(page.locator("#bars-title")).to_have_text("For the next decision")
    expect(page.get_by_test_id("probability-green")).to_have_text("100%")
    expect(page.get_by_test_id("events").locator("li")).to_have_count(7)
    page.goto(server.url)
    expect(page.get_by_test_id("state-checkout")).to_have_text("Ended")


def test_the_question_says_that_a_new_holdout_drops_the_comparison(page: Page, server: Server) -> None:
    post(server, "/experiments", {"name": "checkout", "arms": ["blue", "green"], "holdout": 0.1})
    teach(server, 40)
    visit(page, server, "checkout")
    expect(page.get_by_test_id("gain-groups")).to_contain_text("40 decisions of both kinds were compared so far.")
    page.get_by_test_id("manage").click()
    question = page.locator("#question")
    changes = {"#edit-floor": ("5", ""), "#edit-holdout": ("20", "begins anew: 40 decisions"), "#edit-wait": ("1", "")}
    for field, (value, words) in changes.items():
        before = page.locator(field).input_value()
        page.locator(field).fill(value)
        page.get_by_test_id("save").click()
        expect(question).to_contain_text("The change holds from the next decision on.")
        if words:
            expect(question).to_contain_text(f"{words} that it has so far will no longer count in it.")
        else:
            expect(question).not_to_contain_text("comparison")
        page.get_by_role("button", name="Cancel").click()
        page.locator(field).fill(before)
    page.locator("#edit-control").select_option("blue")
    page.get_by_test_id("save").click()
    expect(question).to_contain_text("The comparison of what learning gains begins anew")
    page.get_by_role("button", name="Cancel").click()
    page.locator("#edit-control").select_option("")
    page.locator("#edit-holdout").fill("")
    page.get_by_test_id("save").click()
    expect(question).to_contain_text("The comparison of what learning gains ends")
    page.get_by_test_id("yes").click()
    expect(page.locator("#gain")).to_be_hidden()
    page.locator("#edit-holdout").fill("10")
    page.get_by_test_id("save").click()
    expect(question).not_to_contain_text("comparison")  # there is none yet


def test_a_refusal_of_a_change_is_told(unchecked_page: Page, server: Server) -> None:
    page = unchecked_page
    post(server, "/experiments", {"name": "layout", "arms": ["blue", "green"]})
    visit(page, server)
    page.get_by_test_id("manage").click()
    page.locator("#edit-floor").fill("50")
    page.locator("#edit-wait").fill("5000")
    page.locator("#edit [name=unit]").select_option("86400")
    confirm(page, "save")
    expect(page.get_by_test_id("manage-error")).to_contain_text("reward_wait must be a number")
    assert get(server, "layout")["floor"] == 0
    expect(page.locator("#edit-floor")).to_have_value("50")  # nothing that was written is lost


def test_the_gain_counts_silence_as_the_default(page: Page, server: Server) -> None:
    """Failures are not reported. Both groups would look perfect if only known outcomes counted."""
    settings = {"reward_wait": 86_400, "default_outcome": 0, "holdout": 0.3, "control": "blue"}
    post(server, "/experiments", {"name": "layout", "arms": ["blue", "green"], **settings})
    chance = random.Random(1)  # noqa: S311
    for _ in range(6):
        made = post(server, "/experiments/layout/decisions/batch", {"size": 100})["decisions"]
        sold = [one for one in made if chance.random() < (0.4 if one["arm"] == "green" else 0.1)]
        post(server, "/feedback", {"reports": [{"decision_id": one["decision_id"], "reward": 1} for one in sold]})
    found = get(server, "layout")
    visit(page, server)
    for field, testid in (("learner", "gain-learner"), ("held_out", "gain-held-out"), ("gain", "gain")):
        assert number(page, testid) == pytest.approx(found["holdout"][field], abs=6e-4)
    assert 0.05 < found["holdout"]["held_out"] < 0.2 < found["holdout"]["learner"] < 0.5
    expect(page.get_by_test_id("gain-groups")).to_contain_text(
        "Open decisions count as 0 in the averages and in the gain."
    )
    expect(page.get_by_test_id("gain-words")).to_contain_text("In this range open decisions count at their worst.")
    for gain, words in ((-0.0002, "0.000"), (0.0002, "0.000"), (-0.002, "-0.002"), (0.002, "+0.002")):
        found["holdout"]["gain"] = gain
        pretend(page, "layout", found)
        page.reload()
        expect(page.get_by_test_id("gain")).to_have_text(words)
        page.unroute_all()


def test_what_is_wrong_with_settings_is_told_at_the_field(page: Page, server: Server) -> None:
    settings = {"reward_wait": 60, "default_outcome": 0}
    post(server, "/experiments", {"name": "layout", "arms": ["blue", "green", "red"], **settings})
    visit(page, server)
    page.get_by_test_id("manage").click()
    told = page.get_by_test_id("field-error")
    for field, value, words in (
        ("#edit-default", "2", "An outcome lies between 0 and 1."),
        ("#edit-default", "", "It cannot be taken away while the experiment runs. Give another outcome."),
        ("#edit-wait", "", "This is used when the wait ends. Say above how long to wait."),
        ("#edit-floor", "40", "With 3 options it can be at most 33%."),
    ):
        before = page.locator(field).input_value()
        page.locator(field).fill(value)
        page.get_by_test_id("save").click()
        expect(told).to_have_text(words)
        wrong = "#edit-default" if field == "#edit-wait" else field
        expect(page.locator(wrong)).to_be_focused()
        expect(page.locator(wrong)).to_have_attribute("aria-invalid", "true")
        page.locator(field).fill(before)
        expect(told).to_have_count(0)  # what is right now is not called wrong
    page.locator("#edit-control").select_option("blue")
    page.get_by_test_id("save").click()
    expect(told).to_have_text("Say how many decisions to hold out, or let them show all options alike.")
    page.locator("#edit-holdout").fill("10")
    confirm(page, "save")
    expect(page.get_by_test_id("about")).to_contain_text("10% of the decisions are held out.")
    expect(told).to_have_count(0)
