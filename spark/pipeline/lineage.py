"""What compaction keeps beside its tables: `_inputs.json`, what a partition was made from, and `_skipped.json`."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass, field

from spark.storage.protocol import File, Files
from spark.tables.sample_files import MISPLACED, Skipped

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
        record = Record(**json.loads(files.read(f"deltas/{folder}/_inputs.json") or "{}"))
    except (ValueError, TypeError):
        return None
    return record if isinstance(record.files, dict) and isinstance(record.writers, dict) else None


def write_record(files: Files, folder: str, record: Record, skipped: Iterable[Skipped]) -> None:
    """Into a folder that is staged."""
    files.write(f"{folder}/_skipped.json", json.dumps([asdict(each) for each in skipped], indent=1))
    files.write(f"{folder}/_inputs.json", json.dumps(asdict(record), indent=1))


def read_skipped(files: Files, folder: str) -> list[Skipped]:
    """Of one hour, as `date=…/hour=…`; nothing where that cannot be read any more."""
    try:
        return [Skipped(**each) for each in json.loads(files.read(f"deltas/{folder}/_skipped.json") or "[]")]
    except (ValueError, TypeError):
        return []


@dataclass(frozen=True, slots=True)
class Summed:
    """An hour that a day's tables were made from."""

    identity: str
    """Of its record."""
    files: tuple[str, ...] = ()
    """Names of the files whose rows it has."""


def read_summed(files: Files, day: str) -> dict[str, Summed]:
    """By the hour's folder, `date=…/hour=…`; none where the day has no tables, or other ones."""
    try:
        found = json.loads(files.read(f"hourly/date={day}/_inputs.json") or "{}")
        return {folder: Summed(each["identity"], tuple(each["files"])) for folder, each in found.items()}
    except (ValueError, TypeError, KeyError, AttributeError):
        return {}


def write_summed(files: Files, folder: str, summed: Mapping[str, Summed]) -> None:
    """Into a folder that is staged."""
    files.write(f"{folder}/_inputs.json", json.dumps({hour: asdict(each) for hour, each in summed.items()}, indent=1))


def used_in(files: Files, folder: str, record: Record) -> frozenset[str]:
    """Names of the files whose rows an hour has, or some of them."""
    unused = {each.path.rpartition("/")[2] for each in read_skipped(files, folder) if each.reason != MISPLACED}
    return frozenset(record.files.keys() - unused)


def _digest(value: object) -> str:
    return hashlib.sha256(json.dumps(value, sort_keys=True).encode()).hexdigest()[:16]
