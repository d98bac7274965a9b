"""What the SQL journals share: statements, and entries as rows. Parameters are written $1, $2, ..."""

import hashlib
from abc import abstractmethod
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from itertools import islice
from typing import Any, Final

from belated import __version__
from belated.errors import StoreError
from belated.serve.domain.entries import COLUMNS, Entry, EntryKind, Found
from belated.serve.domain.fold import Snapshot
from belated.serve.domain.history import LOW_BITS, Mark
from belated.serve.store.bases import (
    IN_FORCE_INDEX,
    NOT_BEHIND,
    PART,
    REMOVED,
    STATE,
    Statement,
    beginning,
    check_allowed,
    complete,
    forgetting,
    in_force,
    removing,
)
from belated.serve.store.bases import saving as saving_base
from belated.serve.store.journal import LATEST, MOST_OUTCOMES, Aliased, Base, Journal, Key, Record, Removal, Requested
from belated.serve.store.trail import (
    KEY_COLUMNS,
    RECORDS,
    adding_key,
    forgetting_keys,
    noting,
    noting_uses,
    revoking_key,
)

CREATED: Final = int(EntryKind.CREATED)
DECIDED: Final = int(EntryKind.DECIDED)
KEPT_SNAPSHOTS: Final = 2
INDEXES: Final = f"""
CREATE UNIQUE INDEX one_effect ON journal (experiment, request, position) WHERE request IS NOT NULL;
CREATE UNIQUE INDEX one_outcome ON journal (decision, revision) WHERE decision IS NOT NULL;
CREATE INDEX decisions ON journal (experiment, seq) WHERE kind = {DECIDED};
CREATE INDEX events ON journal (experiment, seq) WHERE body IS NOT NULL;
"""
ONE_EVENT: Final = """
CREATE UNIQUE INDEX one_event ON journal (experiment, revision) WHERE body IS NOT NULL AND revision IS NOT NULL;
"""
ONE_ALIAS: Final = """
CREATE UNIQUE INDEX one_alias ON journal (experiment, alias, position) WHERE alias IS NOT NULL;
"""
READING_INDEXES: Final = {
    "outcomes": "ON journal (experiment, seq) WHERE decision IS NOT NULL",
    "in_force": IN_FORCE_INDEX,
}
"""Indexes that only make reading faster. A store without them works, so they need no version of the schema."""
# Statements name their columns, because a newer release may have added some to a store in use.
ENTRY: Final = f"SELECT {', '.join(COLUMNS)} FROM journal"  # noqa: S608
LEFT: Final = "seq > $1 AND seq <= $2 ORDER BY seq LIMIT $3"
NEXT_ENTRY: Final = f"SELECT {', '.join(COLUMNS)}, {REMOVED} FROM journal"  # noqa: S608  # for `entries_after`
BOTH: Final = ", ".join(f"{table}.{name}" for table in "do" for name in COLUMNS)  # a decision and its outcome
FOUND: Final = f"SELECT {BOTH} FROM journal d LEFT JOIN"  # noqa: S608
SAVE_PART: Final = """
INSERT INTO snapshot_parts (seq, number, state) VALUES ($1, $2, $3)
ON CONFLICT (seq, number) DO UPDATE SET state = excluded.state
"""
# the snapshot counts once its last part is there
SAVE: Final = """
INSERT INTO saved_snapshots (seq, version, parts) VALUES ($1, $2, $3)
ON CONFLICT (seq) DO UPDATE SET version = excluded.version, parts = excluded.parts
"""
_OLDEST: Final = (
    f"SELECT min(seq) FROM (SELECT seq FROM saved_snapshots ORDER BY seq DESC LIMIT {KEPT_SNAPSHOTS}) AS kept"  # noqa: S608
)
PRUNE: Final = tuple(f"DELETE FROM {table} WHERE seq < ({_OLDEST})" for table in ("saved_snapshots", "snapshot_parts"))  # noqa: S608
DROP_SNAPSHOT: Final = tuple(
    f"DELETE FROM {table} WHERE seq = $1"  # noqa: S608
    for table in ("saved_snapshots", "snapshot_parts")
)
SAVED: Final = "SELECT seq, version, parts FROM saved_snapshots ORDER BY seq DESC"
DROP_SNAPSHOTS: Final = tuple(
    f"DELETE FROM {table} WHERE seq < $1"  # noqa: S608
    for table in ("saved_snapshots", "snapshot_parts")
)
PARTS: Final = "SELECT state FROM snapshot_parts WHERE seq = $1 AND number < $2 ORDER BY number"
DIGEST: Final = "SELECT state FROM snapshot_parts WHERE seq = $1 AND number = $2"  # SHA-256, behind the last part
NEWEST_SAVED: Final = "SELECT coalesce(max(seq), 0) FROM saved_snapshots"
# is 0 if the store is empty
HELD: Final = "SELECT (SELECT count(*) FROM (SELECT 1 FROM journal LIMIT 1) AS one) + (SELECT count(*) FROM keys)"
KINDS: Final = {int(kind): kind for kind in EntryKind}  # a look-up is ten times faster than EntryKind(number)


