"""A subject sees one option, however often and wherever it asks."""

import asyncio
import hashlib
from contextlib import closing
from pathlib import Path
from typing import Any

import polars
import pytest
from typer.testing import CliRunner

from belated.cli import app
from belated.serve.archive import archiving, erasing
from belated.serve.archive.archiving import Wanted
from belated.serve.domain import aliases
from belated.serve.domain.messages import Decided, OutcomeReport
from belated.serve.domain.operating import Operation
from belated.serve.domain.quotas import OpenLimit
from belated.serve.domain.refusals import Refusal
from belated.serve.engine.engine import Engine
from belated.serve.engine.requests import Answers, Ask, Operate, Tell
from belated.serve.service.service import Service
from belated.serve.store.copy import copy
from belated.serve.store.journal import Journal, Removal
from belated.serve.store.removal import begin, loaded, put_base
from belated.serve.store.sqlite.journal import SQLiteJournal
from belated.serve.store.verify import verify
from tests.support.engines import Driven, counts, state
from tests.support.in_process import Caller, visit
from tests.support.memory_journal import MemoryJournal, MemoryStore
from tests.support.removals import removed

ANN, BOB = "ann@example.org", "bob ☕"


def ask(driven: Driven, subject: str, name: str = "layout") -> tuple[Decided, bool]:
    """A subject's decision, and whether it had that before."""
    result = driven.do(Ask(name, subject=subject))
    assert isinstance(result, Answers), result
    [one] = result.decisions
    return one, result.replayed


def report(subject: str, value: float, *, id: str | None = None, name: str = "layout", **more: Any) -> OutcomeReport:
    return OutcomeReport("", "reward", value, report_id=id, experiment=name, subject=subject, **more)


@pytest.fixture
def driven(tmp_path: Path) -> Driven:
    driven = Driven(tmp_path)
    driven.create()
    return driven


def two_servers() -> tuple[Driven, Driven]:
    """Two servers on one store in memory."""
    store, folder = MemoryStore(), Path("/nowhere")
    one = Driven(folder, opening=lambda: MemoryJournal(store))
    one.create()
    return one, Driven(folder, clock=one.clock, seed=2, opening=lambda: MemoryJournal(store))


# -- the same option ---------------------------------------------------------------------------------------------------


def test_a_subject_gets_one_decision(driven: Driven) -> None:
    first, is_repeated = ask(driven, ANN)
    assert not is_repeated
    for _ in range(20):
        driven.decide()
        assert ask(driven, ANN) == (first, True)
    assert ask(driven, BOB)[0].id != first.id
    assert driven["layout"].counts.decisions == 22


@pytest.mark.parametrize("snapshot", [False, True])
def test_it_survives_a_restart(driven: Driven, *, snapshot: bool) -> None:
    first, _ = ask(driven, ANN)
    driven.restart(snapshot=snapshot)
    again, is_repeated = ask(driven, ANN)
    assert is_repeated
    assert again[:1] + again[2:] == first[:1] + first[2:]  # the experiment is another object


def test_it_never_expires(driven: Driven) -> None:
    first, _ = ask(driven, ANN)
    driven.clock.advance(400 * 86_400)
    driven.decide()
    for _ in range(10):
        driven.engine.forget_keys()
    assert ask(driven, ANN)[0].id == first.id


def test_experiments_do_not_share_subjects(driven: Driven) -> None:
    driven.create("other")
    assert ask(driven, ANN)[0].id != ask(driven, ANN, "other")[0].id
    [one], [two] = ([found.decision for found in driven.decisions(name)] for name in ("layout", "other"))
    assert one.alias != two.alias


def test_requests_of_one_group_get_the_same(driven: Driven) -> None:
    results = driven.engine.process([Ask("layout", subject=one) for one in (ANN, BOB, ANN, ANN)])
    assert all(isinstance(one, Answers) for one in results)
    ids = [one.decisions[0].id for one in results]  # type: ignore[union-attr]
    assert ids[0] == ids[2] == ids[3] != ids[1]
    assert [one.replayed for one in results] == [False, False, True, True]  # type: ignore[union-attr]
    assert driven["layout"].counts.decisions == 2


def test_a_key_and_a_subject_are_two_things(driven: Driven) -> None:
    [keyed] = driven.decide(key=ANN)
    assert ask(driven, ANN)[0].id != keyed.id
    assert driven.decide(key=ANN)[0].id == keyed.id


