"""What callers call things: the subject of a decision, and the report_id of an outcome. The journal keeps only digests.

So no name, address or account of a person is in the store. But who knows or guesses a subject can compute its digest.
So a digest of a person is personal data too.
"""

import hashlib
from typing import Final

from belated.serve.domain.refusals import Refusal

LONGEST: Final = 200  # characters
SIZE: Final = 16  # bytes. Among 10**12 subjects, two have the same digest with a chance of 1 in 10**15


def checked(what: str, text: str) -> str:
    """Return a subject or a report_id, or raise a Refusal if it cannot be one."""
    if not (1 <= len(text) <= LONGEST and text.isprintable()):
        raise Refusal("invalid", f"a {what} must have 1 to {LONGEST} printable characters, got {text!r:.80}")
    return text


def of_subject(experiment: str, subject: str) -> bytes:
    """Return the alias of a subject's decisions in an experiment of this name.

    It differs between experiments, so nobody sees that two of them met the same person.
    """
    return _digest(f"{experiment}\n{subject}")


def of_report(experiment: int, report_id: str) -> bytes:
    """Return the alias of an outcome in an experiment of this number. It is never that of a subject."""
    return _digest(f"{experiment}\n\n{report_id}")


def _digest(text: str) -> bytes:
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).digest()[:SIZE]