def entry_of(row: Sequence[Any]) -> Entry:
    """Return the entry in a row that has all columns in order."""
    try:
        return Entry(row[0], KINDS[row[1]], *row[2:])
    except KeyError:
        raise StoreError(
            f"entry {row[3]} has the kind {row[1]}, which this release does not know. Use a newer release."
        ) from None


def entries_after(after: int, rows: Sequence[Sequence[Any]]) -> list[Entry]:
    """Return the entries in rows of NEXT_ENTRY. Raises HistoryLost if some of them may be missing."""
    return [entry_of(row[:-1]) for row in complete(rows, after)]


def found_of(row: Sequence[Any]) -> Found:
    """Return the decision and outcome in a row."""
    half = len(COLUMNS)
    return Found(entry_of(row[:half]), None if row[half] is None else entry_of(row[half:]))


def saving(snapshot: Snapshot) -> Iterator[list[tuple[str, tuple[Any, ...]]]]:
    """Yield the statements that save a snapshot and drop old ones, as a list for each transaction."""
    state = memoryview(snapshot.state)
    starts = range(0, len(state), PART)
    parts = ((SAVE_PART, (snapshot.seq, n, bytes(state[at : at + PART]))) for n, at in enumerate(starts))
    for part in islice(parts, max(0, len(starts) - 1)):
        yield [part]
    digest = SAVE_PART, (snapshot.seq, len(starts), hashlib.sha256(state).digest())
    yield [*parts, digest, (SAVE, (snapshot.seq, snapshot.version, len(starts))), *((sql, ()) for sql in PRUNE)]


def loaded(rows: Callable[[str, Sequence[Any]], list[Any]]) -> list[Snapshot]:
    """Return the saved snapshots, newest first. `rows` runs a statement.

    One without all its parts has no state, and neither has a damaged one. Those of older releases have no digest.
    """
    found = []
    for seq, version, n_parts in rows(SAVED, ()):
        parts = [row[0] for row in rows(PARTS, (seq, n_parts))]
        state = b"".join(parts) if len(parts) == n_parts else b""
        digests = [bytes(row[0]) for row in rows(DIGEST, (seq, n_parts))]
        is_sound = digests in ([], [hashlib.sha256(state).digest()])
        found.append(Snapshot(seq, version, state if is_sound else b""))
    return found


def is_held(first: int = 1) -> str:
    """Return the condition that a mark holds. Its arguments are those of `held`, numbered from `first` on."""
    n_after, seqs, times, since, newest, at, nonce, witness, witness_at, witness_nonce, base = range(first, first + 11)
    entry = "EXISTS (SELECT 1 FROM journal WHERE seq = ${} AND at = ${} AND coalesce(nonce, -1) = ${})"
    return f"""
    (SELECT count(*) = ${n_after} AND coalesce(sum(seq & {LOW_BITS}), 0) = ${seqs}
        AND coalesce(sum(at & {LOW_BITS}), 0) = ${times}
     FROM journal WHERE seq > ${since} AND seq <= ${newest})
    AND (${newest} = 0 OR ({entry.format(newest, at, nonce)} AND {NOT_BEHIND.format(f"${newest}")}))
    AND (${witness} = 0 OR {entry.format(witness, witness_at, witness_nonce)})
    AND (${base} = 0 OR EXISTS (SELECT 1 FROM bases WHERE seq = ${base}))
    """  # noqa: S608


KEPT: Final = "SELECT EXISTS (SELECT 1 FROM journal WHERE seq = $1 AND at = $2 AND coalesce(nonce, -1) = $3)"


def held(mark: Mark) -> tuple[int, ...]:
    """Return the arguments of `is_held`."""
    return mark.n_after, mark.seqs, mark.times, mark.since, *mark.newest, *mark.witness, mark.base


def by_request(rows: Iterable[Sequence[Any]]) -> dict[Requested, list[Entry]]:
    """Gather rows by the request that they were made for."""
    found: dict[Requested, list[Entry]] = {}
    for entry in map(entry_of, rows):
        found.setdefault((entry.experiment, entry.request or ""), []).append(entry)
    return found


def by_alias(rows: Iterable[Sequence[Any]]) -> dict[Aliased, list[Entry]]:
    """Gather rows by their alias."""
    found: dict[Aliased, list[Entry]] = {}
    for entry in map(entry_of, rows):
        found.setdefault((entry.experiment, entry.alias or b""), []).append(entry)
    return found


