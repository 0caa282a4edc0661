"""What a line of the log looks like: for people, or one JSON object for programs."""

import json
import logging
import sys
import time
from typing import Any

from cachetools import LRUCache

from apiservice.flags import LogFormat, LogLevel

MOST_COUNTED = 1000


class EventFormatter(logging.Formatter):
    """One line for each event, and indented lines for its traceback: words of others may have control characters."""

    def __init__(self) -> None:
        super().__init__("%(asctime)s.%(msecs)03dZ %(levelname)s %(name)s: %(message)s", "%Y-%m-%dT%H:%M:%S")
        self.converter = time.gmtime

    def formatMessage(self, record: logging.LogRecord) -> str:  # noqa: N802 - the library's name
        return _printable(super().formatMessage(record))

    def formatException(self, ei: Any) -> str:  # noqa: N802, ANN401 - as above
        return "\n".join(f"  {_printable(line)}" for line in super().formatException(ei).splitlines())


class JsonFormatter(EventFormatter):
    """The keys `time`, `level`, `logger`, `message` and `count`, and `exception` if there is one.

    `count` is how often this message has been logged, this time included; of MOST_COUNTED messages."""

    def __init__(self) -> None:
        super().__init__()
        self._counts: LRUCache[tuple[str, int, str], int] = LRUCache(MOST_COUNTED)

    def format(self, record: logging.LogRecord) -> str:
        message = _printable(record.getMessage())
        kind = record.name, record.levelno, message
        self._counts[kind] = count = self._counts.get(kind, 0) + 1
        line: dict[str, object] = {
            "time": f"{self.formatTime(record, self.datefmt)}.{int(record.msecs):03d}Z",
            "level": record.levelname.lower(),
            "logger": record.name,
            "message": message,
            "count": count,
        }
        if record.exc_info:
            line["exception"] = self.formatException(record.exc_info)
        return json.dumps(line)


def log_to_stderr(level: LogLevel, form: LogFormat) -> None:
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(JsonFormatter() if form == "json" else EventFormatter())
    # Other packages' lines repeat what we log as events, and at DEBUG they contain passwords and tokens.
    logging.basicConfig(level=logging.CRITICAL, handlers=[handler], force=True)
    for package in ("adapter", "apiservice"):
        logging.getLogger(package).setLevel(level.upper())


def _printable(text: str) -> str:
    return "".join(letter if letter.isprintable() else " " for letter in text)