def test_the_journal_has_no_subject_only_its_digest(driven: Driven) -> None:
    ask(driven, ANN)
    driven.engine.journal.close()
    content = b"".join(path.read_bytes() for path in driven.path.parent.iterdir())
    assert ANN.encode() not in content
    digest = hashlib.sha256(f"layout\n{ANN}".encode()).digest()[:16]
    assert aliases.of_subject("layout", ANN) == digest
    assert digest in content


# -- two servers -------------------------------------------------------------------------------------------------------


def test_two_servers_decide_once() -> None:
    one, two = two_servers()
    first, _ = ask(one, ANN)
    assert ask(two, ANN)[0].id == first.id


def test_the_slower_of_two_servers_gets_the_decision_of_the_faster() -> None:
    one, two = two_servers()
    original, taken = two.engine.journal.append, list[Decided]()

    def append(*arguments: Any) -> list[int]:
        if not taken:  # the other server is faster, after this one has looked
            taken.append(ask(one, ANN)[0])
        return original(*arguments)

    two.engine.journal.append = append  # type: ignore[assignment,method-assign]
    slower, is_repeated = ask(two, ANN)
    assert is_repeated
    assert slower.id == taken[0].id
    two.engine.catch_up()
    assert two["layout"].counts.decisions == one["layout"].counts.decisions == 1


def test_a_server_that_has_not_heard_of_the_retirement_decides_once_too() -> None:
    one, two = two_servers()
    two.engine.catch_up()
    first, _ = ask(one, ANN)
    one.change(retire=(first.arm,))
    second, is_repeated = ask(one, ANN)
    assert not is_repeated
    assert second.arm != first.arm
    assert ask(two, ANN)[0].id == second.id == ask(one, ANN)[0].id
    assert one["layout"].counts.decisions == 2


def test_an_arm_that_a_server_has_not_heard_of_is_no_retired_one() -> None:
    one, two = two_servers()
    one.change(add=("d",), retire=("a", "b", "c"))
    assert two["layout"].arms == ["a", "b", "c"]
    first, _ = ask(one, ANN)
    assert first.arm == "d"
    again, is_repeated = ask(two, ANN)
    assert is_repeated
    assert again.id == first.id


def test_an_arm_that_came_back_unheard_is_no_retired_one() -> None:
    one, two = two_servers()
    one.change(retire=("a",))
    two.engine.catch_up()
    one.change(add=("a",), retire=("b", "c"))
    first, _ = ask(one, ANN)
    assert first.arm == "a"
    assert ask(two, ANN)[0].id == first.id
    assert one["layout"].counts.decisions == 1


# -- retired options ---------------------------------------------------------------------------------------------------


def test_a_retired_option_is_decided_anew_once(driven: Driven) -> None:
    first, _ = ask(driven, ANN)
    other = next(arm for arm in "abc" if arm != first.arm)
    driven.change(retire=(other,))
    assert ask(driven, ANN)[0].id == first.id
    driven.change(retire=(first.arm,))
    second, is_repeated = ask(driven, ANN)
    assert not is_repeated
    assert second.id != first.id
    driven.restart(snapshot=True)
    assert ask(driven, ANN)[0].id == second.id
    assert counts(driven) == {"decisions": 2}


@pytest.mark.parametrize("event", ["frozen", "ended"])
def test_what_all_are_shown_is_shown_to_known_subjects_too(driven: Driven, event: Any) -> None:
    """An experiment that was frozen or has ended shows one option, also to a subject that had another one."""
    first, _ = ask(driven, ANN)
    shown = next(arm for arm in "abc" if arm != first.arm)
    driven.do(Operate("layout", Operation("paused")))
    assert ask(driven, ANN)[0].id == first.id, "a pause changes nothing for those who have an option"
    driven.do(Operate("layout", Operation("resumed")))
    driven.do(Operate("layout", Operation(event, shown)))
    second, is_repeated = ask(driven, ANN)
    assert (second.arm, second.probability, is_repeated) == (shown, 1.0, False)
    assert ask(driven, ANN) == (second, True)
    assert ask(driven, BOB)[0].arm == shown
    driven.restart()
    assert ask(driven, ANN)[0].id == second.id


