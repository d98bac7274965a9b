"""Logs on stderr: for people on a terminal, and otherwise one JSON object on each line."""

import json
import logging
import sys
import threading
from datetime import UTC, datetime
from types import TracebackType
from typing import Any, Final, final

from belated.progress import Progress
from belated.serve.http import request_ids

USUAL: Final = vars(logging.makeLogRecord({})).keys() | {"message", "taskName", "color_message"}
log = logging.getLogger("belated")


def details(record: logging.LogRecord) -> dict[str, Any]:
    """Return the fields of `extra`, and the id of the request that the line is about."""
    id = request_ids.CURRENT.get()
    found = {"request_id": id} if id else {}
    return found | {name: value for name, value in vars(record).items() if name not in USUAL}


@final
class JsonLines(logging.Formatter):
    """Formats a record as time, level, process, logger, message, its details, and a traceback in `exception`."""

    def format(self, record: logging.LogRecord) -> str:
        line = {
            "time": datetime.fromtimestamp(record.created, UTC).isoformat(timespec="milliseconds"),
            "level": record.levelname.lower(),
            "process": record.process,
            "logger": record.name,
            "message": record.getMessage(),
            **details(record),
        }
        if record.exc_info:
            line["exception"] = self.formatException(record.exc_info)
        return json.dumps(line, default=str)


@final
class PlainLines(logging.Formatter):
    """Formats a record for people: the local time, the level, the message and its details."""

    def format(self, record: logging.LogRecord) -> str:
        time = datetime.fromtimestamp(record.created).astimezone().strftime("%H:%M:%S")
        known = " ".join(f"{name}={printable(value)}" for name, value in details(record).items())
        line = f"{time} {record.levelname.lower():8} {printable(record.getMessage())}{'  ' if known else ''}{known}"
        return f"{line}\n{self.formatException(record.exc_info)}" if record.exc_info else line


def printable(value: object) -> str:
    """Return a value on one line. What a caller has sent must not look like a line of the log, or move the cursor."""
    text = str(value)
    return text if text.isprintable() else repr(text)


def start(*, access: bool = False) -> None:
    """Send the service's logs and its libraries' warnings to stderr. With `access` also log every request."""
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(PlainLines() if sys.stderr.isatty() else JsonLines())
    logging.basicConfig(level=logging.WARNING, handlers=[handler], force=True)
    logging.captureWarnings(capture=True)
    threading.excepthook = on_thread_failure
    Progress.tell = staticmethod(log.info)
    log.setLevel(logging.INFO)
    logging.getLogger("uvicorn.error").setLevel(logging.ERROR)  # it warns of each request that is not HTTP
    logging.getLogger("uvicorn.access").setLevel(logging.INFO if access else logging.WARNING)


def on_thread_failure(failed: threading.ExceptHookArgs) -> None:
    """Log the end of a thread. Python would print a traceback, which is not a line of the log."""
    error, trace = failed.exc_value, failed.exc_traceback
    told: tuple[type[BaseException], BaseException, TracebackType | None] | None = None
    if error is not None:
        told = failed.exc_type, error, trace
    log.critical("a thread has failed", exc_info=told, extra={"failed": getattr(failed.thread, "name", None)})
