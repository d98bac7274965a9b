"""Several engines share a store. Each applies the entries of all, and requests have one effect."""

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from belated.serve.domain.entries import Entry, EntryKind
from belated.serve.domain.fold import Fold
from belated.serve.domain.messages import OutcomeReport
from belated.serve.domain.refusals import Refusal
from belated.serve.domain.settings import Settings, TuningChoice
from belated.serve.engine.requests import Answers, Ask, Create, Tell
from belated.serve.store.journal import Journal, entries
from belated.serve.store.loading import load
from belated.serve.store.postgres.journal import PostgresJournal
from belated.serve.store.sqlite.journal import SQLiteJournal
from belated.serve.store.verify import verify
from tests.support.engines import LOSSES, Clock, Driven, counts
from tests.support.means import provoke


class Fleet:
    """Engines that share a store and a clock. `random` picks the engine for each request."""

    def __init__(self, folder: Path, size: int = 3, seed: int = 0, opening: Any = None) -> None:
        self.random, self.clock = np.random.default_rng(seed), Clock()
        self.all = [Driven(folder, clock=self.clock, seed=seed + n, opening=opening) for n in range(size)]

    def any(self) -> Driven:
        return self.all[int(self.random.integers(len(self.all)))]

    def catch_up(self) -> None:
        for one in self.all:
            one.engine.catch_up()

    def agree(self) -> bytes:
        """Let all engines catch up and check that they have one state, the same as a new engine. Returns it."""
        self.catch_up()
        states = {one.engine.fold.snapshot() for one in self.all}
        fold = Fold()
        for entry in entries(self.all[0].engine.journal):  # one by one
            fold.apply([entry])
        assert states == {fold.snapshot()}
        verdict = verify(self.all[0].engine.journal)
        assert (verdict.problems, verdict.unchecked) == ([], 0)
        return fold.snapshot().state


@pytest.fixture(params=["sqlite", "postgresql"])
def opening(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Callable[[], Journal]]:
    """A function that opens connections to one empty store. All of them are closed at the end."""
    url = request.getfixturevalue("database") if request.param == "postgresql" else None
    opened: list[Journal] = []

    def opens() -> Journal:
        path = tmp_path / "belated.db"
        opened.append(SQLiteJournal(path, synchronous="OFF") if url is None else PostgresJournal(url))
        return opened[-1]

    yield opens
    for journal in opened:
        journal.close()


@pytest.fixture
def fleet(tmp_path: Path, opening: Callable[[], Journal]) -> Fleet:
    return Fleet(tmp_path, opening=opening)


class Story:
    """Sends random requests to random engines, some of them twice, and remembers the answers."""

    def __init__(self, fleet: Fleet) -> None:
        self.fleet, self.random = fleet, fleet.random
        self.waiting: list[str] = []
        self.keys: dict[str, list[str]] = {}  # the decisions answered for each key
        self.arms: dict[str, set[str]] = {}  # of the decisions for each key
        self.retired = set[str]()
        self.values: dict[str, float] = {}  # the acknowledged outcome of each decision
        fleet.any().create("layout", reward_wait=50.0, outcome=LOSSES)
        fleet.any().do(Create(Settings("other", ["x", "y"])))

    def decide(self) -> None:
        key = f"k{self.random.integers(200)}" if self.random.random() < 0.5 else None
        size = 1 + len(key or "") % 3
        result = self.fleet.any().do(Ask("layout", size, key))
        if isinstance(result, Refusal):
            assert self.arms[key or ""] & self.retired, result
            return
        assert isinstance(result, Answers), result
        ids = [one.id for one in result.decisions]
        if key is not None:
            assert result.replayed == (key in self.keys)
            assert self.keys.setdefault(key, ids) == ids
            self.arms[key] = {one.arm for one in result.decisions}
        if not result.replayed:
            self.waiting += ids

    def report(self) -> None:
        ids = [self.waiting.pop(0) for _ in range(min(3, len(self.waiting)))]
        values = self.random.random(len(ids)).round(3).tolist()
        for again in range(2):
            items = [OutcomeReport(id, "loss", value) for id, value in zip(ids, values, strict=True)]
            statuses = self.fleet.any().tell_all(items)
            assert all(one == ("duplicate" if again else one) for one in statuses), statuses
            assert set(statuses) <= {"applied", "late", "duplicate"}
        self.values |= dict(zip(ids, values, strict=True))

    def amend(self) -> None:
        if self.values:
            id = list(self.values)[int(self.random.integers(len(self.values)))]
            value = float(self.random.random())
            assert self.fleet.any().tell(id, value, word="loss") in ("conflict", "duplicate")
            assert self.fleet.any().tell(id, value, word="loss", amend=True) == "amended"
            self.values[id] = value

    def change(self) -> None:
        self.fleet.any().change(add=(f"arm {self.random.integers(4)}",))
        self.retired.add(arm := f"arm {self.random.integers(4)}")
        self.fleet.any().change(retire=(arm,))

    def pass_time(self) -> None:
        self.fleet.clock.advance(float(self.random.random() * 5))
        self.fleet.any().engine.expire()

    def catch_up(self) -> None:
        self.fleet.any().engine.catch_up()

    def tell(self, steps: int) -> None:
        ways = [self.decide, self.decide, self.decide, self.report, self.amend, self.pass_time, self.catch_up]
        for _ in range(steps):
            if self.random.random() < 0.03:
                self.change()
            ways[int(self.random.integers(len(ways)))]()


