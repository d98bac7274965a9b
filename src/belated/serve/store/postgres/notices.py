"""Warnings of a PostgreSQL server. Few of them put a commit in doubt. The others are only logged."""

import logging
import time
from typing import Final, final

from psycopg import errors

LOG_EVERY: Final = 60.0  # seconds between two lines about the same warning, because some come with every commit
WAITS: Final = "SyncRep"  # the server's functions that wait for a standby. Their names are not translated
INTERVENTION: Final = "57"  # the class of SQLSTATEs after which the server ends a statement or the connection
log = logging.getLogger("belated.store")


def is_doubtful(sqlstate: str | None, function: str | None, message: str | None) -> bool:
    """Whether a warning says that a commit may be lost, because it did not wait for its standby.

    Both warnings of that kind come from SyncRepWaitForLSN. One has a SQLSTATE that many warnings have, and texts are
    translated. So the name of the function decides. The text is for servers that do not send the name.
    """
    is_waiting = (function or "").startswith(WAITS) or "synchronous replication" in (message or "")
    return is_waiting or (sqlstate or "").startswith(INTERVENTION)


@final
class Notices:
    """Hears what a server warns of. `doubts` has the warnings that put a commit in doubt, since they were cleared."""

    def __init__(self, name: str) -> None:
        self._name, self.doubts = name, list[str]()
        self._logged: dict[tuple[str | None, str | None], tuple[float, int]] = {}  # when, and how many since then

    def hear(self, notice: errors.Diagnostic) -> None:
        """Note or log a warning."""
        if notice.severity_nonlocalized != "WARNING":
            return
        message = notice.message_primary or ""
        if is_doubtful(notice.sqlstate, notice.source_function, message):
            self.doubts.append(message)
        else:
            self._log(notice, message)

    def _log(self, notice: errors.Diagnostic, message: str) -> None:
        kind, now = (notice.sqlstate, notice.source_function), time.monotonic()
        logged_at, more = self._logged.get(kind, (-LOG_EVERY, 0))
        if now < logged_at + LOG_EVERY:
            self._logged[kind] = logged_at, more + 1
            return
        self._logged[kind] = now, 0
        details = {"store": self._name, "warning": message, "hint": notice.message_hint, "more_of_this_kind": more}
        log.warning("the database warns, and the service goes on", extra=details)
