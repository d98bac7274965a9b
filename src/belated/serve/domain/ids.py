"""Decision ids. Each is a UUIDv7 whose random part holds the decision's entry number and a secret nonce.

48 bits  milliseconds since 1970       |  4 bits version 7  |  2 bits variant
40 bits  seq, so that a look-up needs no extra index  |  34 bits nonce, kept in the journal
"""

import re
from typing import Final, NamedTuple

NONCE_BITS: Final = 34
SEQ_BITS: Final = 40
FORM: Final = re.compile(r"[0-9a-f]{8}-[0-9a-f]{4}-7[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}", re.IGNORECASE)


class DecisionId(NamedTuple):
    """The parts of an id."""

    milliseconds: int
    seq: int
    nonce: int


def encode(at: int, seq: int, nonce: int) -> str:
    """Return the id of the decision with this entry number. `at` is in microseconds."""
    payload = seq << NONCE_BITS | nonce  # 74 bits, 12 next to the version and 62 next to the variant
    number = (at // 1000 & (1 << 48) - 1) << 80 | 7 << 76 | payload >> 62 << 64 | 0b10 << 62 | payload & (1 << 62) - 1
    text = f"{number:032x}"
    return f"{text[:8]}-{text[8:12]}-{text[12:16]}-{text[16:20]}-{text[20:]}"


def decode(text: str) -> DecisionId | None:
    """Return the parts of an id, or None if no decision can have it."""
    if not FORM.fullmatch(text):
        return None
    number = int(text.replace("-", ""), 16)
    payload = (number >> 64 & 0xFFF) << 62 | number & (1 << 62) - 1
    return DecisionId(number >> 80, payload >> NONCE_BITS, payload & (1 << NONCE_BITS) - 1)