@pytest.mark.parametrize("seed", range(6))
def test_whoever_is_asked_all_agree_to_the_last_bit(tmp_path: Path, opening: Callable[[], Journal], seed: int) -> None:
    fleet = Fleet(tmp_path, size=1 + seed % 4, seed=seed, opening=opening)
    story = Story(fleet)
    story.tell(300)
    fleet.agree()
    made = fleet.all[0].decisions("layout")
    told = {entry.decision.seq: entry.outcome.value for entry in made if entry.outcome and entry.outcome.kind != 4}
    assert len(told) == len(story.values)
    assert sorted(v for v in told.values() if v is not None) == sorted(story.values.values())
    assert len(made) == fleet.all[0]["layout"].counts.decisions


@pytest.mark.parametrize("tuning", ["means", "shadow"])
def test_a_decision_brings_the_edge_it_was_drawn_with(fleet: Fleet, tuning: str) -> None:
    """A server that applies the entry later knows more. It must use the bold advantage stored with the decision."""
    one, two, _ = fleet.all
    if tuning == "means":
        provoke(one, "shadow")
    else:
        one.create(outcome=LOSSES, tuning=TuningChoice("shadow"))
    early = one.decide(size=40)
    for decision in early[:20]:
        one.tell(decision, float(decision.arm == "a"), word="loss")
    two.engine.catch_up()
    for decision in early[20:]:
        one.tell(decision, float(decision.arm != "a"), word="loss")
        one.decide()
    drawn = two["layout"].shared.draw_context().bold_advantages
    [late] = two.decide()
    fleet.agree()
    now, learner = one["layout"].shared.draw_context().bold_advantages, one["layout"].learner
    entered = learner._state.ledger["bold_advantage"][int(learner._state.clock["rows"][0]) - 1]
    arm = "abc".index(late.arm)
    assert entered == drawn[arm] != now[arm]


@pytest.mark.parametrize(("tuning", "rounds"), [("means", 500), ("shadow", 150)])
def test_lag_is_in_the_certificate(tmp_path: Path, tuning: Any, rounds: int) -> None:
    """The requests are the same, but the bound is weaker if the servers lag."""
    proven = []
    for lag in (False, True):
        (tmp_path / str(lag)).mkdir()
        fleet = Fleet(tmp_path / str(lag), size=2, seed=5)
        fleet.all[0].create(outcome=LOSSES, tuning=TuningChoice(tuning))
        for _ in range(rounds):
            made = [one.decide()[0] for one in fleet.all]
            for decision in made:
                fleet.all[0].tell(decision, 0.5, word="loss")
            if not lag:
                fleet.catch_up()
        fleet.agree()
        proven.append(fleet.all[0]["layout"].costs().proven)
    assert proven[0] < min(proven[1], 2 * rounds)


# -- races: another server commits after the lookup, so the store must refuse the write -------------------------------


