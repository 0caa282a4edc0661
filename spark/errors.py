"""What ends a run with a sentence instead of tables."""

import re
from collections.abc import Iterator, Mapping


class ReportError(Exception):
    """All of ours. Spark's tasks return them to the driver, so they can be pickled."""


class Unusable(ReportError):
    """The location or a flag cannot be used: status 2; the text is meant for the user."""


class Unavailable(ReportError):
    """The location's store does not answer, or not as it should, or another run works on it: status 1; the text is
    meant for the user."""


class Replaced(Unavailable):
    """Another object took the place of one that was read in several requests."""


class Interrupted(ReportError):
    """SIGTERM or SIGINT came: status 143 or 130; the next run starts again what this one did not finish."""


class SampleFilesDamaged(ReportError):
    """Files of samples whose footers are sound, but not their rows."""

    def __init__(self, reasons: Mapping[str, str]) -> None:
        super().__init__(reasons)
        self.reasons = reasons
        """Path of a file -> what is wrong with it."""

    def __str__(self) -> str:
        return "; ".join(f"{path} {reason}" for path, reason in self.reasons.items())


class TableUnreadable(ReportError):
    """A table that compaction made is missing or cannot be read, or several."""

    def __init__(self, *paths: str) -> None:
        super().__init__(*paths)
        self.paths = paths

    def __str__(self) -> str:
        return f"{', '.join(self.paths)} is missing or cannot be read"


OF_BUCKETS = ("AWS Error", "google::cloud::Status")
"""What pyarrow says of a store that does not answer; of this machine's errors it gives the number."""


def is_of_system(error: Exception) -> bool:
    """Whether a file was not there, not allowed or not reached: nothing that is known of its content."""
    return isinstance(error, OSError) and (error.errno is not None or any(each in str(error) for each in OF_BUCKETS))


def said_by(error: Exception) -> str:
    """One line of what Spark or the system says, from the first cause."""
    return list(_causes(error))[-1].strip().partition("\n")[0] or type(error).__name__


def _causes(error: Exception) -> Iterator[str]:
    """The texts of an exception and, where it came from Java, of its causes."""
    java = getattr(error, "java_exception", None)
    if java is None:
        yield _text_of(error)
    while java is not None:
        yield str(java.getMessage() or java.getClass().getSimpleName())
        java = java.getCause()


def _text_of(error: Exception) -> str:
    """The system's errors begin with a number, and those of pyarrow have one in their middle as well."""
    if not isinstance(error, OSError) or not error.strerror:
        return str(error)
    words = re.sub(r"\. Detail: \[errno \d+\]", ":", error.strerror)
    return words if error.filename is None else f"{error.filename}: {words}"
