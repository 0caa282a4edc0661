"""What a location of the history may meet with: whatever the system or a provider's library says, in our words."""

from __future__ import annotations

import contextlib
import errno
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
    "imeout": "timed_out",
    "PERMISSION_DENIED": "denied",
    "NOT_FOUND": "not_found",
}


class HistoryUnwritable(AdapterError):
    """`cause`: a word for metrics; the text says more."""

    def __init__(self, cause: str, text: str) -> None:
        super().__init__(text)
        self.cause = cause


@contextlib.contextmanager
def translated(place: object) -> Iterator[None]:
    """Raises HistoryUnwritable, which names the place, for errors of the system and of pyarrow."""
    try:
        yield
    except (OSError, pa.ArrowException) as error:
        words = getattr(error, "strerror", None) or " ".join(str(error).split())
        raise HistoryUnwritable(_cause_of(error), f"{place}: {words}") from error


def _cause_of(error: OSError | pa.ArrowException) -> str:
    """Providers' libraries give no number, only words."""
    number = getattr(error, "errno", None)
    said = (cause for words, cause in PROVIDERS_WORDS.items() if words in str(error))
    return CAUSES.get(number, "other") if number else next(said, "other")
