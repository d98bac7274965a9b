"""Columns of entries as PostgreSQL's binary arrays: psycopg would look at each value alone, and take twice as long."""

import struct
from collections.abc import Sequence
from typing import Any, Final, final

from psycopg import pq
from psycopg.adapt import Buffer, Dumper

OIDS: Final = {"bigint": 20, "double precision": 701, "text": 25, "bytea": 17}
NULL: Final = struct.pack("!i", -1)
_header = struct.Struct("!iiIii").pack  # one dimension, may have nulls, the type, its length, counted from 1
_whole, _real, _size = (struct.Struct(form).pack for form in ("!iq", "!id", "!i"))


@final
class Array(bytes):
    """An array as it travels; the statement says of which type."""


@final
class ArrayDumper(Dumper):
    """Hands it over as it is."""

    format = pq.Format.BINARY

    def dump(self, obj: Array) -> Buffer:
        return obj


def array(type: str, values: Sequence[Any]) -> Array:
    """The values as an array of this type."""
    if type == "bigint":
        items = [NULL if value is None else _whole(8, value) for value in values]
    elif type == "double precision":
        items = [NULL if value is None else _real(8, value) for value in values]
    else:
        encoded = [value.encode() if isinstance(value, str) else value for value in values]
        items = [NULL if value is None else _size(len(value)) + value for value in encoded]
    return Array(_header(1, 1, OIDS[type], len(values), 1) + b"".join(items))
