"""Exports: every decision with its probability, its outcome and the range of outcomes, as `belated replay` reads it."""

import csv
import io
import tempfile
from collections.abc import AsyncIterator, Callable, Iterable, Iterator
from itertools import chain
from pathlib import Path
from typing import Final

from starlette.concurrency import iterate_in_threadpool, run_in_threadpool

from belated.serve.domain.entries import Found
from belated.serve.domain.experiment import Experiment
from belated.serve.http.calls import Answer, Call, experiment_of
from belated.serve.http.documents import OutcomeDocument, of_found
from belated.serve.http.spreadsheets import text_cell

DECISION: Final = ("decision_id", "round", "time", "arm", "probability")
OUTCOME: Final = ("outcome", "outcome_time", "status", "expires_at")  # it expires at the end of the wait
RANGE: Final = ("outcome_lowest", "outcome_highest", "outcome_better")  # the same in every row, safe in spreadsheets
CHUNK: Final = 2**18


def csv_pages(
    experiment: Experiment, pages: Iterable[list[Found]], text: Callable[[str], str] = text_cell
) -> Iterator[bytes]:
    """Write decisions as CSV, a page at a time. An unknown outcome is empty."""
    buffer = io.StringIO()
    writer = csv.writer(buffer, lineterminator="\n")
    writer.writerow((*DECISION, *OUTCOME, *RANGE))
    within = experiment.outcomes
    limits = repr(within.lowest), repr(within.highest), within.better
    for page in chain(pages, [[]]):  # the last one writes the header if there are no decisions
        for one in (of_found(experiment, found) for found in page):
            decided = one.decision_id, one.round, one.decided_at, text(one.arm), repr(one.probability)
            writer.writerow((*decided, *outcome_cells(one.outcome), one.expires_at or "", *limits))
        yield buffer.getvalue().encode()
        buffer.seek(0)
        buffer.truncate()


def outcome_cells(outcome: OutcomeDocument | None) -> tuple[str, str, str]:
    """Return an outcome's value, time and status."""
    if outcome is None:
        return "", "", "open"
    return ("", "", outcome.status) if outcome.value is None else (repr(outcome.value), outcome.at, outcome.status)


def as_parquet(content: Iterable[bytes], folder: Path) -> Path:
    """Convert CSV to a Parquet file. It goes through the disk, so memory does not grow with the experiment."""
    import polars as pl  # noqa: PLC0415  # heavy, and only needed here

    source, target = folder / "export.csv", folder / "export.parquet"
    with source.open("wb") as file:
        file.writelines(content)
    numbers = ("probability", "outcome", "outcome_lowest", "outcome_highest")
    types = {
        **dict.fromkeys((*DECISION, *OUTCOME, *RANGE), pl.String),
        "round": pl.Int64,
        **dict.fromkeys(numbers, pl.Float64),
    }
    times = pl.col("time", "outcome_time", "expires_at").str.to_datetime("%Y-%m-%dT%H:%M:%S%.fZ", time_zone="UTC")
    frame = pl.scan_csv(source, schema_overrides=types)
    frame.with_columns(times).sink_parquet(target)
    return target


async def to_csv(call: Call) -> Answer:
    """Download all decisions as CSV."""
    call.query()
    experiment = await experiment_of(call)
    content = csv_pages(experiment, call.service.export(experiment))
    return Answer(200, await begun(content), attachment(experiment, "csv"), "text/csv; charset=utf-8")


async def to_parquet(call: Call) -> Answer:
    """Download all decisions as Parquet."""
    call.query()
    experiment = await experiment_of(call)

    def chunks() -> Iterator[bytes]:
        with tempfile.TemporaryDirectory() as folder:
            content = csv_pages(experiment, call.service.export(experiment), str)
            with as_parquet(content, Path(folder)).open("rb") as file:
                while chunk := file.read(CHUNK):
                    yield chunk

    media = "application/vnd.apache.parquet"
    return Answer(200, await begun(chunks()), attachment(experiment, "parquet"), media)


async def begun(content: Iterator[bytes]) -> AsyncIterator[bytes]:
    """Read the first chunk now, so that an early error becomes a problem document."""
    first = await run_in_threadpool(next, content)
    return iterate_in_threadpool(chain((first,), content))


def attachment(experiment: Experiment, ending: str) -> dict[str, str]:
    """Return the header that names the file a browser saves."""
    return {"Content-Disposition": f'attachment; filename="{experiment.name}.{ending}"'}