def blind_once(driven: Driven, method: str, nothing: Any) -> list[int]:
    """Make the next lookup find nothing, as if another server committed right after it. Returns a lookup counter."""
    journal, look, looks = driven.engine.journal, getattr(driven.engine.journal, method), [0]

    def blind(*arguments: Any) -> Any:
        looks[0] += 1
        return nothing(look(*arguments)) if looks[0] == 1 else look(*arguments)

    setattr(journal, method, blind)
    return looks


@pytest.mark.parametrize("size", [1, 5])
def test_one_key_at_two_servers_at_the_same_moment(fleet: Fleet, size: int) -> None:
    one, two, _ = fleet.all
    one.create()
    first = one.decide(size=size, key="k")
    looks = blind_once(two, "requested", lambda _: {})
    assert [decision.id for decision in two.decide(size=size, key="k")] == [decision.id for decision in first]
    assert looks == [2]
    fleet.agree()
    assert counts(one) == {"decisions": size}


@pytest.mark.parametrize("size", [1, 3, 7])
def test_one_key_for_another_number_leaves_nothing_behind(fleet: Fleet, size: int) -> None:
    one, two, _ = fleet.all
    one.create()
    one.decide(size=4, key="k")
    blind_once(two, "requested", lambda _: {})
    other = Ask("layout", 2)
    refused, answered = two.engine.process([Ask("layout", size, "k"), other])
    assert isinstance(refused, Refusal)
    assert refused.kind == "invalid"
    assert isinstance(answered, Answers)
    fleet.agree()
    assert counts(one) == {"decisions": 4 + 2}


@pytest.mark.parametrize(("value", "status"), [(0.5, "duplicate"), (0.75, "conflict")])
def test_one_report_at_two_servers_at_the_same_moment(fleet: Fleet, value: float, status: Any) -> None:
    one, two, _ = fleet.all
    one.create()
    [decision] = one.decide()
    assert one.tell(decision, 0.5) == "applied"
    looks = blind_once(two, "find", lambda found: {seq: it._replace(outcome=None) for seq, it in found.items()})
    assert two.tell(decision, value) == status
    assert looks[0] == 2
    fleet.agree()
    assert counts(one) == {"decisions": 1, "reported": 1}


def test_copies_of_amendments_at_any_server_change_nothing(fleet: Fleet) -> None:
    one, two, three = fleet.all
    one.create()
    [decision] = one.decide()
    first, second, other = (
        OutcomeReport(decision.id, "reward", value, amend=True, revision=revision)
        for revision, value in ((0, 0.5), (1, 0.75), (1, 0.25))
    )
    assert one.tell(decision, 1.0) == "applied"
    assert two.tell_all([first]) == ["amended"]
    looks = blind_once(three, "find", lambda found: {seq: it._replace(outcome=None) for seq, it in found.items()})
    assert three.tell_all([second]) == ["amended"]
    assert looks[0] == 2
    for server in fleet.all:
        assert server.tell_all([first, second, other]) == ["superseded", "duplicate", "superseded"]
    fleet.agree()
    assert counts(one) == {"decisions": 1, "reported": 1, "amended": 2}


def test_a_report_and_the_end_of_its_wait_at_two_servers(fleet: Fleet) -> None:
    one, two, _ = fleet.all
    one.create(reward_wait=10.0, default_outcome=0.0)
    [decision] = one.decide()
    fleet.catch_up()
    fleet.clock.advance(11)
    assert one.tell(decision, 1.0) == "applied"
    looks = blind_once(two, "decisions", lambda page: [found._replace(outcome=None) for found in page])
    two.engine.expire()
    assert looks == [1]
    two.engine.catch_up()
    two.engine.expire()
    fleet.agree()
    assert counts(one) == {"decisions": 1, "reported": 1}


def test_waits_end_once_and_all_of_them_end(fleet: Fleet) -> None:
    fleet.all[0].create(reward_wait=10.0)
    for _ in range(40):
        fleet.any().decide(size=3)
        fleet.clock.advance(0.5)
        fleet.any().engine.expire()
        fleet.any().engine.catch_up()
    fleet.clock.advance(20)
    for _ in range(3):
        fleet.catch_up()
        for one in fleet.all:
            one.engine.expire()
    fleet.agree()
    assert counts(fleet.all[0]) == {"decisions": 120, "expired": 120}


