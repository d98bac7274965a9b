"""What the SQL journals share: statements, and entries as rows. Parameters are written $1, $2, ..."""

from abc import abstractmethod
from collections.abc import Sequence
from typing import Any, Final

from belated.errors import StoreError
from belated.serve.domain.entries import COLUMNS, Entry, EntryKind, Found
from belated.serve.domain.fold import Snapshot
from belated.serve.store.journal import Journal, Key

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
ENTRY: Final = f"SELECT {', '.join(COLUMNS)} FROM journal"  # noqa: S608
FOUND: Final = (
    f"SELECT {', '.join(f'd.{name}' for name in COLUMNS)}, {', '.join(f'o.{name}' for name in COLUMNS)} "  # noqa: S608
    "FROM journal d LEFT JOIN"
)
_SAVE: Final = """
INSERT INTO snapshots VALUES ($1, $2, $3)
ON CONFLICT (seq) DO UPDATE SET version = excluded.version, state = excluded.state
"""
_PRUNE: Final = """
DELETE FROM snapshots WHERE seq < (SELECT min(seq) FROM (SELECT seq FROM snapshots ORDER BY seq DESC LIMIT $1) AS kept)
"""
ADD_KEY: Final = "INSERT INTO keys VALUES ($1, $2, $3, $4, $5, $6)"
REVOKE_KEY: Final = "UPDATE keys SET revoked_at = $1 WHERE id = $2 AND revoked_at IS NULL RETURNING id"
HELD: Final = (
    "SELECT (SELECT count(*) FROM (SELECT 1 FROM journal LIMIT 1) AS one) + (SELECT count(*) FROM snapshots)"
    " + (SELECT count(*) FROM keys)"
)  # is 0 if the store is empty
KINDS: Final = {int(kind): kind for kind in EntryKind}  # a look-up is ten times faster than EntryKind(number)


def entry_of(row: Sequence[Any]) -> Entry:
    """Return the entry in a row that has all columns in order."""
    try:
        return Entry(row[0], KINDS[row[1]], *row[2:])
    except KeyError:
        raise StoreError(
            f"entry {row[3]} has the kind {row[1]}, which this release does not know. Use a newer release."
        ) from None


def found_of(row: Sequence[Any]) -> Found:
    """Return the decision and outcome in a row."""
    half = len(COLUMNS)
    return Found(entry_of(row[:half]), None if row[half] is None else entry_of(row[half:]))


def saving(snapshot: Snapshot) -> list[tuple[str, tuple[Any, ...]]]:
    """Return the statements that save a snapshot and drop old ones."""
    return [(_SAVE, snapshot), (_PRUNE, (KEPT_SNAPSHOTS,))]


class SQLJournal(Journal):
    """The reading half of a journal in an SQL database. A store says how to run a statement."""

    joined: str  # FOUND, joined with the newest outcome o of the decision d

    @abstractmethod
    def _rows(self, sql: str, values: Sequence[Any] = ()) -> list[Any]:
        """Run a statement that reads. Raises StoreError."""

    def _entries(self, where: str, *values: Any) -> list[Entry]:
        return list(map(entry_of, self._rows(f"{ENTRY} WHERE {where}", values)))

    def last(self) -> int:
        return int(self._rows("SELECT coalesce(max(seq), 0) FROM journal")[0][0])

    def requested(self, experiment: int, request: str) -> list[Entry]:
        return self._entries("experiment = $1 AND request = $2 ORDER BY position", experiment, request)

    def decisions(self, experiment: int, after: int, limit: int) -> list[Found]:
        where = f"WHERE d.experiment = $1 AND d.seq > $2 AND d.kind = {DECIDED} ORDER BY d.seq LIMIT $3"
        return list(map(found_of, self._rows(f"{self.joined} {where}", (experiment, after, limit))))

    def outcomes(self, experiment: int, after: int, limit: int) -> list[Entry]:
        where = "experiment = $1 AND seq > $2 AND decision IS NOT NULL ORDER BY seq LIMIT $3"
        return self._entries(where, experiment, after, limit)

    def history(self, decision: int) -> list[Entry]:
        return self._entries("decision = $1 ORDER BY revision", decision)

    def events(self, experiment: int, after: int, limit: int) -> list[Entry]:
        where = "experiment = $1 AND seq > $2 AND body IS NOT NULL ORDER BY seq LIMIT $3"
        return self._entries(where, experiment, after, limit)

    def snapshots(self) -> list[Snapshot]:
        return [Snapshot(*row) for row in self._rows("SELECT seq, version, state FROM snapshots ORDER BY seq DESC")]

    def keys(self) -> list[Key]:
        columns = ", ".join(Key._fields)
        return [Key(*row) for row in self._rows(f"SELECT {columns} FROM keys ORDER BY created_at, id")]  # noqa: S608
