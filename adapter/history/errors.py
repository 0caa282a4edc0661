"""Errors of a history location: what the system or the library of a provider reports, as our own error."""

import contextlib
import errno
import re
import textwrap
from collections.abc import Iterator

import pyarrow as pa

from adapter.errors import AdapterError

CAUSES = {
    errno.ENOSPC: "no_space",
    errno.EDQUOT: "no_space",
    errno.EFBIG: "no_space",
    errno.EROFS: "read_only",
    errno.EACCES: "denied",
    errno.EPERM: "denied",
    errno.ENOENT: "not_found",
    errno.ENOTDIR: "not_found",
    errno.EEXIST: "not_found",  # a file where a folder should be
    errno.EIO: "io",
    errno.ETIMEDOUT: "timed_out",
}
PROVIDERS_WORDS = {
    "NO_SUCH_BUCKET": "not_found",
    "ACCESS_DENIED": "denied",
    "NETWORK_CONNECTION": "unreachable",
    "UNAVAILABLE": "unreachable",
    "Fail to get a new connection": "unreachable",
    "imeout": "timed_out",
    "PERMISSION_DENIED": "denied",
    "NOT_FOUND": "not_found",
}
REASON = re.compile(
    r"NETWORK_CONNECTION.*Details: (.+)"
    r"|ACCESS_DENIED during (\w+) operation"
    r"|NO_SUCH_BUCKET during \w+ operation: (.+)"
    r"|underlying error message was: (?:.*? CURL error \[\d+\]=)?(.+?) error_info="
    r"|Fail to get a new connection for: \S+ (.+)"
)
"""The reason in a provider's message, between operations, error codes and addresses; the operation that is denied."""
BEGINNINGS = {"unreachable": "cannot be reached: ", "denied": "access is denied: "}
LONGEST = 300
"""Characters of a provider's message: some libraries add a page of advice."""


class HistoryUnwritable(AdapterError):
    """`cause` is a word for metrics; the text has the details."""

    def __init__(self, cause: str, text: str) -> None:
        super().__init__(text)
        self.cause = cause


@contextlib.contextmanager
def translated(place: object) -> Iterator[None]:
    """Translates errors of the system and of pyarrow to HistoryUnwritable, which names the place."""
    try:
        yield
    except (OSError, pa.ArrowException) as error:
        cause = _cause_of(error)
        words = getattr(error, "strerror", None) or _words_of(error, cause)
        raise HistoryUnwritable(cause, f"{place}: {words}") from error


def _words_of(error: Exception, cause: str) -> str:
    match = REASON.search(str(error))
    reason = str(match[match.lastindex or 0] if match else error)
    return BEGINNINGS.get(cause, "") + textwrap.shorten(reason, LONGEST, placeholder=" …")


def _cause_of(error: OSError | pa.ArrowException) -> str:
    """Providers' libraries report only text, no error number."""
    number = getattr(error, "errno", None)
    said = (cause for words, cause in PROVIDERS_WORDS.items() if words in str(error))
    return CAUSES.get(number, "other") if number else next(said, "other")
