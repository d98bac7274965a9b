"""Servers that share a store decide once for each subject, also while they race, are killed, and arms are retired."""

from collections import Counter
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from itertools import pairwise
from pathlib import Path
from random import Random
from threading import Barrier, Event, Semaphore
from typing import Any, Final, final

import httpx
import pytest
from typer.testing import CliRunner

from belated.cli import app
from belated.serve.domain.entries import EntryKind
from belated.serve.domain.messages import OutcomeReport
from belated.serve.engine.requests import Answers, Ask, Hidden
from belated.serve.store.journal import entries
from belated.serve.store.postgres import partitions
from belated.serve.store.postgres.journal import PostgresJournal
from belated.serve.store.verify import verify
from tests.support.clients.crowd import check_folds, settle, started
from tests.support.engines import Driven, counts
from tests.support.removals import removed
from tests.support.service import NO_TLS, Served
from tests.system.serve.test_replicas import Fleet, blind_once, fleet, opening  # noqa: F401  # fixtures

REPLICAS: Final = 3
CLIENTS: Final = 8
BREATH: Final = 0.05  # seconds to wait after a failure
ROUNDS: Final = 40


def answer(driven: Driven, subject: str) -> Any:
    result = driven.do(Ask("layout", subject=subject))
    assert isinstance(result, Answers), result
    return result.decisions[0]


def by_subject(journal: Any) -> dict[bytes, list[Any]]:
    """The decisions of each subject in the journal, in their order."""
    found: dict[bytes, list[Any]] = {}
    for entry in entries(journal, 0, journal.last()):
        if entry.kind is EntryKind.DECIDED and entry.alias is not None:
            found.setdefault(entry.alias, []).append(entry)
    return found


# -- races ------------------------------------------------------------------------------------------------------------


def test_one_subject_at_two_servers_at_the_same_moment(fleet: Fleet) -> None:  # noqa: F811
    one, two, _ = fleet.all
    one.create()
    first = answer(one, "ann")
    looks = blind_once(two, "aliased", lambda _: {})
    assert answer(two, "ann").id == first.id
    assert looks == [2]
    fleet.agree()
    assert counts(one) == {"decisions": 1}


def test_one_subject_whose_arm_was_retired_at_two_servers_at_the_same_moment(fleet: Fleet) -> None:  # noqa: F811
    one, two, _ = fleet.all
    one.create()
    first = answer(one, "ann")
    one.change(retire=(first.arm,))
    two.engine.catch_up()
    old = two.engine.journal.aliased
    before = dict(old([(one["layout"].seq, key) for key in by_subject(one.engine.journal)]))
    second = answer(one, "ann")
    looks = blind_once(two, "aliased", lambda _: before)
    assert answer(two, "ann").id == second.id != first.id
    assert looks == [2]
    fleet.agree()
    assert counts(one) == {"decisions": 2}


def test_one_report_id_at_two_servers_at_the_same_moment(fleet: Fleet) -> None:  # noqa: F811
    """Of a subject that was decided anew in between, so that the decisions differ."""
    one, two, _ = fleet.all
    one.create()
    first = answer(one, "ann")
    sale = OutcomeReport("", "reward", 1.0, report_id="order 7", experiment="layout", subject="ann")
    assert one.tell_all([sale]) == ["applied"]
    one.change(retire=(first.arm,))
    second = answer(one, "ann")
    journal, look, looks = two.engine.journal, two.engine.journal.aliased, [0]

    def blind(wanted: Sequence[Any]) -> Any:
        looks[0] += 1
        return {} if looks[0] == 2 else look(wanted)  # the first look is for the subject

    journal.aliased = blind  # type: ignore[assignment,method-assign]
    assert two.tell_all([sale]) == ["duplicate"]
    assert looks[0] >= 4
    assert one.tell(second, 0.5) == "applied"
    fleet.agree()
    assert counts(one) == {"decisions": 2, "reported": 2}


@pytest.mark.parametrize("opening", ["sqlite", "postgresql"], indirect=True)
def test_servers_in_threads_decide_once(tmp_path: Path, opening: Callable[[], Any]) -> None:  # noqa: F811
    """Each asks for the same new subjects in the same order, so that they meet all the time. Arms come and go."""
    servers = [Driven(tmp_path, seed=number, opening=opening) for number in range(2)]
    servers[0].create()
    together = Barrier(len(servers))

    def visit(number: int) -> None:
        one, random = servers[number], Random(number)  # noqa: S311
        for turn in range(ROUNDS):
            together.wait(60)
            if number == 0 and turn % 4 == 3:
                one.change(add=("abcd"[turn % 3],), retire=("abcd"[(turn + 1) % 3],))
            subjects = [f"subject {random.randrange(turn + 1)}", f"subject {turn}"]
            results = one.engine.process([Ask("layout", subject=subject) for subject in subjects])
            assert all(isinstance(result, Answers | Hidden) for result in results), results
            one.engine.catch_up()

    with ThreadPoolExecutor(len(servers)) as pool:
        for visitor in [pool.submit(visit, number) for number in range(len(servers))]:
            visitor.result()
    for one in servers:
        one.engine.catch_up()
    assert servers[0].engine.fold.snapshot() == servers[1].engine.fold.snapshot()
    assert verify(servers[0].engine.journal).problems == []
    made = by_subject(servers[0].engine.journal)
    assert len(made) == ROUNDS
    retired = [entry for entry in entries(servers[0].engine.journal) if entry.kind is EntryKind.ARMS]
    for turns in made.values():
        assert [one.position for one in turns] == list(range(len(turns)))
        for before, after in pairwise(turns):
            assert any(before.seen < change.seq <= after.seen for change in retired), "decided anew without a reason"
    numbers = {one.seq for turns in made.values() for one in turns}
    assert sum(len(turns) for turns in made.values()) == servers[0]["layout"].counts.decisions == len(numbers)


