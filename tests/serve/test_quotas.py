"""Nobody can open decisions or send requests without end."""

import math
import time
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest

from belated.errors import InvalidInput
from belated.serve.archive.erasing import decoded, erase
from belated.serve.domain.entries import Entry, EntryKind
from belated.serve.domain.experiment import Experiment
from belated.serve.domain.operating import Operation
from belated.serve.domain.owned import Owned
from belated.serve.domain.quotas import OpenLimit, Quotas, Rates
from belated.serve.domain.refusals import Refusal
from belated.serve.domain.settings import ArmChange, Settings
from belated.serve.engine.engine import Engine
from belated.serve.engine.requests import Ask, ChangeArms, Create, Operate
from belated.serve.http.documents import id_of
from belated.serve.service import keys
from belated.serve.service.keys import Gate, Grant
from belated.serve.service.lists import MOST_EXPORTS, Wanted
from belated.serve.service.service import Service
from belated.serve.store.sqlite.journal import SQLiteJournal
from belated.serve.store.verify import verify
from tests.support.engines import Driven
from tests.support.in_process import Caller, visit


def limited(folder: Path, max_open: int) -> Driven:
    driven = Driven(folder)
    driven.engine = Engine(driven.engine.journal, clock=driven.clock, max_open=max_open)
    return driven


def assert_refused(result: Any, *said: str) -> None:
    assert isinstance(result, Refusal)
    assert (result.kind, result.quota, result.retry_after) == ("too_many", "open decisions", 10)
    for words in said:
        assert words in result.detail


def test_an_experiment_has_at_most_so_many_open_decisions(tmp_path: Path) -> None:
    driven = limited(tmp_path, 10)
    driven.create()
    driven.create("other")
    decided = driven.decide(size=8)
    seq = driven.engine.fold.seq
    assert_refused(driven.do(Ask("layout", 3)), "'layout'", "11 open", "may have 10", "--max-open")
    assert driven.engine.fold.seq == driven.engine.journal.last() == seq  # nothing was written
    driven.decide(size=2)
    assert_refused(driven.do(Ask("layout")))
    assert len(driven.decide("other", size=10)) == 10  # each experiment has its own
    assert driven.tell(decided[0], 1.0) == "applied"
    assert len(driven.decide()) == 1
    assert_refused(driven.do(Ask("layout")))


def test_decisions_that_teach_nothing_need_no_room(tmp_path: Path) -> None:
    """Otherwise a winner that is shown to all would be refused some day, for ever."""
    driven = limited(tmp_path, 10)
    driven.create()
    decided = driven.decide(size=10)
    driven.do(Operate("layout", Operation("frozen", "a")))
    assert len(driven.decide(size=30)) == 30
    driven.do(Operate("layout", Operation("unfrozen")))
    assert_refused(driven.do(Ask("layout")))
    assert driven.tell(decided[0], 1.0) == "applied"
    assert len(driven.decide()) == 1
    assert_refused(driven.do(Ask("layout")), "11 open")
    driven.do(Operate("layout", Operation("ended", "b")))
    assert len(driven.decide(size=30)) == 30
    assert driven["layout"].counts.outstanding == 70


def test_waits_that_end_make_room(tmp_path: Path) -> None:
    driven = limited(tmp_path, 5)
    driven.create(reward_wait=60)
    driven.decide(size=5)
    assert_refused(driven.do(Ask("layout")))
    driven.clock.advance(61)
    driven.engine.expire()
    assert len(driven.decide(size=5)) == 5


def test_the_requests_of_one_group_share_the_room(tmp_path: Path) -> None:
    driven = limited(tmp_path, 10)
    driven.create()
    results: Any = driven.engine.process([Ask("layout", 4), Ask("layout", 4, "k"), Ask("layout", 4), Ask("layout", 2)])
    assert [isinstance(one, Refusal) for one in results] == [False, False, True, False]
    assert driven["layout"].counts.outstanding == 10
    again: Any = driven.engine.process([Ask("layout", 4, "k"), Ask("layout", 4, "new"), Ask("layout", 4, "new")])
    assert again[0].replayed  # what was decided is still answered
    assert_refused(again[1])
    assert_refused(again[2])


