"""The dashboard in a real browser with a real server. It shows what the server says, live."""

import shlex
import socket
from contextlib import suppress
from pathlib import Path
from threading import Thread
from typing import Any
from urllib.parse import quote, urlsplit

import httpx
import pytest
from playwright.sync_api import Browser, Page, Route, expect

from tests.support.pages import pretend
from tests.system.serve.conftest import Server

pytestmark = pytest.mark.long


def post(server: Server, path: str, body: Any = None) -> Any:
    response = (
        httpx.post(f"{server.url}/v1{path}", json=body) if body is not None else httpx.post(f"{server.url}/v1{path}")
    )
    response.raise_for_status()
    return response.json()


def get(server: Server, name: str) -> Any:
    return httpx.get(f"{server.url}/v1/experiments/{quote(name)}").raise_for_status().json()


def create(server: Server, name: str = "layout", arms: tuple[str, ...] = ("blue", "green"), **more: Any) -> None:
    outcome = {"lowest": 0, "highest": 1, "better": "higher"}
    body = {"name": name, "arms": arms, "outcome": outcome, "reward_wait": 3600, "default_outcome": 0}
    post(server, "/experiments", {**body, **more})


def decide(server: Server, name: str = "layout") -> Any:
    return post(server, f"/experiments/{name}/decisions")


def report(server: Server, decision: Any, outcome: float) -> None:
    post(server, f"/decisions/{decision['decision_id']}/feedback", {"reward": outcome})


def visit(page: Page, server: Server, name: str = "layout") -> None:
    page.goto(f"{server.url}/experiments/{quote(name)}")
    expect(page.get_by_test_id("connection")).to_have_text("Live")


def number(page: Page, testid: str) -> float:
    words = page.get_by_test_id(testid).inner_text().replace(",", "").removeprefix("< ")
    return float(words.removesuffix("%")) / 100 if words.endswith("%") else float(words)


def unfold(page: Page) -> None:
    page.locator("details").evaluate_all("all => all.forEach((details) => (details.open = true))")


def focused(page: Page) -> str:
    """The id, label or text of the focused element."""
    script = "node => node.id || node.getAttribute('aria-label') || node.textContent"
    return str(page.locator("*:focus").evaluate(script))


def test_an_experiment_is_created_through_the_form(page: Page, server: Server) -> None:
    page.goto(server.url)
    expect(page.get_by_test_id("headline")).to_have_text("No experiments yet.")
    page.get_by_label("Name").fill("layout")
    page.get_by_label("Option 1").fill("blue")
    page.get_by_label("Option 2").fill("green")
    page.get_by_role("button", name="Add another option").click()
    page.get_by_label("Option 3").fill("red")
    page.get_by_label("Largest possible").fill("20")
    page.get_by_label("Lower is better").check()
    page.get_by_label("Wait for an outcome at most").fill("2")
    page.get_by_label("If none has come by then, count it as").fill("20")
    page.get_by_label("How it learns").select_option("advanced")
    page.get_by_role("button", name="Create experiment").click()
    page.wait_for_url("**/experiments/layout")
    expect(page.get_by_test_id("state")).to_have_text("Running")
    created = get(server, "layout")
    assert [arm["name"] for arm in created["arms"]] == ["blue", "green", "red"]
    assert created["outcome"] == {"lowest": 0, "highest": 20, "better": "lower"}
    assert created["tuning"]["name"] == "advanced"
    assert (created["reward_wait"], created["default_outcome"]) == (7200, 20)


def test_the_page_says_how_an_experiment_learns_and_when_silence_counts(page: Page, server: Server) -> None:
    page.goto(server.url)
    expect(page.get_by_label("How it learns")).to_have_value("means")
    waits = "Each decision waits 1 hour for its outcome."
    rules: dict[str, tuple[dict[str, Any], str]] = {
        "usual": ({}, f"{waits} Until it comes, a missing outcome counts as 0. It learns with Means, the default."),
        "off": ({"provisional": False}, f"{waits} After that, a missing outcome counts as 0."),
        "none": ({"default_outcome": None}, f"{waits} After that, the decision ends without one."),
        "old": ({"tuning": {"name": "shadow"}}, "counts as 0. It learns with Shadow, the default of earlier releases."),
    }
    for name, (settings, words) in rules.items():
        create(server, name, **settings)
        visit(page, server, name)
        expect(page.get_by_test_id("about")).to_contain_text(words)


