"""What compaction keeps beside its tables: `_inputs.json`, what a partition was made from, and `_skipped.json`."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass, field

from spark.files import File, Files
from spark.read_history import Skipped

RULES = 2
"""Of compaction itself: another number makes every hour be done again."""

ANY = "*"
"""In `writers`: every cluster, in an hour that only one writer wrote."""


@dataclass(frozen=True, slots=True)
class Record:
    """Of one compacted hour."""

    files: Mapping[str, int]
    """Name -> size of every file that lay there, skipped ones too."""
    started_from: str
    """`ends_with` of the hour before; empty: there was none."""
    carried: str
    """Digest of the values that it carries into the next hour."""
    writers: Mapping[str, str] = field(default_factory=dict)
    """Cluster -> who counted in the last minute."""
    rules: int = RULES

    @property
    def ends_with(self) -> str:
        return _digest({"carried": self.carried, "writers": dict(self.writers)})

    @property
    def identity(self) -> str:
        return _digest(asdict(self))

    def covers(self, files: Iterable[File]) -> bool:
        """Whether nothing new lies there; what is gone was removed by retention and stays in the tables."""
        return self.rules == RULES and all(self.files.get(file.name) == file.size for file in files)


def read_record(files: Files, folder: str) -> Record | None:
    """None: not compacted yet, or by something else."""
    try:
        return Record(**json.loads(files.read(f"deltas/{folder}/_inputs.json") or "{}"))
    except (ValueError, TypeError):
        return None


def write_record(files: Files, folder: str, record: Record, skipped: Iterable[Skipped]) -> None:
    """Into a folder that is staged."""
    files.write(f"{folder}/_skipped.json", json.dumps([asdict(each) for each in skipped], indent=1))
    files.write(f"{folder}/_inputs.json", json.dumps(asdict(record), indent=1))


def read_skipped(files: Files, folder: str) -> list[Skipped]:
    """Of one hour, as `date=…/hour=…`."""
    return [Skipped(**each) for each in json.loads(files.read(f"deltas/{folder}/_skipped.json") or "[]")]


def _digest(value: object) -> str:
    return hashlib.sha256(json.dumps(value, sort_keys=True).encode()).hexdigest()[:16]
