"""Keys that have ended are not kept for ever, because every server reads all keys twice a second."""

from pathlib import Path

import pytest

from belated.serve.service import managing
from belated.serve.service.managing import KeyWish
from belated.serve.store import journal as contract
from belated.serve.store.journal import Journal
from belated.serve.store.sqlite.journal import SQLiteJournal

SECOND = 1_000_000
MOST = 5


def assert_ended_keys_are_dropped(journal: Journal) -> None:
    """Make and end many keys, in both ways."""
    lasting = managing.create(journal, KeyWish(["admin"]), SECOND).key
    temporary = [managing.create(journal, KeyWish(["read"], expires_in=50.0), 2 * SECOND).key for _ in range(3)]
    for number in range(10, 30):
        made = managing.create(journal, KeyWish(["decide"], f"job {number}"), number * SECOND)
        managing.revoke(journal, made.key.id, number * SECOND)
    known = journal.keys()
    assert [one.label for one in known] == ["", "", "", "", *(f"job {number}" for number in range(24, 30))], (
        "no key is lost that works"
    )
    newest = managing.create(journal, KeyWish(["decide"], "new"), 100 * SECOND).key
    known, working = journal.keys(), (lasting, *temporary, newest)
    working_ids = {one.id for one in known if one.revoked_at is None}
    assert working_ids == {one.id for one in working}, "those that expired at 52 seconds ended after the others"
    for number in range(200, 220):  # replaced at once
        newest = managing.rotate(journal, newest.id, 0.0, None, number * SECOND).key
    left = journal.keys()
    assert [one.id for one in (left[0], left[-1])] == [lasting.id, newest.id]
    assert len(left) == 2 + MOST


def test_a_file_drops_keys_that_ended_long_ago(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(contract, "MOST_ENDED_KEYS", MOST)
    journal = SQLiteJournal(tmp_path / "belated.db", synchronous="OFF")
    assert_ended_keys_are_dropped(journal)
    journal.close()
