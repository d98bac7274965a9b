"""Reads which rows of a log are still open, and when their wait ends. Exports of the service say both."""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from belated.arrays import Floats
from belated.replay.log_cells import instants
from belated.replay.log_files import Chunk, Column, LogTable, column_of, refuse

STATUS, EXPIRES = "status", "expires_at"
OPEN = "open"
WORDS = (OPEN, "reported", "expired", "late", "amended")


class OpenRows(NamedTuple):
    """Of some rows, which are open, and when the wait of each ends. It is infinite if the log does not say it."""

    is_open: NDArray[np.bool_]
    expires: Floats


def says_status(table: LogTable) -> bool:
    """Whether the file has both columns. A status alone may mean anything, so it is ignored like other columns."""
    return STATUS in table.header and EXPIRES in table.header


def open_rows(table: LogTable, chunk: Chunk, kind: str, outcome: Column) -> OpenRows:
    """The open ones among these rows. Times are of this kind."""
    status = column_of(table, chunk, STATUS)
    for index, (word, value) in enumerate(zip(status.cells, outcome.cells, strict=True)):
        if word not in WORDS:
            refuse(status, index, f"{'must' if word else 'It must'} be one of {', '.join(WORDS)}")
        if word == OPEN and value:
            refuse(status, index, f"contradicts the column {outcome.name!r}, which has {value!r}")
    is_open = np.array([word == OPEN for word in status.cells])
    return OpenRows(is_open, instants(column_of(table, chunk, EXPIRES), kind))