def test_a_refusal_is_told_next_to_the_form(unchecked_page: Page, server: Server) -> None:
    create(server)
    unchecked_page.goto(server.url)
    unchecked_page.get_by_test_id("new").click()
    unchecked_page.get_by_label("Name").fill("layout")
    unchecked_page.get_by_label("Option 1").fill("blue")
    unchecked_page.get_by_label("Option 2").fill("another")
    with unchecked_page.expect_response("**/v1/experiments") as refused:
        unchecked_page.get_by_role("button", name="Create experiment").click()
    assert refused.value.status >= 400
    expect(unchecked_page.get_by_test_id("create-error")).to_have_text(refused.value.json()["detail"])
    expect(unchecked_page.get_by_role("button", name="Create experiment")).to_be_enabled()


def test_what_is_wrong_is_told_at_its_field_in_the_words_of_the_form(page: Page, server: Server) -> None:
    page.goto(server.url)
    fields = {"Name": "my layout", "Option 1": "blue", "Option 2": "blue", "Largest possible": "-1"}
    fields |= {"If none has come by then": "5", "Show every option to at least": "50"}
    for label, value in fields.items():
        page.get_by_label(label).fill(value)
    page.get_by_role("button", name="Add another option").click()
    page.get_by_label("Option 3").fill("green")
    told = page.get_by_test_id("field-error")
    for label, mended, words in (
        ("Name", "layout", "begin with a letter or digit, such as my-layout."),
        ("Option 2", "red", "There is an option “blue” already."),
        ("Largest possible", "1", "This has to be more than the smallest possible outcome."),
        ("If none has come by then", "", "This is used when the wait ends. Say above how long to wait."),
        ("Show every option to at least", "5", "With 3 options it can be at most 33%."),
    ):
        page.get_by_role("button", name="Create experiment").click()
        expect(told).to_contain_text(words)
        expect(page.get_by_label(label)).to_be_focused()
        page.get_by_label(label).fill(mended)
    page.get_by_role("button", name="Create experiment").click()
    page.wait_for_url("**/experiments/layout")
    assert get(server, "layout")["floor"] == 0.05


def test_times_of_the_chart_are_those_of_the_page(page: Page, server: Server) -> None:
    page.goto(server.url)
    script = """async ([moments, step]) => (await import("/static/words.js")).axisWords(moments, step)"""
    noon = page.evaluate("Date.parse('2026-11-19T12:00:00') / 1000")  # local time
    hours = [noon + 8 * 3600 * turn for turn in range(3)]
    shown = [one.replace("\u202f", " ") for one in page.evaluate(script, [hours, 8 * 3600])]
    assert shown == ["12:00 PM\nNov 19, 2026", "8:00 PM", "4:00 AM\nNov 20, 2026"]
    assert page.evaluate(script, [[noon], 86_400]) == ["Nov 19, 2026"]
    [seconds] = page.evaluate(script, [[noon + 5], 5])
    assert seconds.replace("\u202f", " ") == "12:00:05 PM\nNov 19, 2026"


def test_a_decision_and_its_late_report_show_without_a_reload(page: Page, server: Server) -> None:
    create(server)
    visit(page, server)
    expect(page.get_by_test_id("decisions")).to_have_text("0")
    page.evaluate("window.isTheSamePage = true")
    decision = decide(server)
    expect(page.get_by_test_id("decisions")).to_have_text("1")
    expect(page.get_by_test_id("outstanding")).to_have_text("1")
    expect(page.get_by_test_id("reported")).to_have_text("0")
    expect(page.get_by_test_id(f"chosen-{decision['arm']}")).to_have_text("1 (100%)")
    report(server, decision, 1)
    expect(page.get_by_test_id("reported")).to_have_text("1")
    expect(page.get_by_test_id("outstanding")).to_have_text("0")
    expect(page.get_by_test_id(f"reports-{decision['arm']}")).to_have_text("1")
    assert page.evaluate("window.isTheSamePage")


