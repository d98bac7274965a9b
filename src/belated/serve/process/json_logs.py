"""Structured logs on stderr, one JSON object on each line."""

import json
import logging
import sys
from datetime import UTC, datetime
from typing import Final, final

USUAL: Final = vars(logging.makeLogRecord({})).keys() | {"message", "taskName", "color_message"}


@final
class JsonLines(logging.Formatter):
    """Formats a record as time, level, process, logger, message, and the fields of `extra`."""

    def format(self, record: logging.LogRecord) -> str:
        line = {
            "time": datetime.fromtimestamp(record.created, UTC).isoformat(timespec="milliseconds"),
            "level": record.levelname.lower(),
            "process": record.process,
            "logger": record.name,
            "message": record.getMessage(),
            **{name: value for name, value in vars(record).items() if name not in USUAL},
        }
        if record.exc_info:
            line["exception"] = self.formatException(record.exc_info)
        return json.dumps(line, default=str)


def start(*, access: bool = False) -> None:
    """Send the service's logs and its libraries' warnings to stderr. With `access` also log every request."""
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(JsonLines())
    logging.basicConfig(level=logging.WARNING, handlers=[handler], force=True)
    logging.getLogger("belated").setLevel(logging.INFO)
    logging.getLogger("uvicorn.error").setLevel(logging.ERROR)  # it warns of each request that is not HTTP
    logging.getLogger("uvicorn.access").setLevel(logging.INFO if access else logging.WARNING)
