"""The contract of a journal: what the service relies on, whichever store keeps the entries."""

import secrets
import time
from collections.abc import Callable, Iterator
from typing import Any, Final

import msgspec
import pytest

from belated.errors import HistoryLost, StoreError
from belated.serve.domain.entries import Drawings, Entry, EntryKind, with_seq
from belated.serve.domain.fold import Snapshot
from belated.serve.domain.history import Mark, Tail, place_of
from belated.serve.store import journal as journals
from belated.serve.store.journal import Conflict, Journal, Key, Record
from belated.testing.entries import created, decided, event, filled, outcome
from belated.testing.removal_contract import RemovalContract

OpenStore = Callable[[], Journal]
READ_TIMEOUT: Final = 10.0  # seconds for others' transactions to end


def readable(journal: Journal, after: int, limit: int) -> list[Entry]:
    """Read a page once it is complete. A store may hold entries back while a transaction of others is open."""
    deadline = time.monotonic() + READ_TIMEOUT
    while True:
        page = journal.read(after, limit)
        is_complete = len(page) == limit or (page[-1].seq if page else after) >= journal.last()
        if is_complete or time.monotonic() > deadline:
            return page
        time.sleep(0.01)


def known_as(entry: Entry, position: int = 0, alias: bytes = b"\x00 alias of 16 b") -> Entry:
    """The entry with an alias."""
    return msgspec.structs.replace(entry, alias=alias, position=position)


def record(what: str, *, is_change: bool = True, experiment: str = "") -> Record:
    """Return a record of the audit trail."""
    return Record(0, is_change, 5, 6, 7, what, 201, "naïve\n", "0123", experiment, "id")