# -- kills ------------------------------------------------------------------------------------------------------------


@final
class Visitor:
    """Asks for random subjects at random servers. Whoever was answered knows the option from then on."""

    def __init__(self, random: Random, subjects: int, calls: Semaphore) -> None:
        self._random, self._subjects, self._calls = random, subjects, calls
        self.seen: dict[str, set[tuple[Any, ...]]] = {}
        self.answered = 0

    def roam(self, replicas: Sequence[Served], over: Event) -> None:
        """Ask until all calls are made."""
        with httpx.Client(timeout=30, verify=NO_TLS) as http:
            while self._calls.acquire(blocking=False):
                subject = f"user-{self._random.randrange(self._subjects)}"
                while (answer := self._ask(http, self._random.choice(replicas).url, subject)) is None:
                    assert not over.wait(BREATH), "nobody answers"
                self.answered += 1
                said = tuple(answer[name] for name in ("decision_id", "arm", "probability", "round"))
                self.seen.setdefault(subject, set()).add(said)

    @staticmethod
    def _ask(http: httpx.Client, url: str, subject: str) -> Any:
        try:
            response = http.post(f"{url}/v1/experiments/sticky/decisions", json={"subject": subject})
        except (httpx.TransportError, httpx.UnsupportedProtocol):  # killed, or still starting
            return None
        if response.status_code == 503:
            return None
        assert response.status_code == 201, response.text
        return response.json()


def ask_and_kill(
    url: str, folder: Path, calls: int, kills: int, told: Callable[[int], object] = lambda _: None
) -> tuple[int, int]:
    """Ask for subjects while servers are killed. Returns how many answers and how many subjects there were."""
    with started(url, folder, REPLICAS) as replicas, ThreadPoolExecutor(CLIENTS) as pool:
        replicas[0].post("/v1/experiments", {"name": "sticky", "arms": ["blue", "green", "red"]}).raise_for_status()
        left, over, random = Semaphore(calls), Event(), Random(calls)  # noqa: S311
        number_of_subjects = max(20, calls // 20)
        visitors = [Visitor(Random(number), number_of_subjects, left) for number in range(CLIENTS)]  # noqa: S311
        visits = [pool.submit(one.roam, replicas, over) for one in visitors]
        try:
            for number in range(1, kills + 1):
                while sum(one.answered for one in visitors) < number * calls // (kills + 1):
                    assert not any(one.done() and one.exception() for one in visits)
                    over.wait(BREATH)
                victim = random.choice(replicas)
                victim.kill()
                victim.start()
                told(number)
            for visit in visits:
                visit.result()
        finally:
            over.set()
        seen: dict[str, set[tuple[Any, ...]]] = {}
        for one in visitors:
            for subject, said in one.seen.items():
                seen.setdefault(subject, set()).update(said)
        assert [subject for subject, said in seen.items() if len(said) != 1] == []
        settle(replicas, url, ["sticky"])
        check_folds(replicas, url, ["sticky"])
    with closing(PostgresJournal(url)) as journal:
        made = by_subject(journal)
        assert Counter(len(turns) for turns in made.values()) == {1: len(seen)}, "one round for each subject"
        assert verify(journal).problems == []
    return sum(one.answered for one in visitors), len(seen)


def test_a_subject_keeps_its_option_through_kills(database: str, tmp_path: Path) -> None:
    assert ask_and_kill(database, tmp_path, calls=800, kills=2)[0] == 800


# -- what leaves the store --------------------------------------------------------------------------------------------


def test_an_archived_subject_is_decided_anew(database: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """With whole partitions that are dropped, so that no trigger sees it."""
    monkeypatch.setattr(partitions, "SIZE", 10)
    with closing(PostgresJournal(database)) as journal:
        driven = Driven(tmp_path, opening=lambda: journal)
        driven.create()
        first = [answer(driven, f"subject {number}").id for number in range(40)]
        driven.do(Ask("layout", 60))
        base = removed(journal, decisions_until=30)
        driven.engine.catch_up()
        assert base.seq > 100
        assert journal.check() == []
        again = [answer(driven, f"subject {number}").id for number in range(40)]
        assert sum(one == two for one, two in zip(first, again, strict=True)) == 11
        assert [answer(driven, f"subject {number}").id for number in range(40)] == again
        assert verify(journal).problems == []


def test_a_subject_is_erased_everywhere(database: str, tmp_path: Path) -> None:
    with closing(PostgresJournal(database)) as journal:
        driven = Driven(tmp_path, opening=lambda: journal)
        driven.create()
        first, other = answer(driven, "ann"), answer(driven, "bob")
        driven.change(retire=(first.arm,))
        answer(driven, "ann")
        sale = OutcomeReport("", "reward", 1.0, report_id="order 7", experiment="layout", subject="ann")
        assert driven.tell_all([sale]) == ["applied"]
        result = CliRunner().invoke(app, ["erase", "--store", database, "--subject", "ann", "--grace", "0"])
        assert "erased 2 decisions with 4 entries" in result.output, result.output
        with closing(PostgresJournal(database)) as left:
            assert left.check() == []
            assert len(aliases_in(left)) == 1
            assert verify(left).problems == []
    with closing(PostgresJournal(database)) as journal:
        again = Driven(tmp_path, opening=lambda: journal)
        if other.arm != first.arm:
            assert answer(again, "bob").id == other.id
        assert answer(again, "ann").id != first.id


def aliases_in(journal: Any) -> list[bytes]:
    return [one.alias for one in journal.left(0, 2**62, 10_000) if one.alias is not None]