def test_the_numbers_are_those_of_the_api(page: Page, server: Server) -> None:
    create(server)
    visit(page, server)
    for turn in range(60):
        decision = decide(server)
        if turn % 4:
            report(server, decision, float(decision["arm"] == "green"))
    expect(page.get_by_test_id("decisions")).to_have_text("60")
    expect(page.get_by_test_id("reported")).to_have_text("45")
    said = get(server, "layout")
    for field in ("decisions", "outstanding", "reported", "expired"):
        assert number(page, field) == said[field]
    assert number(page, "known") == pytest.approx(said["costs"]["known"], rel=1e-2)
    assert number(page, "share-never") == 0
    for arm in said["arms"]:
        assert number(page, f"probability-{arm['name']}") == pytest.approx(arm["probability"], abs=6e-3)
        chosen, share = page.get_by_test_id(f"chosen-{arm['name']}").inner_text().split()
        assert int(chosen) == arm["chosen"]
        assert float(share.strip("(%)")) == pytest.approx(100 * arm["share"], abs=0.51)
        assert number(page, f"reports-{arm['name']}") == arm["reports"]
        assert number(page, f"open-{arm['name']}") == arm["open"]
        assert number(page, f"mean-{arm['name']}") == pytest.approx(arm["provisional_mean"], abs=6e-4)
    is_slow = said["store"]["last_commit_ms"] > 100  # a busy disk is not the page's fault
    expect(page.get_by_test_id("store-state")).to_have_text("Slow" if is_slow else "Healthy")
    expect(page.locator("#history canvas")).to_be_visible()
    shown = [int(cell) for cell in page.locator("#delays-table td").all_text_contents()]
    told = said["delays"]["counts"]
    assert [n for n in shown if n] == [n for n in told if n]  # in order; however the machine's speed spreads them
    assert sum(shown) == 45


def test_the_list_follows_too(page: Page, server: Server) -> None:
    create(server)
    page.goto(server.url)
    expect(page.get_by_test_id("decisions-layout")).to_have_text("0")
    decide(server)
    expect(page.get_by_test_id("decisions-layout")).to_have_text("1")
    create(server, "second")
    expect(page.get_by_test_id("headline")).to_have_text("2 experiments running.")
    post(server, "/experiments/second/close")
    expect(page.get_by_test_id("state-second")).to_have_text("Closed")
    page.get_by_role("link", name="layout").click()
    expect(page.get_by_test_id("name")).to_have_text("layout")


def test_options_are_managed_and_the_experiment_closed(page: Page, server: Server) -> None:
    create(server)
    visit(page, server)
    page.get_by_test_id("manage").click()
    page.get_by_test_id("add-name").fill("red")
    page.get_by_role("button", name="Add", exact=True).click()
    page.get_by_test_id("yes").click()
    expect(page.get_by_test_id("probability-red")).to_be_visible()
    page.get_by_test_id("retire-name").select_option("blue")
    page.get_by_role("button", name="Retire", exact=True).click()
    page.get_by_role("button", name="Cancel").click()
    assert [arm["active"] for arm in get(server, "layout")["arms"]] == [True, True, True]
    page.get_by_role("button", name="Retire", exact=True).click()
    page.get_by_test_id("yes").click()
    expect(page.get_by_test_id("probability-blue")).to_have_count(0)
    expect(page.get_by_role("row", name="blue")).to_contain_text("Retired")
    assert [arm["active"] for arm in get(server, "layout")["arms"]] == [False, True, True]
    page.get_by_test_id("close").click()
    expect(page.locator("#question")).to_contain_text("It will refuse every request for a decision from then on.")
    expect(page.locator("#question")).to_contain_text("To show the winner to all, cancel and end the experiment")
    page.get_by_test_id("yes").click()
    expect(page.get_by_test_id("state")).to_have_text("Closed")
    expect(page.get_by_test_id("close")).to_be_hidden()
    assert get(server, "layout")["closed_at"] is not None


