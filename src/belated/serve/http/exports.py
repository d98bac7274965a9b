"""Exports: every decision with its probability, its outcome and the range of outcomes, as `belated replay` reads it.

They are read and sent page by page, and stop with their caller. An export that was cut off goes on with `after`.
"""

import csv
import io
from collections.abc import AsyncGenerator, Generator
from contextlib import closing
from itertools import chain
from typing import Any, Final

from starlette.concurrency import run_in_threadpool

from belated.serve.domain import ids, timestamps
from belated.serve.domain.entries import EntryKind, Found
from belated.serve.domain.experiment import Experiment
from belated.serve.domain.refusals import Refusal
from belated.serve.http import parquet
from belated.serve.http.calls import Answer, Call, experiment_of, whole
from belated.serve.http.documents import OutcomeDocument, of_found
from belated.serve.http.spreadsheets import text_cell
from belated.serve.service.lists import Wanted

DECISION: Final = ("decision_id", "round", "time", "arm", "probability")
OUTCOME: Final = ("outcome", "outcome_time", "status", "expires_at")  # it expires at the end of the wait
RANGE: Final = ("outcome_lowest", "outcome_highest", "outcome_better")  # the same in every row, safe in spreadsheets
SUBJECT: Final = ("subject",)  # its digest, in hexadecimal
MOST_ROWS: Final = 2**62
CURSOR: Final = "Belated-Cursor"  # the header that says where a later export goes on
Pages = Generator[list[Found]]


def wanted(call: Call) -> Wanted:
    """Read the query of an export."""
    given = call.query("after", "limit", "cursor", "from", "to")
    if "cursor" in given and ("after" in given or "limit" in given):
        raise Refusal("invalid", "a cursor gives all that is new, without after and limit. Leave these out")
    return Wanted(
        after_of(given["after"]) if "after" in given else 0,
        whole("cursor", given.get("cursor", "0"), 0, MOST_ROWS),
        whole("limit", given.get("limit", str(MOST_ROWS)), 1, MOST_ROWS),
        time_of("from", given["from"]) if "from" in given else 0,
        time_of("to", given["to"]) if "to" in given else MOST_ROWS,
    )


def after_of(text: str) -> int:
    """Return the entry of the decision after which an export goes on."""
    found = ids.decode(text)
    if found is None:
        raise Refusal("invalid", f"after must be the decision_id of the last row that you have, got {text!r:.80}")
    return found.seq


def time_of(name: str, text: str) -> int:
    """Read a time from a query, in microseconds since 1970."""
    try:
        return timestamps.parsed(text)
    except ValueError:
        example = "2026-01-31T12:00:00Z"
        raise Refusal("invalid", f"{name} must be a time with its zone, such as {example}, got {text!r:.80}") from None


def csv_pages(experiment: Experiment, pages: Pages, *, has_header: bool = True) -> Generator[bytes]:
    """Write decisions as CSV, a page at a time. An unknown outcome is empty."""
    buffer = io.StringIO()
    writer = csv.writer(buffer, lineterminator="\n")
    if has_header:
        writer.writerow((*DECISION, *OUTCOME, *RANGE, *SUBJECT))
    within = experiment.outcomes
    limits = repr(within.lowest), repr(within.highest), within.better
    with closing(pages):
        for page in chain(pages, [[]]):  # the last one writes the header if there are no decisions
            for found in page:
                one = of_found(experiment, found)
                decided = one.decision_id, one.round, one.decided_at, text_cell(one.arm), repr(one.probability)
                writer.writerow(
                    (*decided, *outcome_cells(one.outcome), one.expires_at or "", *limits, subject_of(found))
                )
            yield buffer.getvalue().encode()
            buffer.seek(0)
            buffer.truncate()


def subject_of(found: Found) -> str:
    """Return the digest of the decision's subject, or nothing if it has none."""
    return (found.decision.alias or b"").hex()


