"""The page in a real browser says which option is better, how sure that is, what is open, and what to do."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from playwright.sync_api import Page, expect

from tests.support.pages import percent, pretend
from tests.system.serve.conftest import Server
from tests.system.serve.test_dashboard import FAINT_TEXT, create, get, number, post, unfold, visit

pytestmark = pytest.mark.long

WITHOUT_WAIT: dict[str, Any] = {"reward_wait": None, "default_outcome": None, "tuning": {"name": "advanced"}}


def play(server: Server, better: str = "green", *, n_open: int = 0, **settings: Any) -> Any:
    """One option nearly always succeeds and the others hardly ever. Some decisions stay open."""
    create(server, arms=("blue", "green", "red"), **{**WITHOUT_WAIT, **settings})
    chances = np.random.default_rng(3)
    for turn in range(40):
        made = post(server, "/experiments/layout/decisions/batch", {"size": 20})["decisions"]
        told = made[n_open:] if turn == 0 else made
        tell(server, told, lambda arm: float(chances.random() < (0.95 if arm == better else 0.05)))
    return get(server, "layout")


def tell(server: Server, decisions: list[Any], outcome: Callable[[str], float]) -> None:
    reports = [{"decision_id": one["decision_id"], "reward": outcome(one["arm"])} for one in decisions]
    post(server, "/feedback", {"reports": reports})


def shown(page: Page, server: Server, **changes: Any) -> None:
    """Open the page of a document with these changes to its verdict and to itself."""
    said = get(server, "layout")
    said["verdict"].update(changes.pop("verdict", {}))
    said["costs"].update(changes.pop("costs", {}))
    pretend(page, "layout", said | changes)
    page.goto(f"{server.url}/experiments/layout")
    expect(page.get_by_test_id("decisions")).to_be_visible()


def test_the_page_says_which_option_is_better_and_that_one_may_stop(page: Page, server: Server) -> None:
    said = play(server, n_open=7)
    assert said["verdict"]["decided"]
    visit(page, server)
    expect(page.get_by_test_id("headline")).to_have_text("green is better than blue and red.")
    sure = page.get_by_test_id("sure")
    expect(sure).to_contain_text("% sure, whenever you look. Its average is better than that of")
    expect(sure).to_contain_text("7 decisions are still open. What is said here counts them at their worst.")
    expect(page.get_by_test_id("next")).to_have_text(
        "You may stop now. Under Manage, end the experiment with green as the winner. Then every decision shows it."
    )
    post(server, "/experiments/layout/close")
    expect(page.get_by_test_id("next")).to_have_text("From now on show green.")
    expect(page.get_by_test_id("headline")).to_have_text("green is better than blue and red.")


def test_the_page_does_not_claim_what_is_not_known(page: Page, server: Server) -> None:
    create(server, **WITHOUT_WAIT)
    visit(page, server)
    headline, sure, to_do = (page.get_by_test_id(name) for name in ("headline", "sure", "next"))
    expect(headline).to_have_text("Ready for the first decision.")
    expect(page.get_by_test_id("judging")).to_be_hidden()
    made = post(server, "/experiments/layout/decisions/batch", {"size": 40})["decisions"]
    expect(headline).to_have_text("No outcome is known yet.")
    expect(sure).to_have_text("Options are compared as soon as outcomes arrive.")
    tell(server, made[:38], lambda arm: 0.51 if arm == "green" else 0.49)
    expect(headline).to_have_text("No option is known to be better yet.")
    expect(sure).to_contain_text("green leads, but that may be chance. 2 decisions are still open.")
    expect(to_do).to_contain_text("It is too early to stop. blue was chosen")
    expect(to_do).to_contain_text("If you have to stop, show green.")
    post(server, "/experiments/layout/close")
    expect(headline).to_have_text("No option is known to be better.")
    expect(to_do).to_have_text("From now on show green. It has the best average, but it is not known to be better.")


def test_sureness_is_rounded_down_and_explained(page: Page, server: Server) -> None:
    """95% must not be shown before it is reached. The number is 1 - p, and not a probability that green is better."""
    play(server)
    words = {
        0.9499: ("green leads (94% sure).", "94% or more would ever be shown for it in at most 6 of 100 such"),
        0.29: ("green leads (29% sure).", "29% or more would ever be shown for it in at most 71 of 100 such"),
        0.95: ("95% sure, whenever you look.", "in at most 5 of 100 such experiments, no matter how often somebody"),
        0.9968: ("99.6% sure, whenever you look.", "in at most 4 of 1,000 such experiments"),
        0.9999999: ("99.9% sure, whenever you look.", "in at most 1 of 1,000 such experiments"),
    }
    for sure, (said, meant) in words.items():
        decided = sure >= 0.95
        shown(page, server, verdict={"sure": sure, "decided": decided, "better": "green" if decided else None})
        expect(page.get_by_test_id("sure")).to_contain_text(said)
        unfold(page)
        expect(page.get_by_test_id("judging-sure")).to_contain_text(meant)
        expect(page.get_by_test_id("judging-sure")).to_contain_text("This is not the chance that green is better.")
    assert page.evaluate(FAINT_TEXT)[1] == []
    page.unroute_all()
    page.set_viewport_size({"width": 360, "height": 740})
    visit(page, server)
    unfold(page)
    assert page.evaluate("document.documentElement.scrollWidth") <= 360


def test_decisions_that_were_left_out_are_told(page: Page, server: Server) -> None:
    play(server)
    shown(page, server, verdict={"left_out": 5, "stale": 4})
    unfold(page)
    rest = page.get_by_test_id("judging-rest")
    expect(rest).to_contain_text("4 decisions were left out, because another server drew them from older data.")
    expect(rest).to_contain_text("1 decision was left out, because the probabilities had just changed.")
    assumed = get(server, "layout")["verdict"]["assumption"]
    expect(page.get_by_test_id("judging-assumed")).to_have_text(f"This is assumed. {assumed}")


def test_many_options_are_counted_and_one_has_nothing_to_beat(page: Page, server: Server) -> None:
    create(server, arms=tuple("abcdef"), **WITHOUT_WAIT)
    tell(server, post(server, "/experiments/layout/decisions/batch", {"size": 60})["decisions"], lambda _: 1.0)
    shown(page, server, verdict={"leader": "c", "better": "c", "sure": 0.97, "decided": True})
    expect(page.get_by_test_id("headline")).to_have_text("c is better than all 5 other options.")
    page.unroute_all()
    post(server, "/experiments/layout/arms", {"add": [], "retire": list("abdef")})
    visit(page, server)
    expect(page.get_by_test_id("headline")).to_have_text("c is the only option.")
    post(server, "/experiments/layout/close")
    expect(page.get_by_test_id("next")).to_have_text("From now on show c.")


def test_how_often_and_how_likely_are_two_facts(page: Page, server: Server) -> None:
    said = play(server)
    green = said["arms"][1]
    assert abs(green["share"] - green["probability"]) > 0.02
    visit(page, server)
    favourite = page.get_by_test_id("favourite")
    share, now = (percent(green[name]) for name in ("share", "probability"))
    expect(favourite).to_have_text(
        f"green was chosen in {share} of all decisions. The next decision chooses it with probability {now}."
    )
    post(server, "/experiments/layout/arms", {"add": ["new"], "retire": ["green"]})
    for _ in range(30):
        made = post(server, "/experiments/layout/decisions/batch", {"size": 20})["decisions"]
        tell(server, made, lambda arm: float(arm == "new"))
    expect(favourite).to_contain_text("of the decisions that it took part in.")
    expect(favourite).to_contain_text("new was chosen in")


def test_a_default_is_an_outcome(page: Page, server: Server) -> None:
    """Who does not buy has an outcome. Until the wait ends, the average counts open decisions as the default."""
    create(server, reward_wait=0.05)
    made = post(server, "/experiments/layout/decisions/batch", {"size": 20})["decisions"]
    visit(page, server)
    expect(page.get_by_test_id("expired")).to_have_text("20")
    expect(page.get_by_test_id("expired-label")).to_have_text("No report, counts as 0")
    expect(page.get_by_test_id("share-never")).to_have_text("100%")
    ended = "of the finished decisions ended without a report and count as 0."
    expect(page.get_by_test_id("share-never-words")).to_have_text(ended)
    said = get(server, "layout")
    assert (said["share_never"], said["verdict"]["open"]) == (None, 0)
    expect(page.get_by_test_id("open-words")).to_have_text("")
    tell(server, made[:5], lambda _: 1.0)
    expect(page.get_by_test_id("share-never")).to_have_text("75%")
    create(server, "patient")
    made = post(server, "/experiments/patient/decisions/batch", {"size": 100})["decisions"]
    tell(server, [one for one in made if one["arm"] == "blue"][:7], lambda _: 1.0)
    visit(page, server, "patient")
    [blue, _] = get(server, "patient")["arms"]
    assert (blue["mean"], blue["provisional_mean"]) == (1.0, pytest.approx(7 / blue["chosen"]))
    assert number(page, "mean-blue") == pytest.approx(7 / blue["chosen"], abs=6e-4)


def test_costs_stand_next_to_what_they_assume(page: Page, server: Server) -> None:
    said = play(server, n_open=7)
    visit(page, server)
    assert number(page, "known") == pytest.approx(said["costs"]["known"], rel=1e-2)
    assert number(page, "proven") == pytest.approx(said["costs"]["proven"], rel=1e-3)
    assert said["costs"]["proven"] < said["costs"]["most"] == 800
    expect(page.get_by_test_id("open-words")).to_contain_text("7 open decisions could add up to")
    expect(page.get_by_test_id("proven-words")).to_contain_text(
        "It assumes that earlier choices do not change later outcomes."
    )
    assert number(page, "bound") == pytest.approx(said["costs"]["bound"], rel=1e-3)
    expect(page.get_by_test_id("known-words")).not_to_contain_text("too high")
    shown(page, server, costs={"bound": 123.4, "proven": 800.0})
    expect(page.get_by_test_id("bound")).to_have_text("123.4")
    shown(page, server, costs={"known": 130.0, "bound": 123.4})
    expect(page.get_by_test_id("known-words")).to_contain_text("probably too high, because it is above the limit")
    shown(page, server, costs={"bound": 123.4, "proven": 800.0})
    expect(page.get_by_test_id("bound-words")).to_contain_text("That holds whenever you look, with 95% confidence,")
    expect(page.get_by_test_id("proven")).to_have_text("says nothing")
    expect(page.get_by_test_id("proven-words")).to_contain_text("At most 800 could be lost at all")
