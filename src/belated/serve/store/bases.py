"""Statements for bases, for the removal of entries, and for Idempotency-Keys whose time is over.

A base is a state in the store's own tables. Its parts are written first. It comes into force with its entry, so an
interrupted one counts for nothing. `removed_by` is the number of that entry, and is set before the first removal.
"""

import hashlib
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any, Final

from belated.errors import HistoryLost, StoreError
from belated.serve.domain.entries import Entry, EntryKind
from belated.serve.domain.fold import Snapshot
from belated.serve.store.journal import Base, Removal

Statement = tuple[str, Sequence[Any]]
Rows = Callable[[str, Sequence[Any]], list[Any]]
BASE: Final = int(EntryKind.BASE)
DECIDED: Final = int(EntryKind.DECIDED)
PART: Final = 1 << 20  # bytes of a state in one row, so that no transaction takes long
AT_ONCE: Final = 500  # decisions that are removed together with their outcomes
MOST_ROWS: Final = 5_000  # entries that are removed together, unless a single decision has more
FORGOTTEN_AT_ONCE: Final = 200  # entries that are looked at
IN_FORCE_INDEX: Final = f"ON journal (seen) WHERE kind = {BASE}"
REMOVED: Final = "(SELECT coalesce(max(seq), 0) FROM bases WHERE removed_by IS NOT NULL)"
NOT_BEHIND: Final = "(SELECT coalesce(max(removed_by), 0) FROM bases) <= {}"
IN_FORCE: Final = f"""
SELECT e.seen, e.seq, e.at, b.version, b.release, b.digest, b.removed_by FROM journal e
LEFT JOIN bases b ON b.seq = e.seen
WHERE e.kind = {BASE} AND e.seen = (SELECT max(seen) FROM journal WHERE kind = {BASE}) ORDER BY e.seq LIMIT 1
"""  # noqa: S608
STATE: Final = """
SELECT p.state FROM base_parts p JOIN bases b ON b.seq = p.seq WHERE p.seq = $1 AND p.number < b.parts ORDER BY p.number
"""
SAVE_PART: Final = """
INSERT INTO base_parts (seq, number, state) VALUES ($1, $2, $3)
ON CONFLICT (seq, number) DO UPDATE SET state = excluded.state
"""
# the base counts once its last part is there
SAVE: Final = """
INSERT INTO bases (seq, version, release, digest, parts) VALUES ($1, $2, $3, $4, $5)
ON CONFLICT (seq) DO UPDATE SET version = excluded.version, release = excluded.release, digest = excluded.digest,
    parts = excluded.parts
"""
# Only if the base is in force. A failover may have lost its entry since it was read.
BEGIN: Final = f"""
UPDATE bases SET removed_by = $1
WHERE seq = $2 AND EXISTS (SELECT 1 FROM journal e WHERE e.seq = $1 AND e.kind = {BASE} AND e.seen = $2)
"""  # noqa: S608
IS_ALLOWED: Final = f"""EXISTS (
    SELECT 1 FROM bases b JOIN journal e ON e.seq = b.removed_by AND e.kind = {BASE} AND e.seen = b.seq WHERE b.seq = $1
)"""  # noqa: S608
# the first statement of a removal. It changes a row if the removal is allowed, which holds until the commit
ALLOW: Final = f"UPDATE bases SET parts = parts WHERE seq = $1 AND {IS_ALLOWED}"  # noqa: S608
OLD_PARTS: Final = "SELECT seq, number FROM base_parts WHERE seq < $1"
DROP_PART: Final = "DELETE FROM base_parts WHERE seq = $1 AND number = $2"
DROP: Final = "DELETE FROM bases WHERE seq < $1"
FORGOTTEN: Final = "SELECT until FROM forgotten"
FORGET: Final = (
    "UPDATE journal SET request = NULL, position = NULL WHERE seq > $1 AND seq <= $2 AND request IS NOT NULL"
)
NOTE_FORGOTTEN: Final = "UPDATE forgotten SET until = $1 WHERE until < $1"
NEXT: Final = (
    "SELECT max(seq) FROM (SELECT seq FROM journal WHERE seq > $1 AND seq <= $2 ORDER BY seq LIMIT $3) AS page"
)


def complete(rows: Sequence[Sequence[Any]], after: int) -> Sequence[Sequence[Any]]:
    """Return the rows of a page, whose last column is REMOVED. Raises HistoryLost if some may be missing."""
    if rows and rows[0][-1] > after:
        raise HistoryLost(
            f"entries up to {rows[0][-1]} are being archived or erased, but this server has only read up to entry "
            f"{after}. Restart it."
        )
    return rows


def saving(state: Snapshot, release: str, removed_by: int | None = None) -> Iterator[list[Statement]]:
    """Yield the statements that save a base, as a list for each transaction."""
    whole = memoryview(state.state)
    starts = range(0, len(whole), PART)
    for number, start in enumerate(starts):
        yield [(SAVE_PART, (state.seq, number, bytes(whole[start : start + PART])))]
    digest = hashlib.sha256(state.state).digest()
    end: list[Statement] = [(SAVE, (state.seq, state.version, release, digest, len(starts)))]
    yield end if removed_by is None else [*end, (BEGIN, (removed_by, state.seq))]