def outcome_cells(outcome: OutcomeDocument | None) -> tuple[str, str, str]:
    """Return an outcome's value, time and status. A decision that is about to leave the store has no outcome."""
    if outcome is None or outcome.status == "removed":
        return "", "", "open"
    return ("", "", outcome.status) if outcome.value is None else (repr(outcome.value), outcome.at, outcome.status)


def parquet_parts(experiment: Experiment, pages: Pages) -> Generator[bytes]:
    """Write decisions as Parquet files, each with the rows of some pages. The first one comes soon."""
    import polars as pl  # noqa: PLC0415  # heavy, and only needed here

    time, number = pl.Datetime("us", "UTC"), pl.Float64
    decision, outcome = (pl.String, pl.Int64, time, pl.String, number), (number, time, pl.String, time)
    types = (*decision, *outcome, number, number, pl.String, pl.String)
    within = experiment.outcomes
    limits = within.lowest, within.highest, within.better

    def rows() -> Generator[list[tuple[Any, ...]]]:
        with closing(pages):
            for page in pages:
                yield [(*cells(experiment, found), *limits, subject_of(found) or None) for found in page]

    return parquet.parts(dict(zip((*DECISION, *OUTCOME, *RANGE, *SUBJECT), types, strict=True)), rows())


def cells(experiment: Experiment, found: Found) -> tuple[Any, ...]:
    """Return the columns of DECISION and OUTCOME for Parquet. Times are in microseconds."""
    one, outcome = of_found(experiment, found), found.outcome
    decided = one.decision_id, one.round, found.decision.at, one.arm, one.probability
    ends = experiment.expires_at(found.decision.at)
    if outcome is None or one.outcome is None or outcome.kind is EntryKind.REMOVED:
        return *decided, None, None, "open", ends
    told = (None, None) if outcome.value is None else (outcome.value, outcome.at)
    return *decided, *told, one.outcome.status, ends


async def to_csv(call: Call) -> Answer:
    """Download decisions as CSV: all, those of a time, those after a decision, or what is new since a cursor.

    What goes on after a decision has no header.
    """
    which, experiment = wanted(call), await experiment_of(call)
    pages, cursor = call.service.lists.export(experiment, which)
    content = csv_pages(experiment, pages, has_header=not which.after)
    return Answer(200, await begun(content), headers_of(experiment, which, cursor, "csv"), "text/csv; charset=utf-8")


async def to_parquet(call: Call) -> Answer:
    """Download decisions as Parquet: all, those of a time, those after a decision, or what is new since a cursor."""
    which, experiment = wanted(call), await experiment_of(call)
    pages, cursor = call.service.lists.export(experiment, which)
    content = await begun(parquet.joined(parquet_parts(experiment, pages)))
    headers = headers_of(experiment, which, cursor, "parquet")
    return Answer(200, content, headers, "application/vnd.apache.parquet")


async def begun(content: Generator[bytes]) -> AsyncGenerator[bytes]:
    """Read the first chunk now, so that an early error becomes a problem document."""
    return streamed(await run_in_threadpool(next, content), content)


async def streamed(first: bytes, content: Generator[bytes]) -> AsyncGenerator[bytes]:
    """Yield a chunk when the last one is sent. If the caller leaves, reads no further and closes the connection."""
    try:
        yield first
        while (chunk := await run_in_threadpool(next, content, None)) is not None:
            if chunk:
                yield chunk
    finally:
        await run_in_threadpool(content.close)


def headers_of(experiment: Experiment, which: Wanted, cursor: int, ending: str) -> dict[str, str]:
    """Return the headers that name the file a browser saves, and say where a later export goes on.

    An export with a limit goes on after its last decision.
    """
    named = {"Content-Disposition": f'attachment; filename="{experiment.name}.{ending}"'}
    return named if which.limit < MOST_ROWS else {**named, CURSOR: str(cursor)}
