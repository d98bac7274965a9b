"""Decision ids. Each is a UUID that holds the decision's entry number, so that a look-up needs no extra index.

version 8    58 bits seq                                |  64 bits nonce
version 7    48 bits milliseconds since 1970, 40 bits seq  |  34 bits nonce, of decisions that older releases made

The nonce is random and kept in the journal, as a signed integer of 64 bits. So nobody can guess the id of a decision.
A short nonce marks a decision of an older release, which keeps its id. New ones are never short.
"""

import re
from typing import Final, NamedTuple

NONCE_BITS: Final = 64
SHORT_BITS: Final = 34  # of a nonce in version 7
SIGN: Final = 1 << NONCE_BITS - 1
FORM: Final = re.compile(r"[0-9a-f]{8}-[0-9a-f]{4}-[78][0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}", re.IGNORECASE)


class DecisionId(NamedTuple):
    """The parts of an id."""

    milliseconds: int | None  # only in version 7
    seq: int
    nonce: int


def encode(at: int, seq: int, nonce: int) -> str:
    """Return the id of the decision with this entry number. `at` is in microseconds."""
    if 0 <= nonce < 1 << SHORT_BITS:
        version, payload = 7, (at // 1000 & (1 << 48) - 1) << 74 | seq << SHORT_BITS | nonce
    else:
        version, payload = 8, seq << NONCE_BITS | nonce & (1 << NONCE_BITS) - 1
    # 122 bits, 48 before the version, 12 between the version and the variant, and 62 after it
    number = payload >> 74 << 80 | version << 76 | (payload >> 62 & 0xFFF) << 64 | 0b10 << 62 | payload & (1 << 62) - 1
    text = f"{number:032x}"
    return f"{text[:8]}-{text[8:12]}-{text[12:16]}-{text[16:20]}-{text[20:]}"


def decode(text: str) -> DecisionId | None:
    """Return the parts of an id, or None if no decision can have it."""
    if not FORM.fullmatch(text):
        return None
    number = int(text.replace("-", ""), 16)
    payload = number >> 80 << 74 | (number >> 64 & 0xFFF) << 62 | number & (1 << 62) - 1
    if number >> 76 & 0xF == 7:
        seq = payload >> SHORT_BITS & (1 << 74 - SHORT_BITS) - 1
        return DecisionId(payload >> 74, seq, payload & (1 << SHORT_BITS) - 1)
    nonce = payload & (1 << NONCE_BITS) - 1
    return DecisionId(None, payload >> NONCE_BITS, (nonce ^ SIGN) - SIGN)