def test_who_is_always_too_late_is_asked_to_come_again(fleet: Fleet, monkeypatch: pytest.MonkeyPatch) -> None:
    """Nothing was written, so nothing is wrong with the store."""
    one, two, _ = fleet.all
    one.create()
    one.decide(key="k")
    monkeypatch.setattr(two.engine.journal, "requested", lambda *_: {})
    monkeypatch.setattr(two.engine.journal, "named", lambda *_: {})
    late, other = two.engine.process([Ask("layout", 1, "k"), Create(Settings("new", ["a", "b"]))])
    assert isinstance(late, Refusal)
    assert late.kind == "not_found"
    two.engine.catch_up()
    late = two.do(Ask("layout", 1, "k"))
    assert (late.kind, late.retry_after) == ("unavailable", 1)
    monkeypatch.undo()
    assert two.decide(key="k")
    assert not isinstance(other, Refusal)
    fleet.agree()


# -- changes of an experiment ----------------------------------------------------------------------------------------


def test_an_experiment_is_known_to_others_at_once(fleet: Fleet) -> None:
    one, two, three = fleet.all
    one.create()
    [decision] = two.decide()
    assert three.tell(decision, 1.0) == "applied"
    assert one.do(Ask("nowhere")).kind == "not_found"
    fleet.agree()


def test_two_servers_create_one_experiment(fleet: Fleet) -> None:
    one, two, three = fleet.all
    settings = Settings("layout", ["a", "b"])
    assert one.do(Create(settings))[1]
    blind_once(two, "named", lambda _: {})
    assert not two.do(Create(settings))[1]
    blind_once(three, "named", lambda _: {})
    assert three.do(Create(Settings("layout", ["a", "c"]))).kind == "conflict"
    fleet.agree()


def test_two_servers_cannot_retire_all_arms_together(fleet: Fleet) -> None:
    one, two, _ = fleet.all
    one.create(arms=("a", "b"))
    fleet.catch_up()
    assert one.change(retire=("a",))[1]
    assert two.change(retire=("b",)).kind == "invalid"  # it had not yet seen the other change
    fleet.agree()
    assert one["layout"].era.arms == [1]


def test_who_does_not_know_of_new_arms_decides_among_the_old_ones(fleet: Fleet) -> None:
    one, two, _ = fleet.all
    one.create(arms=("a", "b"), outcome=LOSSES)
    fleet.catch_up()
    early = one.decide()
    one.change(add=("c",), retire=("a",))
    proven = one["layout"].costs().proven
    made = two.decide(size=20)
    assert {decision.arm for decision in made} == {"a", "b"}
    assert two.tell(made[0], 1.0, word="loss") == "applied"
    assert two.tell(made[0], 0.5, word="loss", amend=True) == "amended"
    assert two.tell(early[0], 0.5, word="loss") == "applied"
    fleet.agree()
    assert counts(one) == {"decisions": 21, "reported": 2, "amended": 1}
    assert one["layout"].costs().proven >= min(21, proven + 20)
    assert [era.decisions for era in (*one["layout"].past, one["layout"].era)] == [21, 0]
    assert one["layout"].evidence.reports == 2
    assert one["layout"].stale == 20
    assert one["layout"].learner.round == 1  # it knows only the early one
    assert {one.decide()[0].arm for _ in range(60)} == {"b", "c"}


def test_who_does_not_know_that_it_is_closed_decides_once_more(fleet: Fleet) -> None:
    one, two, _ = fleet.all
    one.create()
    fleet.catch_up()
    one.close()
    [decision] = two.decide()
    two.engine.catch_up()
    assert two.do(Ask("layout")).kind == "conflict"
    assert one.tell(decision, 1.0) == "applied"
    fleet.agree()


def test_an_old_answer_may_have_arms_that_are_news(fleet: Fleet) -> None:
    one, two, _ = fleet.all
    one.create(arms=("a",))
    fleet.catch_up()
    one.change(add=("b",), retire=("a",))
    made = one.decide(size=3, key="k")
    assert (
        [decision.arm for decision in two.decide(size=3, key="k")] == [decision.arm for decision in made] == ["b"] * 3
    )


