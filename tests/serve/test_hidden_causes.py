"""Callers learn that the store has failed. Only the log says where it is and what went wrong."""

from pathlib import Path

import pytest

from belated.errors import StoreError
from belated.serve.engine.writer import Writer
from belated.serve.http.app import refusal_of
from belated.serve.service.keys import Gate
from tests.support.engines import Driven

PLACE = "/home/somebody/secret/belated.db"


def test_a_failure_of_the_store_does_not_tell_its_path(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    driven = Driven(tmp_path)
    writer = Writer(driven.engine, Gate([]).learn, capacity=10)

    def fail() -> None:
        raise StoreError(f"the store {PLACE} cannot be written: FullError")

    assert not writer._guarded(fail)
    refusal = writer.refusal()
    assert refusal is not None
    assert (refusal.kind, refusal.retry_after) == ("unavailable", None)
    assert "secret" not in refusal.detail + writer.failure
    assert "log" in refusal.detail
    [record] = caplog.records
    assert PLACE in vars(record)["error"]
    driven.engine.journal.close()


def test_a_failing_read_does_not_tell_it_either(caplog: pytest.LogCaptureFixture) -> None:
    refusal = refusal_of(StoreError(f"the store {PLACE} cannot be read: CorruptError"))
    assert refusal.kind == "unavailable"
    assert "secret" not in refusal.detail
    assert PLACE in vars(caplog.records[0])["error"]