def test_the_chart_ends_with_what_the_bars_show(page: Page, server: Server) -> None:
    """The history is thinned out, and its last point may be from before many outcomes."""
    create(server)
    made = [decide(server) for _ in range(3)] + post(server, "/experiments/layout/decisions/batch", {"size": 60})[
        "decisions"
    ]
    for one in made:
        report(server, one, float(one["arm"] == "green"))
    said = get(server, "layout")
    assert abs(said["arms"][1]["probability"] - said["history"]["probabilities"][1][-1]) > 0.2
    visit(page, server)
    for arm in said["arms"]:
        shown = page.get_by_test_id(f"probability-{arm['name']}").inner_text()
        expect(page.locator("#history-legend li").filter(has_text=arm["name"]).locator(".value")).to_have_text(shown)
    post(server, "/experiments/layout/close")
    expect(page.locator("#bars-title")).to_have_text("If it made one more decision")  # outcomes go on moving it
    expect(page.get_by_test_id("favourite")).to_contain_text("One more decision would choose it with probability")


def test_what_others_retire_and_close_is_shown(page: Page, server: Server) -> None:
    create(server)
    visit(page, server)
    expect(page.get_by_test_id("state")).to_have_text("Running")
    post(server, "/experiments/layout/arms", {"add": [], "retire": ["green"]})
    expect(page.get_by_test_id("probability-green")).to_have_count(0)
    post(server, "/experiments/layout/close")
    expect(page.get_by_test_id("state")).to_have_text("Closed")


def test_the_keyboard_alone_suffices(page: Page, server: Server) -> None:
    page.goto(server.url)
    expect(page.get_by_test_id("headline")).to_have_text("No experiments yet.")
    page.keyboard.press("Tab")
    assert focused(page) == "Skip to the experiments"
    assert page.locator(".skip").bounding_box()["x"] >= 0  # type: ignore[index]  # it is drawn, else this fails
    page.keyboard.press("Enter")
    assert focused(page) == "main"
    page.keyboard.press("Tab")
    assert focused(page) == "New experiment"
    for field, words in (("name", "layout"), ("Option 1", "blue"), ("Option 2", "green")):
        page.keyboard.press("Tab")
        assert focused(page) == field
        page.keyboard.type(words)
    page.keyboard.press("Enter")
    page.wait_for_url("**/experiments/layout")
    assert [arm["name"] for arm in get(server, "layout")["arms"]] == ["blue", "green"]


def test_a_thousand_options_are_shown_and_can_be_retired(page: Page, server: Server) -> None:
    """The document has a hundred of them. The page still tells of all, live, and offers all."""
    create(server, arms=tuple(f"option {number}" for number in range(1000)), reward_wait=None, default_outcome=None)
    made = post(server, "/experiments/layout/decisions/batch", {"size": 2000})["decisions"]
    reports = [{"decision_id": one["decision_id"], "reward": 1} for one in made[:1500]]
    post(server, "/feedback", {"reports": reports})
    visit(page, server)
    expect(page.get_by_test_id("decisions")).to_have_text("2,000")
    expect(page.locator("#bars li").last).to_contain_text("992 others together")
    expect(page.locator("#earnings tr")).to_have_count(100)
    expect(page.get_by_test_id("earned-rest")).to_contain_text("the other 900 too")
    for size in (1, 20, 300):
        post(server, "/experiments/layout/decisions/batch", {"size": size})
    expect(page.get_by_test_id("decisions")).to_have_text("2,321")
    shares = page.locator("#bars [data-part=value]").all_inner_texts()
    assert sum(float(one.strip("<% ")) for one in shares) == pytest.approx(100, abs=3)
    page.get_by_test_id("manage").click()
    expect(page.locator("#retire-name option")).to_have_count(1000)
    page.get_by_test_id("retire-name").select_option("option 999")
    page.locator("#retire button").click()
    page.get_by_test_id("yes").click()
    expect(page.locator("#retire-name option")).to_have_count(999)
    expect(page.locator("#bars li").last).to_contain_text("991 others together")