def asked(driven: Driven, key: str, most: int, size: int = 1, name: str = "layout") -> Any:
    """Ask with a key that may have so many open decisions. Returns the decisions, or a Refusal."""
    answer = driven.do(Ask(name, size, None, OpenLimit(key, most)))
    return answer if isinstance(answer, Refusal) else answer.decisions


def test_a_key_counts_its_own_open_decisions(tmp_path: Path) -> None:
    driven = limited(tmp_path, 20)
    driven.create(reward_wait=60)
    driven.create("other")
    driven.decide(size=9)  # of a key without a limit
    first, second = asked(driven, "shop", 3, 2)
    [third] = asked(driven, "shop", 3, name="other")
    refused = asked(driven, "shop", 3)
    assert_refused(refused, "this access key would have 4 open", "may have 3", "raise the key's own limit")
    assert_refused(asked(driven, "shop", 3, name="other"))  # all experiments count together
    assert len(asked(driven, "web", 5, 5)) == 5  # each key has its own
    assert_refused(asked(driven, "web", 5))
    assert driven.tell(third, 1.0) == "applied"
    assert len(asked(driven, "shop", 3)) == 1
    assert_refused(asked(driven, "shop", 3))
    for status in ("applied", "duplicate"):  # and no room a second time
        assert driven.tell(first, 1.0) == status
    assert driven.tell(first, 0.0, amend=True) == "amended"
    assert_refused(asked(driven, "shop", 3, 2))
    assert_refused(asked(driven, "big", 100, 5), "'layout' would have 21", "may have 20", "--max-open")
    driven.clock.advance(61)
    driven.engine.expire()
    assert len(asked(driven, "shop", 3, 3)) == 3
    assert driven.tell(second, 1.0) == "late"  # its wait had ended
    assert_refused(asked(driven, "shop", 3))


@pytest.mark.parametrize("way", ["journal", "snapshot", "other server", "base"])
def test_all_servers_count_the_open_decisions_of_a_key(tmp_path: Path, way: str) -> None:
    driven = limited(tmp_path, 100)
    driven.create()
    driven.create("other")
    for name in ("layout", "other"):
        asked(driven, "shop", 10, 4, name)
        asked(driven, "web", 10, 3, name)
    gone = [one.id for one in asked(driven, "shop", 10, 2)]
    driven.tell(gone[0], 1.0)
    if way == "base":
        erase(driven.engine.journal, decoded(gone[1:]), 0.0, pause=0.0)
    if way == "other server":
        other = Engine(SQLiteJournal(driven.path), clock=driven.clock)
        driven.engine.journal.close()
        driven.engine = other
    else:
        driven.restart(snapshot=way == "snapshot")
    room = 2 if way == "base" else 1
    assert driven.engine.fold.owned.open == {"shop": 10 - room, "web": 6}
    assert_refused(asked(driven, "shop", 10, room + 1))
    assert len(asked(driven, "shop", 10, room)) == room
    assert verify(driven.engine.journal).problems == []
    driven.engine.journal.close()


def test_requests_of_one_group_share_the_room_of_their_key(tmp_path: Path) -> None:
    driven = limited(tmp_path, 100)
    driven.create()
    limit = OpenLimit("shop", 5)
    requests = [Ask("layout", 3, "k", limit), Ask("layout", 3, None, limit), Ask("layout", 2, None, limit)]
    results: Any = driven.engine.process(requests)
    assert [isinstance(one, Refusal) for one in results] == [False, True, False]
    assert driven.do(Ask("layout", 3, "k", limit)).replayed  # what was decided is still answered


def test_a_server_counts_what_a_key_was_given_and_it_cannot_read(tmp_path: Path) -> None:
    driven = Driven(tmp_path)
    driven.create()
    other = Engine(SQLiteJournal(driven.path), clock=driven.clock)
    driven.decide()  # so that the other server's numbers do not follow what it has applied
    ask = Ask("layout", 1, None, OpenLimit("shop", 2))
    for _ in range(2):
        assert not isinstance(other.process([ask])[0], Refusal)
    assert other.fold.owned.open == {}  # it has applied none of them
    assert_refused(other.process([ask])[0])
    other.catch_up()
    assert other.fold.owned.open == {"shop": 2}
    other.journal.close()


