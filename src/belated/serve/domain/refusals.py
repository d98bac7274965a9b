"""Problems that a caller can mend, each with its status: what RFC 9457 calls a problem document."""

from typing import Annotated, Final, final

import msgspec
from msgspec import Meta

TITLES: Final = {
    400: "The request cannot be read",
    401: "A key is needed",
    403: "Not allowed",
    404: "Not found",
    405: "Method not allowed",
    409: "Conflict",
    413: "Too large",
    415: "Not JSON",
    422: "The request does not make sense",
    503: "Not now",
}


SILENT: Final = "the store has not answered for some seconds"
OUT_OF_REACH: Final = "the store cannot be reached now"  # where it is, and why, is for the log only


class ProblemDocument(msgspec.Struct, omit_defaults=True):
    """What went wrong, as RFC 9457 says it."""

    type: Annotated[str, Meta(description="about:blank: the status says what kind it is.")]
    title: str
    status: int
    detail: Annotated[str, Meta(description="What was wrong and what would mend it.")] = ""


@final
class Problem(Exception):
    """An answer that is a problem document; nothing has been changed."""

    def __init__(self, status: int, detail: str, headers: dict[str, str] | None = None) -> None:
        super().__init__(status, detail)
        self.status, self.detail, self.headers = status, detail, headers or {}

    def document(self) -> ProblemDocument:
        """The body of the answer."""
        return ProblemDocument("about:blank", TITLES.get(self.status, "Error"), self.status, self.detail)


def not_now(detail: str) -> Problem:
    """What may be possible a little later."""
    return Problem(503, f"{detail}; try again", {"Retry-After": "1"})


def behind(at: int, wanted: int) -> Problem:
    """A server that has not folded what others have written."""
    return not_now(f"this server is behind: it has read the journal to entry {at}, not to {wanted}")