def test_of_many_options_the_likeliest_are_drawn(page: Page, server: Server) -> None:
    create(server, arms=tuple(f"option {number}" for number in range(20)))
    visit(page, server)
    bars = page.locator("#bars li")
    expect(bars).to_have_count(9)
    expect(bars.last).to_contain_text("12 others together")
    assert number(page, "probability-others") == pytest.approx(12 / 20, abs=6e-3)
    expect(page.locator("#earnings tr")).to_have_count(20)


@pytest.mark.parametrize("path", ["/", "/experiments/layout"])
def test_a_phone_does_not_scroll_sideways(page: Page, server: Server, path: str) -> None:
    create(server, arms=("blue", "green" * 12, "an option of many words that goes on for a while"))
    for _ in range(30):
        report(server, decide(server), 1)
    page.set_viewport_size({"width": 360, "height": 740})
    page.goto(server.url + path)
    expect(page.get_by_test_id("connection")).to_have_text("Live")
    unfold(page)
    assert page.evaluate("document.documentElement.scrollWidth") <= 360


LUMINANCE = """
const channel = (c) => (c / 255 <= 0.04045 ? c / 255 / 12.92 : ((c / 255 + 0.055) / 1.055) ** 2.4);
const luminance = (colour) => {
  const [r, g, b] = colour.match(/[\\d.]+/g).map(Number).map(channel);
  return 0.2126 * r + 0.7152 * g + 0.0722 * b;
};
"""
FAINT_TEXT = (
    "() => {"
    + LUMINANCE
    + """
  const behind = (node) => {
    for (; node; node = node.parentElement) {
      const colour = getComputedStyle(node).backgroundColor;
      if (colour !== "rgba(0, 0, 0, 0)") return luminance(colour);
    }
  };
  const contrast = (node) => {
    const [dark, light] = [luminance(getComputedStyle(node).color), behind(node)].sort((a, b) => a - b);
    return (light + 0.05) / (dark + 0.05);
  };
  const hasText = (node) => [...node.childNodes].some((child) => child.nodeType === 3 && child.textContent.trim());
  const shown = [...document.querySelectorAll("body *")].filter((node) => hasText(node) && node.checkVisibility());
  return [shown.length, shown.filter((node) => contrast(node) < 4.5).map((node) => node.outerHTML)];
}"""
)


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_light_and_dark_are_what_they_say_and_readable(browser: Browser, server: Server, scheme: Any) -> None:
    create(server)
    report(server, decide(server), 1)
    page = browser.new_page(color_scheme=scheme)
    for path in ("/", "/experiments/layout"):
        page.goto(server.url + path)
        expect(page.get_by_test_id("connection")).to_have_text("Live")
        unfold(page)
        background = page.evaluate(
            f"() => {{ {LUMINANCE} return luminance(getComputedStyle(document.body).backgroundColor) }}"
        )
        assert background < 0.05 if scheme == "dark" else background > 0.8
        texts, faint = page.evaluate(FAINT_TEXT)
        assert texts > 20
        assert faint == []
    page.close()


def test_still_readers_see_no_motion(browser: Browser, server: Server) -> None:
    create(server)
    durations = []
    for motion in ("no-preference", "reduce"):
        page = browser.new_page(reduced_motion=motion)
        visit(page, server)
        durations.append(
            page.locator("#bars .fill").first.evaluate("bar => parseFloat(getComputedStyle(bar).transitionDuration)")
        )
        page.close()
    assert durations[0] > 0
    assert durations[1] == 0


