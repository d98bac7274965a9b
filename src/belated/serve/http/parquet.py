"""A Parquet file written while it is sent, one row group after the other.

Polars writes each part as a file of its own. A Parquet file is the bytes "PAR1", row groups, and a footer that says
where they are. So the parts are sent without their footers, and one footer for all follows at the end. Footers are in
Thrift's compact protocol (https://github.com/apache/thrift/blob/master/doc/specs/thrift-compact-protocol.md), with the
fields of https://github.com/apache/parquet-format/blob/master/src/main/thrift/parquet.thrift.
"""

import io
import struct
from collections.abc import Generator, Mapping
from contextlib import closing
from typing import Any, Final

MAGIC: Final = b"PAR1"
GROUP_ROWS: Final = 50_000  # rows in a row group, at least, except in the first and the last
TRUE, FALSE, BYTE, I64, DOUBLE, BINARY, LIST, SET, STRUCT = 1, 2, 3, 6, 7, 8, 9, 10, 12
Struct = dict[int, tuple[int, Any]]  # the type and value of each field
# fields of the footer, of a row group, of a column in it, and of the column's own description
ROWS, GROUPS = 3, 4
COLUMNS, GROUP_OFFSET, ORDINAL = 1, 5, 7
DESCRIPTION, COLUMN_OFFSETS = 3, (2, 4, 6)
PAGE_OFFSETS: Final = (9, 10, 11, 14)


def parts(schema: Mapping[str, Any], pages: Generator[list[tuple[Any, ...]]]) -> Generator[bytes]:
    """Write pages of rows as Parquet files, each with the rows of some pages. The first one comes soon.

    `schema` has the type of each column, by its name. Yields b"" for a page that is not written yet, so that who reads
    can stop at any time.
    """
    import polars as pl  # noqa: PLC0415  # heavy, and only needed here

    def framed(page: list[tuple[Any, ...]]) -> pl.DataFrame:
        """By column, because by row polars would keep other threads from working for much longer."""
        return pl.DataFrame(dict(zip(schema, zip(*page, strict=True), strict=True)), dict(schema))

    def written(frames: list[pl.DataFrame]) -> bytes:
        target = io.BytesIO()
        pl.concat(frames).write_parquet(target)
        return target.getvalue()

    frames, least = [pl.DataFrame(schema=dict(schema))], 1  # the first part has the columns, even without rows
    with closing(pages):
        for page in pages:
            if page:
                frames.append(framed(page))
            if sum(frame.height for frame in frames) >= least:
                yield written(frames)
                frames, least = [], GROUP_ROWS
            else:
                yield b""
        if frames:
            yield written(frames)


def joined(parts: Generator[bytes]) -> Generator[bytes]:
    """Yield one Parquet file that has the rows of all parts. Each part is a file with the same columns."""
    footer: Struct = {}
    groups: list[Struct] = []
    size = 0
    with closing(parts):
        for part in parts:
            if not part:
                yield b""
                continue
            length = int.from_bytes(part[-8:-4], "little")
            read, _ = _read_struct(part, len(part) - 8 - length)
            start = len(MAGIC) if footer else 0  # the first part brings the magic bytes
            for group in read[GROUPS][1][1]:
                _shift(group, size - start, len(groups))
                groups.append(group)
            footer = footer or read
            if footer is not read:
                footer[ROWS] = (I64, footer[ROWS][1] + read[ROWS][1])
            content = part[start : len(part) - 8 - length]
            size += len(content)
            yield content
    footer[GROUPS] = (LIST, (STRUCT, groups))
    end = _struct(footer)
    yield end + len(end).to_bytes(4, "little") + MAGIC


def _shift(group: Struct, by: int, ordinal: int) -> None:
    """Move a row group by some bytes."""
    _add(group, GROUP_OFFSET, by)
    if ORDINAL in group:
        group[ORDINAL] = (group[ORDINAL][0], ordinal)
    for column in group[COLUMNS][1][1]:
        for field in COLUMN_OFFSETS:
            _add(column, field, by)
        for field in PAGE_OFFSETS:
            _add(column[DESCRIPTION][1], field, by)


def _add(fields: Struct, number: int, by: int) -> None:
    if number in fields and (number not in COLUMN_OFFSETS or fields[number][1]):  # 0 means that there is none
        fields[number] = (fields[number][0], fields[number][1] + by)


# -- Thrift's compact protocol ----------------------------------------------------------------------------------------


def _read_number(data: bytes, at: int) -> tuple[int, int]:
    value = shift = 0
    while True:
        byte = data[at]
        value, shift, at = value | (byte & 0x7F) << shift, shift + 7, at + 1
        if byte < 0x80:
            return value, at


def _read_struct(data: bytes, at: int) -> tuple[Struct, int]:
    found: Struct = {}
    number = 0
    while head := data[at]:
        at += 1
        if head >> 4:
            number += head >> 4
        else:
            raw, at = _read_number(data, at)
            number = (raw >> 1) ^ -(raw & 1)
        kind = head & 0x0F
        value, at = (kind == TRUE, at) if kind in (TRUE, FALSE) else _read(data, at, kind)
        found[number] = kind, value
    return found, at + 1


def _read(data: bytes, at: int, kind: int) -> tuple[Any, int]:
    if kind == STRUCT:
        return _read_struct(data, at)
    if kind in (LIST, SET):
        return _read_list(data, at)
    if kind == DOUBLE:
        return struct.unpack_from("<d", data, at)[0], at + 8
    if kind in (TRUE, FALSE, BYTE):  # in a list a truth value is a byte, too
        return data[at], at + 1
    raw, at = _read_number(data, at)
    if kind == BINARY:
        return data[at : at + raw], at + raw
    return (raw >> 1) ^ -(raw & 1), at


def _read_list(data: bytes, at: int) -> tuple[tuple[int, list[Any]], int]:
    size, kind, at = data[at] >> 4, data[at] & 0x0F, at + 1
    if size == 15:
        size, at = _read_number(data, at)
    values: list[Any] = []
    for _ in range(size):
        value, at = _read(data, at, kind)
        values.append(value)
    return (kind, values), at


def _number(value: int) -> bytes:
    out = bytearray()
    while value > 0x7F:
        out.append(value & 0x7F | 0x80)
        value >>= 7
    return bytes((*out, value))


def _struct(fields: Struct) -> bytes:
    out, last = bytearray(), 0
    for number, (given, value) in fields.items():
        kind = (TRUE if value else FALSE) if given in (TRUE, FALSE) else given
        step = number - last
        out += bytes([step << 4 | kind]) if 0 < step < 16 else bytes([kind]) + _number(number << 1)
        out += b"" if kind in (TRUE, FALSE) else _value(kind, value)
        last = number
    return bytes(out) + b"\0"


def _value(kind: int, value: Any) -> bytes:
    if kind == STRUCT:
        return _struct(value)
    if kind in (LIST, SET):
        inner, values = value
        head = bytes([len(values) << 4 | inner]) if len(values) < 15 else bytes([0xF0 | inner]) + _number(len(values))
        return head + b"".join(_value(inner, one) for one in values)
    if kind == DOUBLE:
        return struct.pack("<d", value)
    if kind in (TRUE, FALSE, BYTE):
        return bytes([value])
    return _number(len(value)) + value if kind == BINARY else _number(value << 1 if value >= 0 else ~value << 1 | 1)