def test_who_was_decided_in_a_freeze_takes_part_after_it(driven: Driven) -> None:
    """Decisions of a freeze teach nothing. Otherwise nobody who came back meanwhile would ever teach again."""
    first, _ = ask(driven, ANN)
    other = next(arm for arm in "abc" if arm != first.arm)
    driven.do(Operate("layout", Operation("frozen", first.arm)))
    frozen, _ = ask(driven, BOB)
    driven.do(Operate("layout", Operation("unfrozen")))
    driven.do(Operate("layout", Operation("paused")))
    assert ask(driven, BOB) == (frozen, True), "a pause changes nothing for those who have an option"
    driven.do(Operate("layout", Operation("resumed")))
    assert ask(driven, ANN) == (first, True), "who was shown the same option keeps the decision"
    anew, is_repeated = ask(driven, BOB)
    assert anew.id != frozen.id
    assert anew.probability < 1
    assert not is_repeated
    driven.restart(snapshot=True)
    assert ask(driven, BOB)[0].id == anew.id
    assert driven.tell_all([report(BOB, 1)]) == ["applied"]
    assert driven["layout"].learned == 2
    driven.do(Operate("layout", Operation("frozen", other)))
    assert {ask(driven, ANN)[0].arm, ask(driven, BOB)[0].arm} == {other}
    assert verify(driven.engine.journal).problems == []


def test_a_server_that_has_not_heard_of_a_freeze_or_its_end_decides_nobody_anew() -> None:
    one, two = two_servers()
    for number in range(20):
        first, second = f"first {number}", f"second {number}"
        two.engine.catch_up()
        one.do(Operate("layout", Operation("frozen", "a")))
        frozen, _ = ask(one, first)
        two.engine.asking.expect()
        assert ask(two, first)[0].id == frozen.id
        two.engine.catch_up()
        one.do(Operate("layout", Operation("unfrozen")))
        drawn, _ = ask(one, second)
        two.engine.asking.expect()
        assert ask(two, second)[0].id == drawn.id
    assert one["layout"].operations.aside.decisions == 20


def test_a_frozen_experiment_that_was_closed_decides_nobody(driven: Driven) -> None:
    first, _ = ask(driven, ANN)
    driven.do(Operate("layout", Operation("frozen", first.arm)))
    driven.close()
    refused = driven.do(Ask("layout", subject=ANN))
    assert isinstance(refused, Refusal)
    assert "is closed" in refused.detail


def test_a_key_never_serves_a_retired_option(driven: Driven) -> None:
    [first] = driven.decide(key="k")
    driven.change(retire=(first.arm,))
    before = state(driven)
    refused = driven.do(Ask("layout", 1, "k"))
    assert isinstance(refused, Refusal)
    assert refused.kind == "conflict"
    assert f"chose '{first.arm}'. That arm was retired since" in refused.detail
    assert state(driven) == before
    driven.change(add=(first.arm,))
    assert driven.decide(key="k")[0].id == first.id


def test_a_closed_experiment_says_what_to_show(driven: Driven) -> None:
    ask(driven, ANN)
    driven.close()
    refused = driven.do(Ask("layout", subject=ANN))
    assert isinstance(refused, Refusal)
    assert refused.kind == "conflict"


def test_a_full_experiment_still_answers_who_was_decided(driven: Driven) -> None:
    limit = OpenLimit("shop", 1)
    [first] = driven.do(Ask("layout", subject=ANN, limit=limit)).decisions
    assert driven.do(Ask("layout", subject=BOB, limit=limit)).kind == "too_many"
    assert driven.do(Ask("layout", subject=ANN, limit=limit)).decisions[0].id == first.id


# -- outcomes by subject -----------------------------------------------------------------------------------------------


def test_an_outcome_is_reported_by_subject(driven: Driven) -> None:
    first, _ = ask(driven, ANN)
    [status] = driven.do(Tell([report(ANN, 1.0)]))
    assert status == ("applied", 0, first.id)
    assert driven.tell_all([report(ANN, 1.0), report(ANN, 0.0), report(BOB, 1.0)]) == [
        *("duplicate", "conflict", "not_found")
    ]
    assert driven.tell(first, 1.0) == "duplicate"
    assert driven.tell_all([report(ANN, 0.25, amend=True, revision=0)]) == ["amended"]
    assert counts(driven) == {"decisions": 1, "reported": 1, "amended": 1}


def test_a_report_by_subject_is_of_the_newest_decision(driven: Driven) -> None:
    first, _ = ask(driven, ANN)
    driven.change(retire=(first.arm,))
    second, _ = ask(driven, ANN)
    [status] = driven.do(Tell([report(ANN, 1.0)]))
    assert status.decision_id == second.id
    assert driven.tell(first, 0.5) == "applied"