def test_names_are_text_never_markup(page: Page, server: Server) -> None:
    wicked = '<img src=x onerror="document.title = 1">'
    create(server, arms=(wicked, "blue"))
    visit(page, server)
    expect(page.locator("#bars .name").first).to_have_text(wicked)
    expect(page.locator("main img")).to_have_count(0)


def test_the_commands_do_what_they_say(page: Page, server: Server) -> None:
    create(server)
    visit(page, server)
    curl, _, method, address = shlex.split(page.get_by_test_id("decide").inner_text())
    assert (curl, method) == ("curl", "POST")
    decision = httpx.post(address).raise_for_status().json()
    expect(page.get_by_test_id("outstanding")).to_have_text("1")
    words = shlex.split(
        page.get_by_test_id("report").inner_text().replace("DECISION_ID", decision["decision_id"]).replace("\\\n", "")
    )
    name, _, kind = words[words.index("-H") + 1].partition(": ")
    httpx.post(words[3], content=words[words.index("-d") + 1], headers={name: kind}).raise_for_status()
    expect(page.get_by_test_id("reported")).to_have_text("1")


def test_an_unknown_experiment_is_told(unchecked_page: Page, server: Server) -> None:
    unchecked_page.goto(f"{server.url}/experiments/nothing")
    expect(unchecked_page.get_by_test_id("headline")).to_have_text("There is no such experiment.")


def test_a_server_with_keys_is_asked_with_one(unchecked_page: Page, server: Server) -> None:
    """Other tests check the server's refusal. Here the browser gets 401 unless the header is right."""
    sent = dict[str, str]()  # by address

    def guard(route: Route) -> None:
        sent[route.request.url] = route.request.headers.get("authorization", "")
        if sent[route.request.url] == "Bearer right":  # which this server, without keys, refuses
            route.continue_(
                headers={name: text for name, text in route.request.headers.items() if name != "authorization"}
            )
        else:
            route.fulfill(status=401, content_type="application/problem+json", body='{"detail": "a key is needed"}')

    create(server)
    report(server, decide(server), 1)
    page = unchecked_page
    page.route("**/v1/**", guard)
    page.goto(f"{server.url}/experiments/layout")
    for key in ("wrong", "right"):
        page.get_by_label("Access key").fill(key)
        page.keyboard.press("Enter")
        if key == "wrong":
            expect(page.get_by_role("alert").filter(has_text="did not accept")).to_be_visible()
    expect(page.get_by_test_id("decisions")).to_have_text("1")
    expect(page.get_by_test_id("decide")).to_contain_text("Authorization: Bearer $BELATED_KEY")
    page.reload()  # the tab remembers the key
    expect(page.get_by_test_id("decisions")).to_have_text("1")
    with page.expect_download() as download:
        page.get_by_test_id("export-csv").click()
    address = f"{server.url}/v1/experiments/layout/export.csv"
    assert sent[address] == "Bearer right"
    exported = httpx.get(address).content
    assert Path(download.value.path()).read_bytes() == exported
    assert exported


def test_a_key_that_may_only_read_sees_no_forms(unchecked_page: Page, server: Server) -> None:
    create(server)
    keys = dict[str, str]()
    for scope in ("admin", "read"):
        headers = {"Authorization": f"Bearer {keys['admin']}"} if keys else {}
        made = httpx.post(f"{server.url}/v1/keys", json={"scopes": [scope]}, headers=headers)
        keys[scope] = made.raise_for_status().json()["key"]
    page = unchecked_page
    for scope in ("read", "admin"):
        for path, forms in (("/", ["#create"]), ("/experiments/layout", ["#changes", "#end", "#edit"])):
            page.goto(server.url + path)
            if path == "/":
                expect(page.locator("dialog")).to_contain_text("To look, the scope read is enough.")
                page.get_by_label("Access key").fill(keys[scope])
                page.keyboard.press("Enter")
            expect(page.get_by_test_id("connection")).to_have_text("Live")
            unfold(page)
            for form in forms:
                expect(page.locator(form)).to_be_visible(visible=scope == "admin")
            expect(page.get_by_test_id("only-reading")).to_be_visible(visible=scope == "read")
        if scope == "read":
            expect(page.get_by_test_id("events")).to_contain_text("created")
            expect(page.get_by_test_id("only-reading")).to_contain_text("The key of this tab may not change this")
            page.get_by_test_id("other-key").click()
            expect(page.get_by_label("Access key")).to_be_visible()


