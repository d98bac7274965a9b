"""Refusals: why the service does not do what a caller asked. Only http/ knows their status codes."""

from typing import Final, Literal, final

RefusalKind = Literal[
    "unauthenticated",
    "forbidden",
    "not_found",
    "gone",
    "conflict",
    "failed",
    "invalid",
    "too_many",
    "unavailable",
    "internal",
]
RETRY_SECONDS: Final = 1
STORE_SILENT: Final = "the store has not answered for some seconds"
STORE_BUSY: Final = "an open transaction in the database has locked what this needs"
# only the log says where the store is and what went wrong
STORE_UNREACHABLE: Final = "the store cannot be reached now"
STORE_UNREADABLE: Final = "the store cannot be read. The service's log says why."
STORE_UNWRITABLE: Final = "keys or the audit trail cannot be written. The service's log says why."
STORE_FAILED: Final = (
    "the store cannot be written. The service's log says why. Nothing more is written until a restart."
)


@final
class Refusal(Exception):
    """A request that was refused. It has changed nothing, except perhaps if its kind is unavailable.

    `retry_after` is set, in seconds, if the same request may succeed later. `revision` is that of the outcome that a
    report contradicts.
    """

    def __init__(
        self, kind: RefusalKind, detail: str, retry_after: int | None = None, revision: int | None = None
    ) -> None:
        super().__init__(kind, detail)
        self.kind, self.detail, self.retry_after, self.revision = kind, detail, retry_after, revision
        self.quota = ""  # the quota that was exhausted, for the metrics
        self.key = ("", "")  # the label and the id of a key that was refused, for the audit trail


def try_later(detail: str) -> Refusal:
    """Refuse a request that may succeed a little later."""
    return Refusal("unavailable", f"{detail}. Try again.", RETRY_SECONDS)


def internal() -> Refusal:
    """Refuse a request that met a bug. Nothing was written for it, and only the log says more."""
    return Refusal("internal", "an unexpected failure of this request. The service's log has more.")


def behind(seq: int, needed: int) -> Refusal:
    """Refuse a request that needs entries this server has not read yet."""
    return try_later(f"this server is behind. It has read the journal to entry {seq}, but needs entry {needed}")
