"""Parts of a Parquet file become one file, while they are sent."""

import io
from collections.abc import Generator, Sequence
from typing import Any

import polars as pl
import pytest

from belated.serve.http.parquet import MAGIC, _read_struct, _struct, joined

SCHEMA: Any = {
    "number": pl.Int64,
    "name": pl.String,
    "share": pl.Float64,
    "at": pl.Datetime("us", "UTC"),
    "is": pl.Boolean,
}


def frame(n_rows: int, seed: int = 1) -> pl.DataFrame:
    rows = [
        (None if n % 7 == 0 else n * seed, None if n % 11 == 0 else f"é{n % 5}", n / 3, n * 10**9, n % 2 == 0)
        for n in range(n_rows)
    ]
    return pl.DataFrame(rows, SCHEMA, orient="row")


def part(rows: pl.DataFrame, row_group_size: int | None = None) -> bytes:
    target = io.BytesIO()
    rows.write_parquet(target, row_group_size=row_group_size)
    return target.getvalue()


def sent(parts: Sequence[bytes]) -> Generator[bytes]:
    yield from parts


@pytest.mark.parametrize("sizes", [[0], [3], [0, 1], [0, 5, 1000], [0, 2000, 1, 0, 70_000], [1] * 40])
def test_the_whole_has_the_rows_of_all_parts(sizes: list[int]) -> None:
    frames = [frame(size, seed) for seed, size in enumerate(sizes, 1)]
    whole, expected = b"".join(joined(sent([part(one, 30_000) for one in frames]))), pl.concat(frames)
    assert pl.read_parquet(io.BytesIO(whole)).equals(expected)
    large = pl.scan_parquet(io.BytesIO(whole)).filter(pl.col("number") > 40).collect()
    assert large.equals(expected.filter(pl.col("number") > 40)), "the statistics of the row groups are in place"


def test_each_part_is_sent_before_the_next_is_made() -> None:
    made = list[int]()

    def parts() -> Generator[bytes]:
        for size in (0, 10, 20):
            made.append(size)
            yield part(frame(size))

    whole = joined(parts())
    assert next(whole).startswith(MAGIC)
    assert made == [0]
    assert next(whole)
    assert made == [0, 10]
    whole.close()
    assert made == [0, 10]


def test_a_footer_is_read_and_written_to_the_last_byte() -> None:
    content = part(frame(5000), 1000)
    length = int.from_bytes(content[-8:-4], "little")
    read, end = _read_struct(content, len(content) - 8 - length)
    assert end == len(content) - 8
    assert _struct(read) == content[-8 - length : -8]