def test_a_key_that_the_server_does_not_need_any_more_is_dropped(unchecked_page: Page, server: Server) -> None:
    create(server)
    page = unchecked_page
    page.goto(f"{server.url}/experiments/layout")
    page.evaluate("sessionStorage.setItem('belated-key', 'blt_old')")
    page.reload()
    expect(page.get_by_test_id("decisions")).to_have_text("0")
    assert page.evaluate("sessionStorage.getItem('belated-key')") is None


class Wire:
    """A connection to the server that can be cut, so that the page loses the server."""

    def __init__(self, url: str) -> None:
        address = urlsplit(url)
        self.server = (address.hostname, address.port)
        self.ends: list[socket.socket] = []
        self.listener = socket.create_server(("127.0.0.1", 0))
        self.port: int = self.listener.getsockname()[1]
        self.url = f"http://127.0.0.1:{self.port}"
        self.listen()

    def listen(self) -> None:
        Thread(target=self.accept, args=(self.listener,), daemon=True).start()

    def accept(self, listener: socket.socket) -> None:
        with suppress(OSError):  # the listener was closed
            while True:
                near, _ = listener.accept()
                far = socket.create_connection(self.server)
                self.ends += [near, far]
                for source, target in ((near, far), (far, near)):
                    Thread(target=self.pass_on, args=(source, target), daemon=True).start()

    def pass_on(self, source: socket.socket, target: socket.socket) -> None:
        with suppress(OSError):
            while data := source.recv(65536):
                target.sendall(data)
            target.shutdown(socket.SHUT_RDWR)

    def cut(self) -> None:
        for end in [self.listener, *self.ends]:
            with suppress(OSError):  # the other side was faster
                end.shutdown(socket.SHUT_RDWR)
            end.close()
        self.ends.clear()

    def reconnect(self) -> None:
        self.listener = socket.create_server(("127.0.0.1", self.port))
        self.listen()


def test_the_page_survives_a_server_that_goes_away(unchecked_page: Page, server: Server) -> None:
    create(server)
    wire = Wire(server.url)
    unchecked_page.goto(f"{wire.url}/experiments/layout")
    status = unchecked_page.get_by_test_id("connection")
    expect(status).to_have_text("Live")
    unchecked_page.evaluate("window.isTheSamePage = true")
    wire.cut()
    expect(status).to_contain_text("Connection lost")
    expect(unchecked_page.get_by_test_id("decisions")).to_have_text("0")
    decide(server)
    wire.reconnect()
    expect(status).to_have_text("Live")
    expect(unchecked_page.get_by_test_id("decisions")).to_have_text("1")
    decide(server)
    expect(unchecked_page.get_by_test_id("decisions")).to_have_text("2")
    assert unchecked_page.evaluate("window.isTheSamePage")
    wire.cut()


def test_a_store_that_cannot_be_written_is_told_on_top(page: Page, server: Server) -> None:
    create(server)
    visit(page, server)
    expect(page.get_by_test_id("alarm")).to_be_hidden()
    broken = get(server, "layout")
    pretend(page, "layout", broken)
    for kind, remedy in {
        "sqlite": "Free up disk space and restart the server.",
        "postgresql": "the server recovers by itself when it is back. After any other failure, restart the server.",
    }.items():
        broken["store"].update(writable=False, kind=kind)
        page.reload()
        expect(page.get_by_test_id("alarm")).to_be_visible()
        expect(page.get_by_test_id("store-state")).to_have_text("Cannot save")
        expect(page.get_by_test_id("store-words")).to_contain_text(remedy)
