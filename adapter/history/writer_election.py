"""Which of several replicas writes the history, and how far it is written."""

import re
import secrets
import socket
from collections.abc import Mapping
from types import MappingProxyType
from typing import Protocol

MINUTE_SECONDS = 60.0

Marks = Mapping[str, float]
"""Cluster -> start of its last cycle up to which the history is written; seconds since the epoch."""


class WriterElection(Protocol):
    """Any thread may call it."""

    def is_ours(self) -> bool:
        """Whether this process may write now."""

    def is_vacant(self) -> bool:
        """Whether no other process writes, as far as this one can see."""

    @property
    def written(self) -> Marks: ...

    def note_written(self, until: Marks) -> None: ...


class SoleWriter:
    """Every turn is ours."""

    written: Marks = MappingProxyType({})

    def is_ours(self) -> bool:
        return True

    def is_vacant(self) -> bool:
        return False

    def note_written(self, until: Marks) -> None:
        pass


def is_covered(until: Marks, written: Marks) -> bool:
    """Whether others have written everything up to there.

    The minute in which they stopped is not covered: in each minute one writer counts, so one must have all of it."""
    return all(at < written.get(cluster, 0.0) // MINUTE_SECONDS * MINUTE_SECONDS for cluster, at in until.items())


def process_name() -> str:
    """Returns the name of the pod or machine and a random part, so that the next process has another name."""
    host = re.sub(r"[^A-Za-z0-9-]", "-", socket.gethostname()).strip("-")[:63]
    return f"{host or 'adapter'}-{secrets.token_hex(4)}"
