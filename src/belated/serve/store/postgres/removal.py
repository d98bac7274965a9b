"""Removes decisions and outcomes from the journal in PostgreSQL. Whole partitions are dropped, other rows deleted.

Servers go on writing meanwhile. Each transaction is small or only changes the catalogue. It removes decisions together
with their outcomes, so that no report can count a second time. If a removal is interrupted, the store can be used as it
is, and the next removal goes on. Rows with a body are never removed. Those of a dropped partition move to `rest`.
"""

from collections.abc import Generator, Iterator, Sequence
from typing import Any, Final

from belated.serve.store.bases import ALLOW, check_allowed
from belated.serve.store.journal import Removal
from belated.serve.store.postgres.arrays import array
from belated.serve.store.postgres.connection import Connection, Link
from belated.serve.store.postgres.partitions import (
    LEFT_OVER,
    PARTITION_LOCK,
    REMOVED_PREFIX,
    Partition,
    briefly,
    partitions,
)
from belated.serve.store.postgres.places import displacing
from belated.serve.store.sql import DECIDED

MOST_ROWS: Final = 10_000  # outcomes in one transaction, unless a single decision has more
STEP: Final = 2_000  # rows or numbers in one transaction. Servers do not see newer entries before it ends
DELETE: Final = "DELETE FROM journal WHERE seq = ANY($1::bigint[]) AND seq >= $2 AND seq <= $3"
# These select what is deleted. First the outcomes of the decisions from $1 to $2, from entry $3 to $4.
OUTCOMES: Final = "SELECT seq FROM outcome_places WHERE decision >= $1 AND decision <= $2 AND seq >= $3 AND seq <= $4"
DECISIONS: Final = f"SELECT seq FROM journal WHERE seq >= $1 AND seq <= $2 AND kind + 0 = {DECIDED}"  # noqa: S608
# outcomes whose decision went before them
LATE: Final = f"SELECT seq FROM outcome_places WHERE decision < $1 AND seq <= $2 ORDER BY decision LIMIT {STEP}"  # noqa: S608
OUTCOMES_OF: Final = "SELECT seq FROM outcome_places WHERE decision = ANY($1::bigint[]) AND seq <= $2"
THESE: Final = f"SELECT seq FROM journal WHERE seq = ANY($1::bigint[]) AND seq <= $2 AND kind + 0 = {DECIDED}"  # noqa: S608
# decisions from $1 to $2 with outcomes from entry $3 to $4
TOLD_LATER: Final = OUTCOMES.replace("SELECT seq", "SELECT DISTINCT decision")
# a page of an experiment by its index: its decisions, and its outcomes
DECISIONS_OF, TOLD_OF = (
    f"SELECT seq FROM journal WHERE {which} AND (experiment, seq) > ($1, 0) AND experiment <= $1 AND seq <= $2 "  # noqa: S608
    f"ORDER BY experiment, seq LIMIT {STEP}"
    for which in (f"kind = {DECIDED}", "decision IS NOT NULL")
)
OLDEST_DECISION: Final = f"SELECT seq FROM journal WHERE kind + 0 = {DECIDED} AND seq <= $1 ORDER BY seq LIMIT 1"  # noqa: S608
# The first number from $1 to $2 that an entry has, or a decision with outcomes. There are gaps of any length.
NEXT: Final = """
SELECT least(
    (SELECT seq FROM {} WHERE seq >= $1 AND seq <= $2 ORDER BY seq LIMIT 1),
    (SELECT decision FROM outcome_places WHERE decision >= $1 AND decision <= $2 ORDER BY decision LIMIT 1)
)
"""


def remove(link: Link, what: Removal) -> Iterator[int]:
    """Remove rows in small transactions. Yields how many were removed by each."""
    _drop_left_over(link)
    if what.experiments is not None:
        for experiment in what.experiments:
            yield from _remove_experiment(link, experiment, what.until)
    if what.decisions_until:
        yield from _remove_until(link, min(what.decisions_until, what.until), what.until)
    for first in range(0, len(what.decisions), STEP):
        yield from _remove_these(link, what.decisions[first : first + STEP], what.until)