def test_what_a_failed_experiment_holds_leaves_room(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Its decisions can not be reported, so they would be open for ever."""
    driven = limited(tmp_path, 100)
    driven.create()
    driven.create("sound")
    asked(driven, "shop", 3, 2)
    [kept] = asked(driven, "shop", 3, name="sound")

    def broken(*_: object) -> None:
        raise ArithmeticError("a bug")

    with monkeypatch.context() as patched:
        patched.setattr(Experiment, "apply_decisions", broken)
        driven.do(Ask("layout"))
    assert driven["layout"].failure is not None
    assert driven.engine.fold.owned.open == {"shop": 1}
    assert driven.tell(kept, 1.0) == "applied"
    assert driven.engine.fold.owned.open == {}


@pytest.mark.parametrize("operation", [Operation("frozen", "a"), Operation("ended", "a")])
def test_an_arm_that_is_shown_to_all_is_shown_without_end(tmp_path: Path, operation: Operation) -> None:
    """Nobody has to report these decisions, and they take no memory."""
    driven = limited(tmp_path, 10)
    driven.create()
    asked(driven, "shop", 5, 5)
    driven.decide(size=5)
    assert_refused(driven.do(Ask("layout")))
    driven.do(Operate("layout", operation))
    shown = [*asked(driven, "shop", 5, 30), *driven.decide(size=30)]
    assert {one.arm for one in shown} == {"a"}
    assert driven.engine.fold.owned.open == {"shop": 5}
    if operation.event == "frozen":
        driven.tell(shown[0], 1.0)
        driven.do(Operate("layout", Operation("unfrozen")))
        assert_refused(driven.do(Ask("layout")))  # those from before are still open
        for found in driven.decisions()[:3]:
            assert driven.tell(id_of(found.decision), 1.0) == "applied"
        assert len(driven.decide(size=3)) == 3
        assert_refused(driven.do(Ask("layout")), "would have 11 open")


def test_a_server_counts_what_it_has_written_and_cannot_read(tmp_path: Path) -> None:
    """Another server's open transaction hides all newer entries, also this server's own."""
    driven = Driven(tmp_path)
    driven.create()
    other = Engine(SQLiteJournal(driven.path), clock=driven.clock, max_open=10)
    driven.decide(size=1)  # so that the other server's numbers do not follow what it has applied
    for _ in range(10):
        [result] = other.process([Ask("layout", 1)])
        assert not isinstance(result, Refusal)
    assert other.fold.by_name["layout"].counts.outstanding == 0  # it has applied none of them
    [refused] = other.process([Ask("layout", 1)])
    assert_refused(refused)
    other.catch_up()
    assert other.fold.by_name["layout"].counts.outstanding == 11  # one more than it may, because of the other server
    assert_refused(other.process([Ask("layout", 1)])[0])
    other.journal.close()


# -- arms ------------------------------------------------------------------------------------------------------------


def test_nobody_can_create_experiments_or_arms_without_end(tmp_path: Path) -> None:
    """An experiment is never deleted, so its memory is never free again."""
    driven = Driven(tmp_path)
    driven.engine = Engine(driven.engine.journal, clock=driven.clock, max_total_arms=45)
    for name in ("one", "two", "three"):
        driven.create(name)  # each counts as ten
    last = driven.engine.journal.last()
    for request in (
        Create(Settings("four", [str(arm) for arm in range(16)])),
        ChangeArms("one", ArmChange([str(arm) for arm in range(23)])),
    ):
        refused: Any = driven.do(request)
        assert (refused.kind, refused.quota, refused.retry_after) == ("too_many", "arms", 3600)
        assert "would have 46 arms, and may have 45" in refused.detail
    assert driven.engine.journal.last() == last
    assert not isinstance(driven.change("one", add=tuple(map(str, range(20)))), Refusal)  # 23 + 10 + 10
    assert not isinstance(driven.change("one", retire=tuple(map(str, range(20)))), Refusal)
    assert not isinstance(driven.change("one", add=("0", "1")), Refusal)  # they come back
    assert isinstance(driven.change("one", add=("x", "y", "z")), Refusal)
    assert not isinstance(driven.do(Create(Settings("two", ["a", "b", "c"]))), Refusal)
    assert len(driven.decide("one", 5)) == 5
    assert not isinstance(driven.close("two"), Refusal)


def test_nobody_can_change_arms_without_end(tmp_path: Path) -> None:
    """A change takes memory for all arms, also if they are not new. One with a decision after each filled gigabytes."""
    driven = Driven(tmp_path)
    driven.engine = Engine(driven.engine.journal, clock=driven.clock, max_total_arms=30)
    driven.create("one")
    driven.create("two")
    n_changes, refused = 0, None
    while refused is None and n_changes < 100:
        answers = [driven.change("one", retire=("a",)), driven.change("one", add=("a",))]
        refused = next((one for one in answers if isinstance(one, Refusal)), None)
        n_changes += 2 - (refused is not None)
        driven.decide("one")
    assert n_changes == 51, "each 25 changes count as much as the arms, and these as ten"
    assert refused is not None
    assert (refused.kind, refused.quota, refused.retry_after) == ("too_many", "arms", 3600)
    assert "would have 31 arms, and may have 30" in refused.detail
    driven.engine = Engine(driven.engine.journal, clock=driven.clock, max_total_arms=30)
    assert isinstance(driven.change("one", add=("a",)), Refusal), "also after a restart"
    assert isinstance(driven.do(Create(Settings("three", ["a"]))), Refusal)
    assert not isinstance(driven.change("one", retire=("b",)), Refusal), "a bad arm can always go"
    assert not isinstance(driven.change("two", retire=("b",)), Refusal)
    assert len(driven.decide("one", 5)) == 5


def test_changing_many_arms_of_many_takes_no_time(tmp_path: Path) -> None:
    """The last one took half a second, and meanwhile nobody got an answer. Names were searched in a list of all."""
    driven = Driven(tmp_path)
    driven.create("layout", tuple(f"0-{arm}" for arm in range(1000)))
    began = time.process_time()
    for turn in range(30):
        old, new = ([f"{number}-{arm}" for arm in range(1, 1000)] for number in (turn, turn + 1))
        assert not isinstance(driven.change(add=tuple(new), retire=tuple(old)), Refusal)
    assert time.process_time() - began < 3.0, "of the processor"
    assert len(driven["layout"].arms) == 30_970


# -- rates ----------------------------------------------------------------------------------------------------------


def spent(rates: Rates, seconds: float, size: int, every: float, rate: float) -> int:
    """How many items a greedy caller gets."""
    got, steps = 0, round(seconds / every)
    for step in range(steps):
        with suppress(Refusal):
            rates.spend("k", size, rate, step * every)
            got += size
    return got


@pytest.mark.parametrize("size", [1, 7, 1000])
@pytest.mark.parametrize("rate", [0.5, 10.0, 300.0])
def test_the_rate_holds_on_average(size: int, rate: float) -> None:
    got = spent(Rates("rate", "--rate"), 200, size, 0.01, rate)
    most = min(rate * 200, size * 20_000)
    assert most - rate - size <= got <= most + rate + size


def test_after_the_wait_it_goes_on() -> None:
    rates = Rates("rate", "--rate")
    rates.spend("k", 500, 100.0, 0.0)
    with pytest.raises(Refusal, match="100 a second") as refused:
        rates.spend("k", 1, 100.0, 0.0)
    assert refused.value.retry_after == math.ceil(4.0)
    rates.spend("other", 1, 100.0, 0.0)
    rates.spend("k", 1, 100.0, 4.1)
    rates.spend("k", 10**9, None, 4.1)  # no limit


def test_a_service_counts_by_key_and_by_experiment(tmp_path: Path) -> None:
    driven = Driven(tmp_path)
    driven.create()
    service = Service(driven.engine, quotas=Quotas(key_rate=10, experiment_rate=100))
    service.spend(Grant(key="a"), 50, "layout")
    with pytest.raises(Refusal, match="rate of a key of 'a'"):
        service.spend(Grant(key="a"), 1)
    service.spend(Grant(key="b", rate=1000.0), 60, "layout")
    with pytest.raises(Refusal, match="rate of the experiment of 'layout'"):
        service.spend(Grant(key="c"), 1, "layout")
    for number in range(1000):
        service.spend(Grant(key="b", rate=1e9), 1, f"no such experiment {number}")
    assert len(service._rates._buckets) == 1  # callers cannot fill the memory with names
    service.close()


# -- reading --------------------------------------------------------------------------------------------------------


def test_exports_do_not_take_all_connections_to_the_store(tmp_path: Path) -> None:
    driven = Driven(tmp_path)
    driven.create()
    driven.decide(size=3000)
    service = Service(driven.engine)
    begun = [service.lists.export(driven["layout"], Wanted())[0] for _ in range(MOST_EXPORTS)]
    assert all(len(next(one)) == 1000 for one in begun)
    with pytest.raises(Refusal, match="8 exports at a time") as refused:
        next(service.lists.export(driven["layout"], Wanted())[0])
    assert (refused.value.kind, refused.value.quota) == ("too_many", "exports")
    begun[0].close()  # its caller has left
    assert sum(map(len, service.lists.export(driven["layout"], Wanted())[0])) == 3000
    assert sum(map(len, service.lists.export(driven["layout"], Wanted())[0])) == 3000
    for one in begun:
        one.close()
    service.close()


# -- keys with limits -----------------------------------------------------------------------------------------------


def test_the_limits_of_a_key_are_kept_with_its_scope(tmp_path: Path) -> None:
    journal = SQLiteJournal(tmp_path / "belated.db")
    text = keys.create(journal, "decide", "layout", max_open=1000, rate=50)
    plain = keys.create(journal, "report", None)
    gate = Gate(journal.keys())
    assert gate.admit(text, "decide")._replace(key="") == Grant("decide", "layout", "", 1000, 50.0)
    assert gate.admit(plain, "report")._replace(key="") == Grant("report", None)
    assert gate.admit(text, "decide").key == text.split("_")[1]
    with pytest.raises(Refusal, match="the key has the scope decide"):
        gate.admit(text, "report")
    with pytest.raises(InvalidInput, match="scope"):
        keys.create(journal, "decide rate=1", None)
    journal.close()


def test_flags_are_evaluated_together_if_they_are_more_than_the_rate(tmp_path: Path) -> None:
    """Otherwise each try would use up what is allowed, and none would succeed."""
    quotas = Quotas(key_rate=0.01, experiment_rate=0.01)
    service = Service(Engine(SQLiteJournal(tmp_path / "belated.db", synchronous="OFF")), quotas=quotas)
    flags = [f"flag-{number}" for number in range(6)]

    async def work(caller: Caller) -> None:
        for flag in flags:
            await caller.post("/v1/experiments", {"name": flag, "arms": ["a", "b"]})
        body = {"context": {"targetingKey": "ann", "flags": flags}}
        first = await caller.post("/ofrep/v1/evaluate/flags", body)
        assert [one["reason"] for one in first.json()["flags"]] == ["SPLIT"] * 6
        again = await caller.post("/ofrep/v1/evaluate/flags", body)
        assert again.status_code == 429
        assert int(again.headers["Retry-After"]) > 100
        unchanged = await caller.post("/ofrep/v1/evaluate/flags", body, **{"If-None-Match": first.headers["ETag"]})
        assert unchanged.status_code == 304  # it costs nothing

    visit(service, work)


def test_keys_that_replace_each_other_share_their_rate(tmp_path: Path) -> None:
    service = Service(Engine(SQLiteJournal(tmp_path / "belated.db", synchronous="OFF")))
    service.spend(Grant(key="a", rate=0.01), 1)
    for grant in (Grant(key="a", rate=0.01), Grant(key="b", rate=0.01, first="a")):
        with pytest.raises(Refusal, match="rate of a key"):
            service.spend(grant, 1)
    service.spend(Grant(key="c", rate=0.01), 1)
    service.close()


@pytest.mark.parametrize("kind", EntryKind)
def test_only_the_end_of_a_decision_makes_room(kind: EntryKind) -> None:
    owned = Owned()
    owned.note([Entry(1, EntryKind.DECIDED, 1, 2, parts=b"shop")])
    owned.note([Entry(1, kind, 1, 3, decision=2)])
    is_end = kind in (EntryKind.REPORTED, EntryKind.EXPIRED, EntryKind.REMOVED)
    assert owned.open == ({} if is_end else {"shop": 1})
    assert Owned.restore(owned.state()).state() == owned.state()
