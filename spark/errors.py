"""What ends a run with a sentence instead of tables."""

from __future__ import annotations

from collections.abc import Iterator, Mapping


class ReportError(Exception):
    """All of ours. Spark's tasks return them to the driver, so they can be pickled."""


class Unusable(ReportError):
    """The location or a flag cannot be used: status 2; the text is meant for the user."""


class Unreachable(ReportError):
    """The location's store does not answer, or not as it should: status 1; the text is meant for the user."""


class Occupied(ReportError):
    """Another run works on the location: status 1; the text is meant for the user."""


class Interrupted(ReportError):
    """SIGTERM or SIGINT came: status 143, and what was begun is begun again by the next run."""


class Damaged(ReportError):
    """Files whose footers are sound, but not their rows."""

    def __init__(self, reasons: Mapping[str, str]) -> None:
        super().__init__(reasons)
        self.reasons = reasons
        """Path of a file -> what is wrong with it."""

    def __str__(self) -> str:
        return "; ".join(f"{path} {reason}" for path, reason in self.reasons.items())


class Spoilt(ReportError):
    """A table of an hour, made before, that is missing or cannot be read."""

    def __init__(self, table: str, folder: str) -> None:
        super().__init__(table, folder)
        self.table, self.folder = table, folder
        """`folder`: `date=…/hour=…`."""

    def __str__(self) -> str:
        return f"{self.table}/{self.folder} is missing or cannot be read"


OF_BUCKETS = ("AWS Error", "google::cloud::Status")
"""What pyarrow says of a store that does not answer; of this machine's errors it gives the number."""


def is_of_system(error: Exception) -> bool:
    """Whether a file was not there, not allowed or not reached: nothing that is known of its content."""
    return isinstance(error, OSError) and (error.errno is not None or any(each in str(error) for each in OF_BUCKETS))


UNREADABLE = "FAILED_READ_FILE"
"""How Spark's message about a file begins whose footer is sound, but not its pages."""

VANISHED = "FILE_NOT_EXIST"


def said_by(error: Exception) -> str:
    """One line of what Spark or the system says, from the cause that tells most."""
    causes = list(_causes(error))
    telling = next((cause for cause in causes if UNREADABLE in cause), causes[-1])
    return telling.strip().partition("\n")[0] or type(error).__name__


def is_about(error: Exception, path: str) -> bool:
    """Whether Spark says that this file, which is there, cannot be read."""
    return any(UNREADABLE in cause and path in cause and VANISHED not in cause for cause in _causes(error))


def _causes(error: Exception) -> Iterator[str]:
    """The texts of an exception and, where it came from Java, of its causes."""
    java = getattr(error, "java_exception", None)
    if java is None:
        yield str(error)
    while java is not None:
        yield str(java.getMessage() or java.getClass().getSimpleName())
        java = java.getCause()