def _remove_these(link: Link, decisions: Sequence[int], until: int) -> Iterator[int]:
    """Remove decisions with their outcomes up to a number, in parts if these have many."""
    some = array("bigint", decisions)
    if len(decisions) > 1 and _are_many(link, OUTCOMES_OF, some, until):
        half = len(decisions) // 2
        for part in (decisions[:half], decisions[half:]):
            yield from _remove_these(link, part, until)
    else:
        yield _delete(link, until, (OUTCOMES_OF, (some, until)), (THESE, (some, until)))


def _remove_range(link: Link, first: int, last: int, until: int) -> Iterator[int]:
    """Remove the decisions in a range with their outcomes up to a number, in parts if these have many."""
    if first < last and _are_many(link, OUTCOMES, first, last, 0, until):
        middle = (first + last) // 2
        for part in ((first, middle), (middle + 1, last)):
            yield from _remove_range(link, *part, until)
    else:
        yield _delete(link, until, (OUTCOMES, (first, last, 0, until)), (DECISIONS, (first, last)))


def _are_many(link: Link, selection: str, *values: Any) -> bool:
    """Whether more outcomes are selected than one transaction should delete."""
    with link.using("read") as connection:
        return int(_one(connection, f"SELECT count(*) FROM ({selection}) AS told", *values)) > MOST_ROWS  # noqa: S608


def _remove_experiment(link: Link, experiment: int, until: int) -> Iterator[int]:
    while decisions := _numbers(link, DECISIONS_OF, experiment, until):
        yield from _remove_these(link, decisions, until)
    while told := _delete(link, until, (TOLD_OF, (experiment, until))):
        yield told


def _numbers(link: Link, sql: str, *values: Any) -> list[int]:
    with link.using("read") as connection:
        return [row[0] for row in connection.execute(sql.encode(), values).fetchall()]


def _allow(connection: Connection, until: int) -> None:
    """Raise HistoryLost if the base is not in force. If it is, it stays so until the transaction ends."""
    check_allowed(connection.execute(ALLOW.encode(), (until,)).rowcount, until)


def _delete(link: Link, until: int, *selections: tuple[str, Sequence[Any]]) -> int:
    """Delete the selected entries in one transaction. Returns how many these were."""
    with link.using("written") as connection, connection.transaction():
        _allow(connection, until)
        seqs = [row[0] for sql, values in selections for row in connection.execute(sql.encode(), values).fetchall()]
        if not seqs:
            return 0
        return connection.execute(DELETE.encode(), (array("bigint", seqs), min(seqs), max(seqs))).rowcount


def _one(connection: Connection, sql: str, *values: Any) -> Any:
    found = connection.execute(sql.encode(), values, binary=True).fetchall()
    return found[0][0] if found else None


def _steps(link: Link, table: str, first: int, last: int) -> Iterator[tuple[int, int]]:
    """Yield ranges of numbers that hold all entries of a table from `first` to `last`, and their outcomes."""
    while first <= last:
        with link.using("read") as connection:
            start = _one(connection, NEXT.format(table), first, last)
        if start is None:
            return
        end = min(start + STEP - 1, last)
        yield start, end
        first = end + 1


def _remove_until(link: Link, decisions_until: int, until: int) -> Iterator[int]:
    """Remove all decisions up to a number, and their outcomes up to another."""
    yield from _remove_late(link, decisions_until, until)  # before their partitions go, and not their places
    with link.using("read") as connection:
        whole = [one for one in partitions(connection) if one.end - 1 <= decisions_until]
    for one in whole:
        yield from _remove_partition(link, one, until)
    oldest = yield from _remove_late(link, decisions_until, until)
    for first, last in _steps(link, "journal", oldest, decisions_until):
        yield from _remove_range(link, first, last, until)


def _remove_late(link: Link, decisions_until: int, until: int) -> Generator[int, None, int]:
    """Remove outcomes whose decision went before them. Returns the oldest decision that is left."""
    with link.using("read") as connection:
        oldest = _one(connection, OLDEST_DECISION, decisions_until) or decisions_until + 1
    while late := _delete(link, until, (LATE, (oldest, until))):
        yield late
    return int(oldest)


# -- whole partitions -----------------------------------------------------------------------------------------------