# -- clocks and lag --------------------------------------------------------------------------------------------------


def test_clocks_may_differ(tmp_path: Path) -> None:
    ahead, behind = Clock(), Clock()
    ahead.advance(3)
    one, two = Driven(tmp_path, clock=ahead), Driven(tmp_path, clock=behind, seed=2)
    one.create(reward_wait=10.0)
    two.engine.catch_up()
    for _ in range(30):
        one.decide()
        two.decide()
        two.engine.catch_up()
        for clock in (ahead, behind):
            clock.advance(0.7)
        one.engine.expire()
        two.engine.expire()
        one.engine.catch_up()
    for clock in (ahead, behind):
        clock.advance(30)
    one.engine.expire()
    two.engine.catch_up()
    assert one.engine.fold.snapshot() == two.engine.fold.snapshot()
    assert counts(one) == {"decisions": 60, "expired": 60}
    assert sum(one["layout"].ages.counts) == 0
    assert min(one["layout"].ages.counts, default=0) >= 0


def test_a_server_that_cannot_catch_up_says_so(fleet: Fleet, monkeypatch: pytest.MonkeyPatch) -> None:
    """A long transaction can hide newer entries, so that they cannot be read yet."""
    one, two, _ = fleet.all
    one.create()
    [decision] = one.decide()
    monkeypatch.setattr(two.engine.journal, "read", lambda *_: [])
    assert two.do(Ask("layout")).kind == "unavailable"
    assert two.tell(decision, 1.0) == "unavailable"
    assert two.do(Tell([OutcomeReport("nonsense", "reward", 1.0)]))[0].kind == "not_found"
    monkeypatch.undo()
    assert two.tell(decision, 1.0) == "applied"
    fleet.agree()


def test_a_server_that_cannot_catch_up_answers_what_it_can(fleet: Fleet, monkeypatch: pytest.MonkeyPatch) -> None:
    """A request waits only for entries that it needs. tests/serve/test_hidden.py shows how long."""
    one, two, _ = fleet.all
    one.create()
    fleet.catch_up()
    monkeypatch.setattr(two.engine.journal, "read", lambda *_: [])
    one.decide()
    [decision] = one.decide(key="k")
    assert isinstance(two.engine.process([Ask("layout", 1, "k")])[0], Answers)
    assert two.decide(key="k")[0].id == decision.id, "the entry is out of reach, but its arm is known"
    assert two.tell(decision, 1.0) == "applied"
    one.create("news")
    made = [one.decide("news")[0] for _ in range(20)]
    assert two.tell_all([OutcomeReport(decision.id, "reward", 1.0) for decision in made]) == ["unavailable"] * 20
    monkeypatch.undo()
    fleet.agree()


def test_a_start_comes_to_an_end_while_others_write(fleet: Fleet, monkeypatch: pytest.MonkeyPatch) -> None:
    one, two, _ = fleet.all
    one.create()
    one.decide(size=7)
    read, pages = two.engine.journal.read, list[int]()

    def busy(after: int, limit: int) -> list[Entry]:
        page = read(after, limit)
        pages.append(len(page))
        assert len(pages) < 10
        one.decide()
        return page

    monkeypatch.setattr(two.engine.journal, "read", busy)
    monkeypatch.setattr("belated.serve.store.loading.PAGE", 3)
    assert load(two.engine.journal).seq >= 8
    assert pages[0] == 3
    assert pages[-1] < 3


def test_entries_say_what_their_server_knew(fleet: Fleet) -> None:
    one, two, _ = fleet.all
    one.create()
    fleet.catch_up()
    one.decide()
    [decision] = two.decide()
    two.tell(decision, 1.0)
    rows = [(entry.kind, entry.seen, entry.revision) for entry in entries(one.engine.journal)]
    decided, reported = EntryKind.DECIDED, EntryKind.REPORTED
    assert rows == [(EntryKind.CREATED, None, 0), (decided, 1, None), (decided, 1, None), (reported, 1, 0)]