def test_a_repeated_report_counts_once_even_if_the_subject_was_decided_anew(driven: Driven) -> None:
    first, _ = ask(driven, ANN)
    assert driven.tell_all([report(ANN, 1.0, id="order 7")]) == ["applied"]
    driven.change(retire=(first.arm,))
    ask(driven, ANN)
    [status] = driven.do(Tell([report(ANN, 1.0, id="order 7")]))
    assert status == ("duplicate", 0, first.id)
    assert driven.tell_all([report(ANN, 1.0, id="order 8")]) == ["applied"]
    assert counts(driven) == {"decisions": 2, "reported": 2}


@pytest.mark.parametrize("is_told", [True, False])
@pytest.mark.parametrize("revision", [0, None])
def test_a_late_copy_of_an_amendment_is_not_of_a_later_decision(
    driven: Driven, is_told: bool, revision: int | None
) -> None:
    """A revision does not tell the decisions of a subject apart."""
    first, _ = ask(driven, ANN)
    amendment = report(ANN, 0.0, amend=True, revision=revision)
    assert driven.tell_all([report(ANN, 1.0), amendment]) == ["applied", "amended"]
    driven.change(retire=(first.arm,))
    second, _ = ask(driven, ANN)
    if is_told:
        assert driven.tell_all([report(ANN, 1.0)]) == ["applied"]
    before = state(driven)
    [refused] = driven.do(Tell([amendment]))
    assert (refused.kind, second.id in refused.detail) == ("conflict", True)
    assert state(driven) == before
    named = OutcomeReport(second.id, "reward", 0.5, amend=True, revision=0 if is_told else None)
    assert driven.tell_all([named]) == ["amended" if is_told else "applied"]


def test_an_amendment_with_a_report_id_finds_its_decision(driven: Driven) -> None:
    first, _ = ask(driven, ANN)
    amendment = report(ANN, 0.0, id="order 1", amend=True, revision=0)
    assert driven.tell_all([report(ANN, 1.0, id="order 1")]) == ["applied"]
    driven.change(retire=(first.arm,))
    second, _ = ask(driven, ANN)
    assert driven.tell_all([report(ANN, 1.0, id="order 2")]) == ["applied"]
    [status] = driven.do(Tell([amendment]))
    assert (status.status, status.decision_id) == ("amended", first.id)
    [status] = driven.do(Tell([report(ANN, 0.5, id="order 2", amend=True, revision=0)]))
    assert (status.status, status.decision_id) == ("amended", second.id)
    before = state(driven)
    assert driven.tell_all([amendment]) == ["duplicate"]
    assert state(driven) == before


def test_a_report_id_belongs_to_one_decision(driven: Driven) -> None:
    ask(driven, ANN)
    ask(driven, BOB)
    assert driven.tell_all([report(ANN, 1.0, id="order 7"), report(BOB, 1.0, id="order 7")]) == ["applied", "conflict"]
    assert driven.tell_all([report(BOB, 1.0, id="order 7")]) == ["conflict"]
    assert driven.tell_all([report(BOB, 1.0, id="order 8")]) == ["applied"]


def test_a_key_of_one_experiment_does_not_report_in_another(driven: Driven) -> None:
    driven.create("other")
    ask(driven, ANN)
    assert driven.tell_all([report(ANN, 1.0)], only="other") == ["not_found"]
    assert driven.tell_all([report(ANN, 1.0, name="unknown")]) == ["not_found"]
    assert driven.tell_all([report(ANN, 1.0)], only="layout") == ["applied"]


def test_a_server_learns_of_the_experiment_when_a_report_comes() -> None:
    one, two = two_servers()
    one.create("new")
    ask(one, ANN, "new")
    assert two.tell_all([report(ANN, 1.0, name="new")]) == ["applied"]


# -- copies ------------------------------------------------------------------------------------------------------------


def test_a_copy_has_the_same_subjects(driven: Driven, tmp_path: Path) -> None:
    first, _ = ask(driven, ANN)
    driven.change(retire=(first.arm,))
    second, _ = ask(driven, ANN)
    driven.tell_all([report(ANN, 1.0, id="order 7")])
    (tmp_path / "copy").mkdir()
    other = Driven(tmp_path / "copy", clock=driven.clock)
    copied: Journal = other.engine.journal
    copy(driven.engine.journal, copied)
    other.restart()
    assert ask(other, ANN)[0].id == second.id
    assert other.tell_all([report(ANN, 1.0, id="order 7")]) == ["duplicate"]
    assert verify(other.engine.journal).problems == []