class SQLJournal(Journal):
    """The reading half of a journal in an SQL database. A store says how to run a statement."""

    joined: str  # FOUND, joined with the newest outcome o of the decision d
    turns: tuple[Statement, ...] = ()  # what a store needs for `_turn`
    page = "{0}experiment = $1 AND {0}seq > $2 ORDER BY {0}seq LIMIT $3"  # where {0} names the table

    @abstractmethod
    def _rows(self, sql: str, values: Sequence[Any] = ()) -> list[Any]:
        """Run a statement that reads. Raises StoreError."""

    def _rows_at_once(self, sql: str, values: Sequence[Any] = ()) -> list[Any]:
        """The same, but raise Busy if it would have to wait for somebody else. Only the journal is worth a wait."""
        return self._rows(sql, values)

    def _entries(self, where: str, *values: Any) -> list[Entry]:
        return list(map(entry_of, self._rows(f"{ENTRY} WHERE {where}", values)))

    @abstractmethod
    def _commit(self, statements: Sequence[Statement]) -> list[int]:
        """Run statements in one transaction. Returns how many rows each has changed. Raises StoreError."""

    def _commit_at_once(self, statements: Sequence[Statement]) -> list[int]:
        """The same, but raise Busy if it would have to wait for somebody else."""
        return self._commit(statements)

    def left(self, after: int, until: int, limit: int) -> list[Entry]:
        return self._entries(LEFT, after, until, limit)

    def prepare_base(self, state: Snapshot) -> None:
        for statements in saving_base(state, __version__):
            self._commit(statements)

    def base(self) -> Base | None:
        return in_force(self._rows)

    def base_state(self, seq: int) -> bytes:
        return b"".join(row[0] for row in self._rows(STATE, (seq,)))

    def begin_removal(self, base: Base) -> None:
        for number, statements in enumerate(beginning(base, self._rows)):
            changed = self._commit(statements)
            if number == 0:
                check_allowed(changed[0], base.seq)
        self.drop_snapshots(base.entry)

    def remove(self, what: Removal) -> Iterator[int]:
        for statements in removing(what, self._rows):
            allowed, *removed = self._commit(statements)
            check_allowed(allowed, what.until)
            yield sum(removed)

    def forget_requests(self, until: int, before: int = LATEST, now: int = LATEST) -> Iterator[int]:
        for statements in forgetting(until, before, now, self._rows_at_once):
            yield self._commit_at_once(statements)[0]

    def confirms(self, mark: Mark) -> bool:
        is_kept = bool(self._rows(f"SELECT {is_held()}", held(mark))[0][0])
        return is_kept and all(self._rows(KEPT, place)[0][0] for place in mark.also)

    def last(self) -> int:
        return int(self._rows("SELECT coalesce(max(seq), 0) FROM journal")[0][0])

    def decisions(self, experiment: int, after: int, limit: int) -> list[Found]:
        where = f"WHERE d.kind = {DECIDED} AND {self.page.format('d.')}"
        return list(map(found_of, self._rows(f"{self.joined} {where}", (experiment, after, limit))))

    def outcomes(self, experiment: int, after: int, limit: int) -> list[Entry]:
        return self._entries(f"decision IS NOT NULL AND {self.page.format('')}", experiment, after, limit)

    def history(self, decision: int, first: int = 0, limit: int = MOST_OUTCOMES) -> list[Entry]:
        return self._entries("decision = $1 AND revision >= $2 ORDER BY revision LIMIT $3", decision, first, limit)

    def events(self, experiment: int, after: int, limit: int) -> list[Entry]:
        return self._entries(f"body IS NOT NULL AND {self.page.format('')}", experiment, after, limit)

    def keys(self) -> list[Key]:
        return [Key(*row) for row in self._rows_at_once(f"SELECT {KEY_COLUMNS} FROM keys ORDER BY created_at, id")]  # noqa: S608

    def add_key(self, key: Key, replaced: Key | None = None, record: Record | None = None) -> None:
        added = adding_key(key, replaced, record)
        self._commit_at_once([*self._turn(record), *added, *forgetting_keys(key.created_at)])

    def revoke_key(self, id: str, at: int, record: Record | None = None) -> bool:
        return self._commit_at_once([*self._turn(record), *revoking_key(id, at, record)])[-1] > 0

    def note_uses(self, uses: Mapping[str, int]) -> None:
        self._commit_at_once(noting_uses(uses))

    def note(self, records: Sequence[Record]) -> None:
        if records:
            self._commit_at_once([*self._turn(records[0]), *noting(records)])

    def records(self, after: int, limit: int, experiment: str | None = None) -> list[Record]:
        if experiment is None:
            rows = self._rows_at_once(f"{RECORDS} ORDER BY number LIMIT $2", (after, limit))
        else:
            where = f"{RECORDS} AND experiment = $2 ORDER BY number LIMIT $3"
            rows = self._rows_at_once(where, (after, experiment, limit))
        return [Record(row[0], bool(row[1]), *row[2:]) for row in rows]

    def _turn(self, record: Record | None) -> list[Statement]:
        """Return what makes writers of the audit trail take turns, so that its numbers are in the order of commits."""
        return [] if record is None else list(self.turns)
