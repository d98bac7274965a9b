"""Statements for keys and for the audit trail, which both SQL stores run."""

from collections.abc import Mapping, Sequence
from typing import Any, Final

from belated.serve.store import journal
from belated.serve.store.bases import Statement
from belated.serve.store.journal import Key, Record

KEY_COLUMNS: Final = ", ".join(Key._fields)
ADD_KEY: Final = f"INSERT INTO keys ({KEY_COLUMNS}) VALUES ({', '.join(f'${n + 1}' for n in range(len(Key._fields)))})"  # noqa: S608
END_KEY: Final = "UPDATE keys SET scope = $1, expires_at = $2 WHERE id = $3"
REVOKE_KEY: Final = "UPDATE keys SET revoked_at = $1 WHERE id = $2 AND revoked_at IS NULL"
# those that ended first, beyond a number of others. SQLite takes no offset without a limit
FORGET_KEYS: Final = """
DELETE FROM keys WHERE id IN (
    SELECT id FROM keys WHERE revoked_at IS NOT NULL OR expires_at <= $1
    ORDER BY coalesce(revoked_at, expires_at) DESC, id LIMIT 1000000000 OFFSET $2
)
"""
IS_VALID: Final = "EXISTS (SELECT 1 FROM keys WHERE id = ${} AND revoked_at IS NULL)"
NOTE_USE: Final = "UPDATE keys SET used_at = $1 WHERE id = $2 AND coalesce(used_at, 0) < $1"
RECORD: Final = Record._fields[1:]
NOTE: Final = f"INSERT INTO audit ({', '.join(RECORD)}) SELECT {', '.join(f'${n + 1}' for n in range(len(RECORD)))}"
KEPT: Final = "SELECT number FROM audit WHERE is_change = $1 ORDER BY number DESC LIMIT 1 OFFSET $2"
PRUNE: Final = f"DELETE FROM audit WHERE is_change = $1 AND number <= ({KEPT})"  # noqa: S608
RECORDS: Final = f"SELECT {', '.join(Record._fields)} FROM audit WHERE number > $1"  # noqa: S608
AUDIT: Final = """
CREATE TABLE audit (
    number {serial}, is_change {integer} NOT NULL, first {integer} NOT NULL,
    last {integer} NOT NULL, times {integer} NOT NULL, what TEXT NOT NULL, status {integer} NOT NULL,
    label TEXT NOT NULL, key TEXT NOT NULL, experiment TEXT NOT NULL, request_id TEXT NOT NULL
){options};
CREATE INDEX kept_records ON audit (is_change, number);
ALTER TABLE keys ADD COLUMN label TEXT NOT NULL DEFAULT '';
ALTER TABLE keys ADD COLUMN expires_at {integer};
ALTER TABLE keys ADD COLUMN used_at {integer};
"""


def _values(record: Record) -> tuple[Any, ...]:
    return int(record.is_change), *record[2:]


def noting(records: Sequence[Record]) -> list[Statement]:
    """Return the statements that add records and drop old ones."""
    if not records:
        return []
    prunes = [(PRUNE, (1, journal.MOST_CHANGES)), (PRUNE, (0, journal.MOST_REFUSALS))]
    return [*((NOTE, _values(one)) for one in records), *prunes]


def adding_key(key: Key, replaced: Key | None, record: Record | None) -> list[Statement]:
    """Return the statements that save a key."""
    ending = [] if replaced is None else [(END_KEY, (replaced.scope, replaced.expires_at, replaced.id))]
    return [(ADD_KEY, tuple(key)), *ending, *noting([] if record is None else [record])]


def forgetting_keys(now: int) -> list[Statement]:
    """Return the statements that drop keys which ended long ago. Nobody can use them, and the trail names them."""
    return [(FORGET_KEYS, (now, journal.MOST_ENDED_KEYS))]


def revoking_key(id: str, at: int, record: Record | None) -> list[Statement]:
    """Return the statements that revoke a key. The last one changes a row if there was such a key."""
    where = f"WHERE {IS_VALID.format(len(RECORD) + 1)}"
    noted = [] if record is None else [(f"{NOTE} {where}", (*_values(record), id))]
    return [*noted, (REVOKE_KEY, (at, id))]


def noting_uses(uses: Mapping[str, int]) -> list[Statement]:
    """Return the statements that save when keys were last used."""
    return [(NOTE_USE, (at, id)) for id, at in sorted(uses.items())]  # in one order, so that two servers cannot lock up