def _remove_partition(link: Link, one: Partition, until: int) -> Iterator[int]:
    with link.using("read") as connection:
        held = f"SELECT count(request) + count(alias) FROM {one.name} WHERE body IS NULL"  # noqa: S608
        [(keyed,)] = connection.execute(held.encode()).fetchall()
    for first, last in _steps(link, one.name, one.first, one.end - 1):  # also decisions that have only outcomes left
        if keyed:  # the report_ids of outcomes go after their decisions. Otherwise a retry could count a second time
            source = f"(SELECT * FROM {one.name} WHERE seq >= $1 AND seq <= $2 AND kind + 0 = {DECIDED})"  # noqa: S608
            with link.using("written") as connection, connection.transaction():
                _allow(connection, until)
                for table in ("request_places", "alias_places"):
                    connection.execute(displacing(table, source).encode(), (first, last))
        if told_later := _numbers(link, TOLD_LATER, first, last, one.end, until):
            yield from _remove_these(link, told_later, until)
    with link.using("written") as connection:
        count = _one(connection, f"SELECT count(*) FROM {one.name} WHERE body IS NULL")  # noqa: S608
        _detach(connection, one, until)
    yield count
    _drop_left_over(link)


def _detach(connection: Connection, one: Partition, until: int) -> None:
    """Take a partition out of the journal. Its rows with a body stay, and the places of outcomes after `until`."""
    places = f"outcome_places{one.name.removeprefix('journal')}"
    late = f"SELECT decision, seq, revision FROM {places} WHERE seq > {until}"  # noqa: S608
    for table in (one.name, places):  # wait for a vacuum here, where nobody waits for us
        connection.execute(f"ALTER TABLE {table} SET (autovacuum_enabled = false)".encode())
    settled = briefly(connection, lambda: _settled(connection))
    kept = [tuple(row) for row in connection.execute(late.encode()).fetchall()]

    def detach() -> None:
        _one(connection, "SELECT pg_advisory_xact_lock($1)", PARTITION_LOCK)
        connection.execute("LOCK TABLE ONLY journal, ONLY outcome_places IN ACCESS EXCLUSIVE MODE")
        if one not in partitions(connection):
            return
        _allow(connection, until)
        new = f"SELECT decision, seq, revision FROM journal WHERE seq > {settled} AND decision < {one.end}"  # noqa: S608
        moved = {*kept, *(row for row in connection.execute(new.encode()).fetchall() if row[0] >= one.first)}
        connection.execute(f"ALTER TABLE outcome_places DETACH PARTITION {places}".encode())
        connection.execute(f"ALTER TABLE journal DETACH PARTITION {one.name}".encode())
        connection.execute(f"INSERT INTO journal_rest SELECT * FROM {one.name} WHERE body IS NOT NULL".encode())  # noqa: S608
        for table in (places, one.name):
            connection.execute(f"ALTER TABLE {table} RENAME TO {REMOVED_PREFIX}{table}".encode())
        columns = list(zip(*moved, strict=True)) if moved else [(), (), ()]
        connection.execute(
            "INSERT INTO outcome_places_rest (decision, seq, revision) "
            "SELECT * FROM unnest($1::bigint[], $2::bigint[], $3::bigint[])",
            [array("bigint", column) for column in columns],
        )

    briefly(connection, detach)


def _settled(connection: Connection) -> int:
    """Return a number up to which every entry is committed or will never be."""
    connection.execute("LOCK TABLE ONLY journal IN SHARE MODE")
    return int(_one(connection, "SELECT coalesce(pg_sequence_last_value('places'), 0)"))


def _drop_left_over(link: Link) -> None:
    """Forget the report_ids in the tables that were taken out of the journal, and drop these."""
    with link.using("written") as connection:
        for (name,) in connection.execute(LEFT_OVER).fetchall():
            if name.startswith(f"{REMOVED_PREFIX}journal"):
                _forget_aliases(connection, name)
            connection.execute(f"DROP TABLE IF EXISTS {name}".encode())


def _forget_aliases(connection: Connection, table: str) -> None:
    """Forget the aliases of a table's entries without a body, which are no longer in the journal."""
    some = f"SELECT * FROM {table} WHERE seq > $1 AND alias IS NOT NULL ORDER BY seq LIMIT {STEP}"  # noqa: S608
    last = 0
    while (end := _one(connection, f"SELECT max(seq) FROM ({some}) AS page", last)) is not None:  # noqa: S608
        connection.execute(displacing("alias_places", f"({some})").encode(), (last,))
        last = end
