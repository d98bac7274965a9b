"""The part of a journal's contract about bases, removed entries and forgotten Idempotency-Keys."""

import hashlib
import secrets

import pytest

from belated.errors import HistoryLost, StoreError
from belated.serve.domain.entries import Entry, EntryKind, with_seq
from belated.serve.domain.fold import Snapshot
from belated.serve.domain.history import Mark, place_of
from belated.serve.store.journal import Base, Conflict, Journal, Key, Removal, entries, left
from belated.testing.entries import decided, filled, outcome

LAST = 2**62


def with_base(journal: Journal, state: bytes = b"state") -> Base:
    """Put a base in force that stands for all entries so far."""
    seq = journal.last()
    journal.prepare_base(Snapshot(seq, 1, state))
    journal.append([Entry(99, EntryKind.BASE, 0, seen=seq)])
    base = journal.base()
    assert base is not None
    return base


def seqs_of(found: list[Entry]) -> list[int]:
    """The numbers of entries."""
    return [entry.seq for entry in found]


class RemovalContract:
    """Tests that every journal must pass. The fixture `journal` is an empty journal."""

    def test_a_base_comes_into_force_with_its_entry(self, journal: Journal) -> None:
        filled(journal)
        assert journal.base() is None
        journal.prepare_base(Snapshot(11, 3, b"state"))
        assert journal.base() is None
        [entry] = journal.append([Entry(99, EntryKind.BASE, 0, seen=11)])
        base = journal.base()
        assert base is not None
        assert base[:4] == (11, entry, 99, 3)
        assert (base.digest, base.is_removing) == (hashlib.sha256(b"state").digest(), False)
        assert journal.base_state(11) == b"state"
        assert journal.base_state(10) == b""
        assert [one.kind for one in entries(journal, 11, entry)] == [EntryKind.BASE]
        assert journal.check() == []

    def test_a_large_base_comes_back_whole_and_can_be_written_again(self, journal: Journal) -> None:
        filled(journal)
        large = secrets.token_bytes(3_500_000)
        journal.prepare_base(Snapshot(11, 1, b"an interrupted one" * 300_000))
        base = with_base(journal, large)
        assert journal.base_state(base.seq) == large
        assert base.digest == hashlib.sha256(large).digest()

    def test_an_empty_state_is_a_state(self, journal: Journal) -> None:
        filled(journal)
        assert with_base(journal, b"").digest == hashlib.sha256(b"").digest()

    def test_the_base_with_the_largest_number_is_in_force(self, journal: Journal) -> None:
        """Two commands may overtake each other. Entries up to the larger number may be missing."""
        filled(journal)
        journal.prepare_base(Snapshot(9, 1, b"earlier"))
        journal.prepare_base(Snapshot(11, 1, b"later"))
        journal.append([Entry(98, EntryKind.BASE, 0, seen=11), Entry(99, EntryKind.BASE, 0, seen=9)])
        base = journal.base()
        assert base is not None
        assert (base.seq, base.entry) == (11, 12)

    def test_a_removal_drops_earlier_bases_and_snapshots(self, journal: Journal) -> None:
        filled(journal)
        first = with_base(journal, b"first")
        journal.save(Snapshot(first.entry, 1, b"between"))
        second = with_base(journal, b"second" * 1_000_000)
        journal.save(Snapshot(second.entry, 1, b"after"))
        assert [one.seq for one in journal.snapshots()] == [second.entry, first.entry]
        journal.begin_removal(second)
        assert journal.base() == second._replace(is_removing=True)
        assert journal.base_state(first.seq) == b""
        assert len(journal.base_state(second.seq)) == 6_000_000
        assert [one.seq for one in journal.snapshots()] == [second.entry]
        journal.drop_snapshots(second.entry + 1)
        assert journal.snapshots() == []

    def test_nobody_reads_past_entries_that_may_be_missing(self, journal: Journal) -> None:
        filled(journal)
        base = with_base(journal)
        assert seqs_of(list(entries(journal, 5, base.entry))) == [6, 7, 8, 9, 10, 11, 12]
        journal.begin_removal(base)
        for after in (0, 5, 10):
            with pytest.raises(HistoryLost, match=r"missing|archived or erased"):
                journal.read(after, 100)
        assert seqs_of(list(entries(journal, base.seq, base.entry))) == [base.entry]
        assert seqs_of(list(left(journal, base.seq))) == list(range(1, 12))
        assert seqs_of(journal.left(3, 7, 100)) == [4, 5, 6, 7]
        assert seqs_of(journal.left(3, 7, 2)) == [4, 5]

    def test_nobody_writes_who_has_not_read_of_the_removal(self, journal: Journal) -> None:
        """Such a server may remember a decision that is gone."""
        filled(journal)
        behind = Mark(place_of(journal.left(10, 11, 1)[0]), since=11)
        base = with_base(journal)
        ahead = Mark(place_of(next(iter(entries(journal, base.seq, base.entry)))), since=base.entry)
        journal.append([decided(1, 8)], behind)
        journal.begin_removal(base)
        assert not journal.confirms(behind)
        assert journal.confirms(ahead)
        journal.append([decided(1, 9)], ahead)
        with pytest.raises(HistoryLost):
            journal.append([decided(1, 10)], behind)
        assert journal.last() == base.entry + 2

    @pytest.mark.parametrize(
        ("which", "stay"),
        [
            ({"experiments": (1,)}, [1, 2, 4, 6, 11]),
            ({"experiments": (2, 1)}, [1, 2, 11]),
            ({"experiments": ()}, [1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11]),
            ({"decisions_until": 4}, [1, 2, 5, 6, 7, 10, 11]),
            ({"decisions_until": 100}, [1, 2, 11]),
            ({"decisions": (3, 6)}, [1, 2, 4, 5, 7, 10, 11]),
            ({"decisions": (1, 8, 11, 50)}, [1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11]),
        ],
    )
    def test_decisions_go_with_their_outcomes_and_events_stay(
        self, journal: Journal, which: dict[str, tuple[int, ...]], stay: list[int]
    ) -> None:
        filled(journal)
        base = with_base(journal)
        journal.append([decided(1, 8), decided(2, 8)])
        journal.begin_removal(base)
        what = Removal(base.seq, **which)  # type: ignore[arg-type]
        assert sum(journal.remove(what)) == 11 - len(stay)
        assert seqs_of(journal.left(0, LAST, 100)) == [*stay, 12, 13, 14]
        assert sorted(journal.find(range(20))) == [seq for seq in (3, 4, 5, 6, 7, 13, 14) if seq in [*stay, 13, 14]]
        assert [one.decision.seq for one in journal.decisions(1, 0, 10)] == [s for s in (3, 5, 7) if s in stay] + [13]
        assert seqs_of(journal.outcomes(1, 0, 10)) == [seq for seq in (8, 9, 10) if seq in stay]
        assert seqs_of(journal.history(3)) == [seq for seq in (8, 9) if seq in stay]
        assert seqs_of(journal.events(1, 0, 10)) == [1, 11]
        assert journal.named(["one", "two"]) == {"one": 1, "two": 2}
        assert sum(journal.remove(what)) == 0
        assert journal.check() == []
        assert journal.last() == 14

    @pytest.mark.parametrize("which", [{"experiments": (1,)}, {"decisions_until": 7}, {"decisions": (3, 5, 7)}])
    def test_an_outcome_that_came_after_the_base_goes_with_the_next_one(
        self, journal: Journal, which: dict[str, tuple[int, ...]]
    ) -> None:
        filled(journal)
        base = with_base(journal)
        [late] = journal.append([outcome(7)])
        journal.begin_removal(base)
        sum(journal.remove(Removal(base.seq, **which)))  # type: ignore[arg-type]
        assert seqs_of(journal.outcomes(1, 0, 10)) == seqs_of(journal.history(7)) == [late]
        with pytest.raises(Conflict):
            journal.append([outcome(7)])
        again = with_base(journal)
        journal.begin_removal(again)
        assert sum(journal.remove(Removal(again.seq, **which))) == 1  # type: ignore[arg-type]
        assert journal.outcomes(1, 0, 10) == []
        assert journal.check() == []

    def test_many_decisions_go_in_small_steps(self, journal: Journal) -> None:
        filled(journal)
        journal.append([decided(1, round) for round in range(10, 1600)])
        journal.append([outcome(decision) for decision in range(12, 1600)])
        base = with_base(journal)
        journal.begin_removal(base)
        steps = list(journal.remove(Removal(base.seq, decisions_until=1_000)))
        assert sum(steps) == 5 + 3 + 2 * 989
        assert len(journal.decisions(1, 0, LAST)) == len(journal.decisions(1, 1000, LAST)) == 601
        steps += journal.remove(Removal(base.seq, experiments=(1,)))
        assert journal.decisions(1, 0, 10) == []
        assert journal.outcomes(1, 0, 10) == []
        assert sum(steps) == base.seq - 3

    def test_a_removed_request_can_be_made_again(self, journal: Journal) -> None:
        filled(journal)
        journal.append([decided(1, 8, key="k", position=0)])
        base = with_base(journal)
        journal.begin_removal(base)
        sum(journal.remove(Removal(base.seq, decisions=(12,))))
        assert journal.requested([(1, "k")]) == {}
        [again] = journal.append([decided(1, 9, key="k", position=0)])
        assert seqs_of(journal.requested([(1, "k")])[1, "k"]) == [again]

    def test_requests_are_forgotten_up_to_a_number(self, journal: Journal) -> None:
        filled(journal)
        made = [decided(1, 10 + number, key=f"k{number}", position=0) for number in range(5)]
        journal.append(made)
        before = journal.left(0, LAST, 100)
        assert sum(journal.forget_requests(13)) == 2
        assert sum(journal.forget_requests(13)) == 0
        assert set(journal.requested([(1, f"k{number}") for number in range(5)])) == {(1, f"k{n}") for n in (2, 3, 4)}
        with pytest.raises(Conflict):
            journal.append([made[2]])
        [again] = journal.append(made[:1])
        assert sum(journal.forget_requests(14)) == 1
        assert seqs_of(journal.requested([(1, "k0")])[1, "k0"]) == [again]
        assert seqs_of(before) == seqs_of(journal.left(0, 16, 100))
        assert journal.check() == []

    def test_no_request_is_forgotten_after_an_entry_that_is_young(self, journal: Journal) -> None:
        """Dates may be wrong, and entries are written in the order of their numbers."""
        filled(journal)
        dates = {"old": 10, "ahead": 100, "old too": 11, "young": 50, "behind": 2}
        made = [decided(1, 10 + at, at=at, key=key, position=0) for key, at in dates.items()]
        seqs = journal.append(made)
        for _ in range(2):
            sum(journal.forget_requests(seqs[-1], before=20, now=60))
            assert set(journal.requested([(1, key) for key in dates])) == {(1, "ahead"), (1, "young"), (1, "behind")}
        assert sum(journal.forget_requests(seqs[-1], before=55, now=60)) == 2
        assert set(journal.requested([(1, key) for key in dates])) == {(1, "ahead")}

    def test_a_base_is_copied(self, journal: Journal) -> None:
        state, key = b"state" * 400_000, Key("a", b"digest", "admin", None, 5)
        base = Base(11, 12, 99, 3, "1.2.3", hashlib.sha256(state).digest(), is_removing=True)
        rows = [decided(1, 1), Entry(99, EntryKind.BASE, 12, seen=11), decided(1, 2)]
        numbered = [with_seq(entry, seq) for entry, seq in zip(rows, (7, 12, 13), strict=True)]
        journal.fill(numbered, [Snapshot(13, 3, b"newer")], [key], (base, state))
        copied = journal.base()
        assert copied is not None
        assert copied[:4] == base[:4]
        assert copied.is_removing
        assert journal.base_state(11) == state
        assert seqs_of(list(left(journal, 11))) == [7]
        assert seqs_of(list(entries(journal, 11, 13))) == [12, 13]
        assert journal.append([decided(1, 3)]) == [14]

    def test_what_was_removed_can_be_overwritten(self, journal: Journal) -> None:
        filled(journal)
        base = with_base(journal)
        journal.begin_removal(base)
        sum(journal.remove(Removal(base.seq, experiments=(1,))))
        journal.scrub()
        assert seqs_of(journal.left(0, LAST, 100)) == [1, 2, 4, 6, 11, 12]

    def test_nothing_is_removed_unless_the_base_is_in_force(self, journal: Journal) -> None:
        """A failover may lose the entry of a base while a command removes. Then all entries are needed again."""
        filled(journal)
        base = with_base(journal)
        for which in ({"experiments": (1,)}, {"decisions_until": 9}, {"decisions": (3, 4)}):
            with pytest.raises(HistoryLost):
                sum(journal.remove(Removal(base.seq, **which)))
        journal.begin_removal(base)
        with pytest.raises(HistoryLost):
            sum(journal.remove(Removal(base.seq - 1, experiments=(1,))))
        for lost in (base._replace(entry=99), base._replace(entry=11), base._replace(seq=10)):
            with pytest.raises(HistoryLost):
                journal.begin_removal(lost)
        assert len(journal.left(0, LAST, 100)) == 12
        assert journal.base() == base._replace(is_removing=True)

    def test_no_entry_names_a_base_that_is_lost(self, journal: Journal) -> None:
        """A failover may lose it between the two writes."""
        filled(journal)
        journal.prepare_base(Snapshot(11, 1, b"state"))
        assert journal.confirms(Mark(base=11))
        assert not journal.confirms(Mark(base=10))
        journal.append([Entry(99, EntryKind.BASE, 0, seen=11)], Mark(base=11))
        with pytest.raises(HistoryLost):
            journal.append([Entry(99, EntryKind.BASE, 0, seen=10)], Mark(base=10))
        assert journal.last() == 12

    def test_a_reader_cannot_remove(self, journal: Journal) -> None:
        filled(journal)
        base = with_base(journal)
        journal.begin_removal(base)
        reader = journal.reader()
        with pytest.raises(StoreError):
            sum(reader.remove(Removal(base.seq, experiments=(1,))))
        reader.close()
        assert len(journal.left(0, LAST, 100)) == 12