class JournalContract(RemovalContract):
    """Tests that every journal must pass. A subclass overrides the fixture `open_store`."""

    @pytest.fixture
    def open_store(self) -> OpenStore:
        """Opens a store that was empty when the test began. Each call opens the same store again."""
        raise NotImplementedError("a subclass of JournalContract must override the fixture open_store")

    @pytest.fixture
    def journal(self, open_store: OpenStore) -> Iterator[Journal]:
        """An empty journal."""
        opened = open_store()
        yield opened
        opened.close()

    def test_an_empty_journal_is_empty(self, journal: Journal) -> None:
        assert journal.last() == 0
        lists: list[list[Any]] = [journal.read(0, 10), journal.decisions(1, 0, 10), journal.snapshots(), journal.keys()]
        assert lists == [[], [], [], []]
        assert journal.find([1, 2]) == {}
        assert journal.append([]) == []
        assert journal.check() == []

    def test_its_clock_is_right_if_it_has_one(self, journal: Journal) -> None:
        first, second = journal.clock(), journal.clock()
        if first is not None and second is not None:
            assert time.time() - 60 < first / 1e6 <= second / 1e6 < time.time() + 60

    def test_entries_are_numbered_in_order_and_an_experiment_is_named_by_its_own(self, journal: Journal) -> None:
        assert journal.append([created("one"), created("two")]) == [1, 2]
        assert journal.append([decided(2, 1)]) == [3]
        assert [(entry.seq, entry.experiment) for entry in readable(journal, 0, 10)] == [(1, 1), (2, 2), (3, 2)]
        assert journal.last() == 3

    @pytest.mark.parametrize(
        ("there", "again", "other"),
        [
            (created("one"), created("one", at=5), created("two")),
            (
                decided(1, 1, key="k", position=0),
                decided(1, 2, key="k", position=0),
                decided(1, 3, key="k", position=1),
            ),
            (
                decided(1, 1, key="k", position=0),
                decided(1, 2, key="k", position=0),
                decided(2, 1, key="k", position=0),
            ),
            (outcome(1), outcome(1, at=5), outcome(1, revision=1)),
            (event(1, 1), event(1, 1, at=5), event(1, 2)),
            (event(1, 1), event(1, 1, at=5), event(2, 1)),
            (known_as(decided(1, 1)), known_as(decided(1, 2)), known_as(decided(1, 3), 1)),
            (known_as(decided(1, 1)), known_as(decided(1, 2)), known_as(decided(2, 3))),
            (known_as(outcome(1)), known_as(outcome(2)), known_as(outcome(2), 1)),
        ],
        ids=[
            *("name", "request", "request of another experiment", "outcome", "event", "event of another experiment"),
            *("alias", "alias of another experiment", "alias of an outcome"),
        ],
    )
    def test_what_is_there_already_or_comes_twice_is_a_conflict_and_nothing_is_written(
        self, journal: Journal, there: Entry, again: Entry, other: Entry
    ) -> None:
        journal.append([created("zero")])
        for twins in ([there, again], [there, other, again]):
            with pytest.raises(Conflict):
                journal.append(twins)
        assert journal.last() == 1
        [seq] = journal.append([there])
        before = readable(journal, 0, 100)
        for conflicting in ([again], [other, again], [again, other], [decided(1, 50), other, again, decided(1, 51)]):
            with pytest.raises(Conflict):
                journal.append(conflicting)
            assert readable(journal, 0, 100) == before
            assert journal.last() == seq
        [second, third] = journal.append([other, decided(1, 50, at=99)])
        assert seq < second < third == journal.last()
        assert [(entry.seq, entry.at) for entry in readable(journal, seq, 100)] == [(second, other.at), (third, 99)]

    def test_events_of_an_old_store_have_no_revision(self, journal: Journal) -> None:
        journal.append([created("one"), event(1, None), event(1, None), event(1, 1)])
        assert [entry.revision for entry in journal.events(1, 0, 10)] == [None, None, None, 1]

    def test_an_experiment_is_found_by_its_name(self, journal: Journal) -> None:
        assert journal.named(["one"]) == journal.named([]) == {}
        [one, two] = journal.append([created("one"), created("naïve \U0001f600")])
        assert journal.named(["naïve \U0001f600"]) == {"naïve \U0001f600": two}
        assert journal.named(["On", "one", "naïve \U0001f600", "one"]) == {"one": one, "naïve \U0001f600": two}

    @pytest.mark.parametrize("limit", [1, 2, 3, 100])
    def test_every_list_can_be_read_in_pages(self, journal: Journal, limit: int) -> None:
        filled(journal)

        def paged(page_after: Callable[[int], list[Any]], seq: Callable[[Any], int]) -> list[int]:
            found: list[int] = []
            while page := page_after(found[-1] if found else 0):
                assert len(page) <= limit
                found += map(seq, page)
            return found

        assert paged(lambda after: readable(journal, after, limit), lambda e: e.seq) == list(range(1, 12))
        assert paged(lambda after: journal.decisions(1, after, limit), lambda f: f.decision.seq) == [3, 5, 7]
        assert paged(lambda after: journal.decisions(2, after, limit), lambda f: f.decision.seq) == [4, 6]
        assert paged(lambda after: journal.outcomes(1, after, limit), lambda e: e.seq) == [8, 9, 10]
        assert paged(lambda after: journal.events(1, after, limit), lambda e: e.seq) == [1, 11]
        assert paged(lambda after: journal.events(2, after, limit), lambda e: e.seq) == [2]

    def test_decisions_come_with_the_newest_word_on_them(self, journal: Journal) -> None:
        filled(journal)
        newest = [(found.decision.seq, found.outcome and found.outcome.seq) for found in journal.decisions(1, 0, 10)]
        assert newest == [(3, 9), (5, 10), (7, None)]
        found = journal.find([1, 3, 4, 8, 10**12])
        assert {seq: one.outcome and one.outcome.seq for seq, one in found.items()} == {3: 9, 4: None}
        assert [entry.seq for entry in journal.history(3)] == [8, 9]
        assert journal.history(7) == []
        assert [entry.seq for entry in journal.history(3, 0, 1)] == [8]
        assert [entry.seq for entry in journal.history(3, 1)] == [9]
        assert journal.history(3, 2) == []

    def test_a_request_is_found_in_its_order_and_its_experiment_only(self, journal: Journal) -> None:
        journal.append([created("one"), created("two")])
        journal.append([decided(1, i + 1, key="k", position=i) for i in range(250)])
        assert [entry.position for entry in journal.requested([(1, "k")])[1, "k"]] == list(range(250))
        assert journal.requested([(1, "K"), (2, "k")]) == journal.requested([]) == {}

    def test_many_requests_are_found_at_once(self, journal: Journal) -> None:
        journal.append([created("one"), created("two")])
        made = [(1 + number % 2, f"naïve ☕ {number // 2}") for number in range(300)]
        journal.append([decided(pair[0], 1, key=pair[1], position=at) for pair in made for at in (1, 0)])
        unknown = [(3, "naïve ☕ 0"), (1, "naïve ☕ 150"), (2, "")]
        found = journal.requested([*unknown, *made])
        assert set(found) == set(made)
        assert all([one.position for one in entries] == [0, 1] for entries in found.values())
        assert all((one.experiment, one.request) == pair for pair, entries in found.items() for one in entries)

    def test_an_alias_is_found_in_its_order_and_its_experiment_only(self, journal: Journal) -> None:
        journal.append([created("one"), created("two")])
        names = [bytes([number]) * 16 for number in range(250)]
        journal.append([known_as(decided(1 + n % 2, n + 1), at, name) for n, name in enumerate(names) for at in (1, 0)])
        journal.append([known_as(outcome(3), 2, names[0])])
        wanted = [(1 + number % 2, name) for number, name in enumerate(names)]
        unknown = [(2, names[0]), (3, names[1]), (1, b"")]
        found = journal.aliased([*unknown, *wanted])
        first = [journal.find([seq])[seq].decision for seq in (4, 3)]
        assert found[1, names[0]] == [*first, *journal.history(3)]
        assert set(found) == set(wanted)
        assert all([one.position for one in entries[:2]] == [0, 1] for entries in found.values())
        assert journal.aliased(unknown) == journal.aliased([]) == {}

    def test_many_at_once(self, journal: Journal) -> None:
        journal.append([created("one")])
        assert journal.append([decided(1, round) for round in range(1, 1002)]) == list(range(2, 1003))
        assert list(journal.find(range(2, 1003))) == list(range(2, 1003))

    @pytest.mark.parametrize("number", [5e-324, 0.1, 1e300, 2.0**53, 0.1 + 0.2, 1 / 3, None])
    def test_numbers_survive_to_the_last_bit(self, journal: Journal, number: float | None) -> None:
        journal.append([created("one"), msgspec.structs.replace(decided(1, 1), probability=number)])
        journal.append([msgspec.structs.replace(outcome(2, value=number), old=number)])
        _, decision, told = readable(journal, 0, 3)
        assert [repr(one) for one in (decision.probability, told.value, told.old)] == [repr(number)] * 3

    def test_a_zero_may_lose_its_sign(self, journal: Journal) -> None:
        """SQLite keeps a whole number as such, so no entry may carry one (tests/test_feedback.py)."""
        journal.append([created("one"), decided(1, 1), outcome(2, value=-0.0)])
        assert journal.history(2)[0].value == 0.0

    def test_every_field_comes_back(self, journal: Journal) -> None:
        body = '{"name": "naïve café ☕ \\u0000 \U0001f600"}'.encode()
        full = Entry(
            *(2**60, EntryKind.DECIDED, 1, 2, 3, 4, 0.25, -(2**63), 9, "kéy ☕", 5, 6, 7, 8, 0.5, 0.75, body, b"\x00"),
            *(b"\x00\xff" * 8, b"\x93\x00", 2**15 - 1),
        )
        journal.append([msgspec.structs.replace(created("one"), body=body)])
        journal.append([full])
        assert readable(journal, 0, 1)[0].body == body
        assert readable(journal, 1, 1) == [full]
        assert all(getattr(full, name) is not None for name in Entry.__struct_fields__)
        assert type(readable(journal, 1, 1)[0].kind) is EntryKind

    def test_two_snapshots_are_kept_newest_first(self, journal: Journal) -> None:
        for seq in (5, 9, 7):
            journal.save(Snapshot(seq, 1, b"state %d" % seq))
        assert journal.snapshots() == [Snapshot(9, 1, b"state 9"), Snapshot(7, 1, b"state 7")]
        journal.save(Snapshot(9, 2, b"\x00again\xff"))
        assert journal.snapshots()[0] == Snapshot(9, 2, b"\x00again\xff")

    def test_many_decisions_are_found_by_their_numbers(self, journal: Journal) -> None:
        filled(journal)
        wanted = [1, 3, 4, 8, 99]
        known = [found.decision for found in journal.find(wanted).values()]
        found = journal.drawings(wanted)
        assert found.seqs.tolist() == [3, 4]
        for column, expected in zip(found, Drawings.of(known), strict=True):
            assert column.dtype == expected.dtype
            assert column.tolist() == expected.tolist()
        assert [len(column) for column in journal.drawings([99])] == [0] * len(found)

    def test_a_snapshot_can_be_dropped(self, journal: Journal) -> None:
        journal.drop_snapshot(7)
        for seq in (7, 9):
            journal.save(Snapshot(seq, 1, b"state"))
        journal.drop_snapshot(8)
        journal.drop_snapshot(9)
        assert journal.snapshots() == [Snapshot(7, 1, b"state")]
        assert journal.snapshot_seq() == 7

    def test_a_large_snapshot_comes_back_whole(self, journal: Journal) -> None:
        large = Snapshot(3, 1, secrets.token_bytes(5_000_000))
        journal.save(large)
        journal.save(Snapshot(5, 1, b""))
        assert journal.snapshots() == [Snapshot(5, 1, b""), large]
        assert journal.snapshot_seq() == 5

    def test_one_connection_at_a_time_claims_to_save_snapshots(self, journal: Journal, open_store: OpenStore) -> None:
        assert journal.claim_snapshots()
        assert journal.claim_snapshots()
        other = open_store()
        assert not other.claim_snapshots()
        other.close()

    def test_nothing_is_appended_if_the_history_is_lost(self, journal: Journal) -> None:
        journal.append([created("one")])
        journal.append([decided(1, 1), decided(1, 2)])
        tail = Tail()
        for entry in readable(journal, 0, 3):
            tail.add([entry])
        assert journal.append([decided(1, 3)], tail.mark()) == [4]
        assert journal.confirms(tail.mark())
        gone = Tail()
        gone.add([msgspec.structs.replace(readable(journal, 2, 1)[0], at=12_345)])
        assert not journal.confirms(gone.mark())
        with pytest.raises(HistoryLost):
            journal.append([decided(1, 4)], gone.mark())
        assert journal.last() == 4

    def test_the_numbers_of_a_long_history_are_not_too_large_to_be_summed(self, journal: Journal) -> None:
        tail, first = Tail(), 2**57
        entries = [decided(1, number) for number in range(100)]
        numbered = [with_seq(entry, first + number) for number, entry in enumerate([created("one"), *entries])]
        journal.fill(numbered, [], [])
        for entry in numbered:
            tail.add([entry])
        assert sum(entry.seq for entry in numbered) > 2**63
        assert journal.confirms(tail.mark())
        assert not journal.confirms(tail.mark()._replace(seqs=tail.mark().seqs - 1))

    def test_nothing_is_appended_if_an_entry_that_it_builds_on_is_lost(self, journal: Journal) -> None:
        journal.append([created("one")])
        journal.append([decided(1, 1), decided(1, 2)])
        known = tuple(map(place_of, readable(journal, 0, 3)))
        assert journal.append([decided(1, 3)], Mark(also=known)) == [4]
        wrong = [known[2]._replace(at=12_345), known[2]._replace(nonce=8), known[2]._replace(seq=9)]
        assert not any(journal.confirms(Mark(also=(*known, lost))) for lost in wrong)
        with pytest.raises(HistoryLost):
            journal.append([decided(1, 4)], Mark(also=(*known, wrong[0])))
        assert journal.last() == 4

    def test_keys_are_kept_and_revoked_once(self, journal: Journal) -> None:
        one, two = Key("b", b"\x00" * 32, "admin", None, 5), Key("a", b"\xff" * 32, "decide", "naïve", 6)
        journal.add_key(two)
        journal.add_key(one)
        assert journal.keys() == [one, two]
        assert journal.revoke_key("a", 77)
        assert not journal.revoke_key("a", 78)
        assert not journal.revoke_key("c", 79)
        assert journal.keys() == [one, two._replace(revoked_at=77)]

    def test_a_key_takes_the_place_of_another(self, journal: Journal) -> None:
        old, new = Key("a", b"1", "decide", "one", 5), Key("b", b"2", "decide", "one", 9, None, "shop", 99)
        journal.add_key(old)
        ending = old._replace(scope="expiring+decide", expires_at=60, label="not saved")
        journal.add_key(new, ending, record("rotate"))
        assert journal.keys() == [old._replace(scope="expiring+decide", expires_at=60), new]
        assert [one.what for one in journal.records(0, 10)] == ["rotate"]
        assert not journal.revoke_key("c", 77, record("revoke nothing"))
        assert journal.revoke_key("a", 77, record("revoke"))
        assert not journal.revoke_key("a", 78, record("revoke again"))
        assert [one.what for one in journal.records(0, 10)] == ["rotate", "revoke"]

    def test_the_last_use_of_a_key_only_moves_on(self, journal: Journal) -> None:
        journal.add_key(Key("a", b"1", "decide", None, 5))
        journal.add_key(Key("b", b"1", "decide", None, 6))
        known = journal.keys()
        assert [key.used_at for key in known] == [None, None]
        for uses in ({"a": 70}, {"a": 60, "b": 80, "unknown": 90}, {}):
            journal.note_uses(uses)
        known = journal.keys()
        assert [key.used_at for key in known] == [70, 80]

    def test_the_audit_trail_is_read_by_pages_and_keeps_the_newest(
        self, journal: Journal, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(journals, "MOST_CHANGES", 3)
        monkeypatch.setattr(journals, "MOST_REFUSALS", 2)
        journal.note([])
        journal.note([record("1"), record("2", is_change=False), record("3", experiment="other")])
        first = journal.records(0, 2)
        assert [one.what for one in first] == ["1", "2"]
        assert first[0] == record("1")._replace(number=first[0].number)
        assert [one.what for one in journal.records(first[-1].number, 10)] == ["3"]
        assert [one.what for one in journal.records(0, 10, "other")] == ["3"]
        journal.note([record(str(n), is_change=n % 2 > 0) for n in range(4, 12)])
        assert [one.what for one in journal.records(0, 100)] == ["7", "8", "9", "10", "11"]
        numbers = [one.number for one in journal.records(0, 100)]
        assert numbers == sorted(set(numbers))
        journal.note([record("12")])
        assert journal.records(numbers[-1], 10)[0].number > numbers[-1]

    def test_a_reader_sees_what_was_committed_and_cannot_write(self, journal: Journal) -> None:
        journal.append([created("one")])
        reader = journal.reader()
        assert reader.last() == 1
        journal.append([decided(1, 1)])
        assert [entry.seq for entry in readable(reader, 0, 10)] == [1, 2]
        with pytest.raises(StoreError):
            reader.append([decided(1, 2)])
        assert journal.last() == 2
        reader.close()

    def test_a_second_opening_sees_everything(self, journal: Journal, open_store: OpenStore) -> None:
        filled(journal)
        journal.save(Snapshot(5, 1, b"state"))
        journal.add_key(Key("a", b"digest", "admin", None, 5))
        again = open_store()
        assert readable(again, 0, 100) == readable(journal, 0, 100)
        assert again.snapshots() == journal.snapshots()
        assert again.keys() == journal.keys()
        assert again.append([decided(1, 9)]) == [12]
        assert journal.append([decided(1, 10)]) == [13]
        again.close()

    def test_entries_reads_on_from_page_to_page(self, journal: Journal, monkeypatch: pytest.MonkeyPatch) -> None:
        filled(journal)
        for page in (1, 2, 11, 12):
            monkeypatch.setattr(journals, "PAGE", page)
            readable(journal, 0, 100)
            assert [entry.seq for entry in journals.entries(journal, 2)] == list(range(3, 12))
            assert [entry.seq for entry in journals.entries(journal, 2, until=6)] == [3, 4, 5, 6]

    def test_its_size_is_told(self, journal: Journal) -> None:
        before = journal.size()
        journal.append([created(secrets.token_hex(100_000))])
        assert journal.size() >= before + 100_000 > 100_000