# -- what leaves the store ---------------------------------------------------------------------------------------------


def test_erasing_a_subject_leaves_no_trace_of_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """In the store, its snapshots, the base, and the files of an archive."""
    driven, folder = Driven(tmp_path), tmp_path / "archive"
    driven.create()
    driven.create("old")
    old, _ = ask(driven, ANN, "old")
    driven.tell_all([report(ANN, 1.0, id="order 7", name="old")])
    driven.close("old")
    journal = driven.engine.journal
    archiving.archive(journal, (fold := loaded(journal)), archiving.choose(journal, fold, Wanted()), folder, 0.0, print)
    driven.engine.catch_up()
    for number in range(300):
        ask(driven, f"user {number}")
    first, _ = ask(driven, ANN)
    driven.tell_all([report(ANN, 1.0, id="order 8")])
    driven.change(retire=(first.arm,))
    second, _ = ask(driven, ANN)
    driven.restart(snapshot=True)
    secrets = [aliases.of_subject(name, ANN) for name in ("layout", "old")]
    secrets += [aliases.of_report(driven[name].seq, id) for name, id in (("old", "order 7"), ("layout", "order 8"))]

    def traces() -> set[bytes]:
        files = [*tmp_path.glob("belated.db*"), *folder.iterdir()]
        tables = [polars.read_parquet(path) for path in folder.iterdir()]
        content = b"".join(path.read_bytes() for path in files) + str([one.rows() for one in tables]).encode()
        return {secret for secret in secrets if secret in content or secret.hex().encode() in content}

    assert len(traces()) >= 3
    monkeypatch.setattr(erasing, "PAUSE", 0.0)
    store = "--store", str(driven.path), "--grace", "0"
    said = CliRunner().invoke(app, ["erase", *store, "--subject", ANN, "--archive", str(folder)]).output
    assert "erased 2 decisions with 4 entries from the store" in said
    assert said.count("row from") + said.count("rows from") == 2, said
    assert traces() == set()
    driven.restart()
    assert verify(driven.engine.journal).problems == []
    assert ask(driven, ANN)[0].id not in {old.id, first.id, second.id}
    said = CliRunner().invoke(app, ["erase", *store, "--subject", "nobody"]).output
    assert "There is no decision of this subject" in said


def test_a_subject_whose_first_decision_was_archived_keeps_its_second(driven: Driven) -> None:
    """A server that took it for a new one would write the first one again."""
    first, _ = ask(driven, ANN)
    driven.change(retire=(first.arm,))
    second, _ = ask(driven, ANN)
    seq = driven.decisions()[0].decision.seq
    removed(driven.engine.journal, decisions_until=seq)
    driven.restart()
    assert [found.decision.position for found in driven.decisions()] == [1]
    assert ask(driven, ANN) == ask(driven, ANN)
    assert ask(driven, ANN)[0].id == second.id


def test_flags_are_evaluated_anew_after_decisions_were_erased(tmp_path: Path) -> None:
    """The provider keeps what it got while the answer is 304. A report of an erased decision would be refused."""

    async def work(caller: Caller) -> None:
        await caller.post("/v1/experiments", {"name": "layout", "arms": ["a", "b"]})
        body = {"context": {"targetingKey": "ann", "flags": ["layout"]}}
        first = await caller.post("/ofrep/v1/evaluate/flags", body)
        tag = {"If-None-Match": first.headers["ETag"]}
        assert (await caller.post("/ofrep/v1/evaluate/flags", body, **tag)).status_code == 304
        with closing(SQLiteJournal(tmp_path / "belated.db")) as journal:
            base = put_base(journal, loaded(journal), 1)
            while service.seq < base.entry:
                await asyncio.sleep(0.01)
            begin(journal, base, grace=0.0)
            list(journal.remove(Removal(base.seq, decisions=(2,))))
        anew = await caller.post("/ofrep/v1/evaluate/flags", body, **tag)
        assert anew.status_code == 200
        ids = [one.json()["flags"][0]["metadata"]["decision_id"] for one in (first, anew)]
        assert ids[0] != ids[1]

    service = Service(Engine(SQLiteJournal(tmp_path / "belated.db", synchronous="OFF")))
    visit(service, work)