def copied(base: tuple[Base, bytes] | None) -> Iterator[Statement]:
    """Yield the statements that copy a base, if there is one, into an empty store. Entries may be missing there."""
    if base is not None:
        what, state = base
        for statements in saving(Snapshot(what.seq, what.version, state), what.release, what.entry):
            yield from statements


def in_force(rows: Rows) -> Base | None:
    """Return the base in force."""
    for seq, entry, at, version, release, digest, removed_by in rows(IN_FORCE, ()):
        if version is None:
            raise StoreError(
                f"entry {entry} says that the state after entry {seq} is in the store, but it is missing. "
                "Restore a backup, as docs/deployment.md says."
            )
        return Base(seq, entry, at, version, release, bytes(digest), removed_by is not None)
    return None


def beginning(base: Base, rows: Rows) -> Iterator[list[Statement]]:
    """Yield the statements that begin a removal and drop earlier bases, as a list for each transaction."""
    yield [(BEGIN, (base.entry, base.seq))]
    for part in rows(OLD_PARTS, (base.seq,)):
        yield [(DROP_PART, part)]
    yield [(DROP, (base.seq,))]


def removing(what: Removal, rows: Rows) -> Iterator[list[Statement]]:
    """Yield the statements that remove entries, as a list for each transaction."""
    for start in range(0, len(what.decisions), AT_ONCE):
        for piece in _pieces(what.decisions[start : start + AT_ONCE], rows):
            yield _together(piece, what.until)
    if what.experiments is not None:
        for number in what.experiments:  # only an index gives this order
            yield from _removing(f"experiment = {number:d} AND ", "experiment, ", what.until, what.until, rows)
    elif what.decisions_until:
        yield from _removing("", "", min(what.until, what.decisions_until), what.until, rows)


def _removing(where: str, order: str, last: int, until: int, rows: Rows) -> Iterator[list[Statement]]:
    """Remove decisions up to `last` with their outcomes, and then outcomes whose decision went before them."""
    made = (
        f"SELECT seq FROM journal WHERE {where}kind = {DECIDED} AND seq > $1 AND seq <= $2 "  # noqa: S608
        f"ORDER BY {order}seq LIMIT {AT_ONCE}"
    )
    after = 0
    while page := [row[0] for row in rows(made, (after, last))]:
        for piece in _pieces(page, rows):
            yield _together(piece, until)
        after = page[-1]
    told = (
        f"SELECT seq FROM journal WHERE {where}decision IS NOT NULL AND decision <= $1 AND seq <= $2 "  # noqa: S608
        f"ORDER BY {f'{order}seq' if order else 'decision'} LIMIT {AT_ONCE}"
    )
    while page := [row[0] for row in rows(told, (last, until))]:
        yield _allowed([f"seq IN ({_listed(page)})"], until)


def _pieces(decisions: Sequence[int], rows: Rows) -> Iterator[list[int]]:
    """Split decisions, so that no transaction takes long where each has many outcomes."""
    counted = f"SELECT decision, count(*) FROM journal WHERE decision IN ({_listed(decisions)}) GROUP BY decision"  # noqa: S608
    told, piece, size = dict(rows(counted, ())), list[int](), 0
    for decision in decisions:
        more = 1 + told.get(decision, 0)
        if piece and size + more > MOST_ROWS:
            yield piece
            piece, size = [], 0
        piece.append(decision)
        size += more
    yield piece


def _together(decisions: Iterable[int], until: int) -> list[Statement]:
    """Return the statements that remove decisions with their outcomes."""
    listed = _listed(decisions)
    return _allowed([f"seq IN ({listed}) AND kind = {DECIDED}", f"decision IN ({listed})"], until)


def _allowed(which: Iterable[str], until: int) -> list[Statement]:
    """Return the statements that remove entries up to a base, if the base is still in force."""
    delete = f"DELETE FROM journal WHERE seq <= $1 AND {IS_ALLOWED} AND"  # noqa: S608
    return [(ALLOW, (until,)), *((f"{delete} {where}", (until,)) for where in which)]


def check_allowed(changed: int, until: int) -> None:
    """Raise HistoryLost if the first statement of a removal has changed nothing, so that nothing was removed."""
    if not changed:
        raise HistoryLost(
            f"the state after entry {until} is not in force, so nothing may be removed. Was there a failover, or a "
            "backup restored? Run the command again."
        )


def _listed(numbers: Iterable[int]) -> str:
    return ", ".join(f"{number:d}" for number in numbers)


def forgetting(until: int, rows: Rows) -> Iterator[list[Statement]]:
    """Yield the statements that forget Idempotency-Keys, as a list for each transaction."""
    after = rows(FORGOTTEN, ())[0][0]
    while (end := rows(NEXT, (after, until, FORGOTTEN_AT_ONCE))[0][0]) is not None:
        yield [(FORGET, (after, end)), (NOTE_FORGOTTEN, (end,))]
        after = end


def is_removed_by(what: Removal, entry: Entry) -> bool:
    """Whether a removal takes this entry, if its decision goes too."""
    if entry.seq > what.until:
        return False
    decision = entry.seq if entry.kind is EntryKind.DECIDED else entry.decision
    if decision is None:
        return False
    if what.experiments is not None:
        return entry.experiment in what.experiments
    return decision <= what.decisions_until or decision in what.decisions
