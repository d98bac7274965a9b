"""Exports: every decision with its probability and outcome, as `belated replay` reads it."""

import csv
import io
import tempfile
from collections.abc import AsyncIterator, Iterator
from itertools import chain
from pathlib import Path
from typing import Final

from starlette.concurrency import iterate_in_threadpool, run_in_threadpool

from belated.serve.domain.experiment import Experiment
from belated.serve.http.calls import Answer, Call
from belated.serve.http.decisions import experiment_of, known
from belated.serve.http.documents import OutcomeDocument
from belated.serve.store.journal import Journal

COLUMNS: Final = ("decision_id", "round", "time", "arm", "probability", "outcome", "outcome_time", "status")
ROWS: Final = 2_000
CHUNK: Final = 2**18


def lines(journal: Journal, experiment: Experiment, until: int) -> Iterator[str]:
    """The CSV file, a page at a time, to the place `until`; an outcome that is not known is empty."""
    buffer = io.StringIO()
    writer = csv.writer(buffer, lineterminator="\n")
    writer.writerow(COLUMNS)
    after = 0
    while after < until and (page := journal.decisions(experiment.seq, after, ROWS)):
        for found in page:
            if found.decision.seq > until:
                break
            one = known(experiment, found)
            decided = one.decision_id, one.round, one.decided_at, one.arm, repr(one.probability)
            writer.writerow((*decided, *outcome_cells(one.outcome)))
        after = page[-1].decision.seq
        yield buffer.getvalue()
        buffer.seek(0)
        buffer.truncate()
    yield buffer.getvalue()


def outcome_cells(outcome: OutcomeDocument | None) -> tuple[str, str, str]:
    """Value, time and status."""
    if outcome is None:
        return "", "", "open"
    return ("", "", outcome.status) if outcome.value is None else (repr(outcome.value), outcome.at, outcome.status)


def stream(journal: Journal, experiment: Experiment, until: int) -> Iterator[bytes]:
    """The same as bytes; the connection is this export's own."""
    try:
        for text in lines(journal, experiment, until):
            yield text.encode()
    finally:
        journal.close()


def as_parquet(journal: Journal, experiment: Experiment, until: int, folder: Path) -> Path:
    """The same as a Parquet file, by way of the disk, so that memory does not grow with the experiment."""
    import polars as pl  # noqa: PLC0415  # heavy, and only needed here

    source, target = folder / "export.csv", folder / "export.parquet"
    with source.open("wb") as file:
        file.writelines(stream(journal, experiment, until))
    types = {"round": pl.Int64, "probability": pl.Float64, "outcome": pl.Float64}
    times = pl.col("time", "outcome_time").str.to_datetime("%Y-%m-%dT%H:%M:%S%.fZ", time_zone="UTC")
    frame = pl.scan_csv(source, schema_overrides={**dict.fromkeys(COLUMNS, pl.String), **types})
    frame.with_columns(times).sink_parquet(target)
    return target


async def to_csv(call: Call) -> Answer:
    """All decisions as CSV."""
    call.query()
    service, experiment = call.service, await experiment_of(call.service, call.name)

    def chunks() -> Iterator[bytes]:
        yield from stream(service.open_reader(), experiment, service.engine.fold.seq)

    return Answer(200, await begun(chunks()), attachment(experiment, "csv"), "text/csv; charset=utf-8")


async def to_parquet(call: Call) -> Answer:
    """All decisions as Parquet."""
    call.query()
    service, experiment = call.service, await experiment_of(call.service, call.name)

    def chunks() -> Iterator[bytes]:
        with tempfile.TemporaryDirectory() as folder:
            file = as_parquet(service.open_reader(), experiment, service.engine.fold.seq, Path(folder)).open("rb")
            with file:
                while chunk := file.read(CHUNK):
                    yield chunk

    media = "application/vnd.apache.parquet"
    return Answer(200, await begun(chunks()), attachment(experiment, "parquet"), media)


async def begun(content: Iterator[bytes]) -> AsyncIterator[bytes]:
    """The content of an answer: what goes wrong at first does so before the answer begins."""
    first = await run_in_threadpool(next, content)
    return iterate_in_threadpool(chain((first,), content))


def attachment(experiment: Experiment, ending: str) -> dict[str, str]:
    """A browser saves it under this name."""
    return {"Content-Disposition": f'attachment; filename="{experiment.name}.{ending}"'}
