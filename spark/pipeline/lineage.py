"""What compaction notes beside its tables: what an hour or a day was made from, in one record each."""

import hashlib
import json
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass, field

import numpy as np

from spark.storage.protocol import File, HistoryFiles
from spark.tables import layout
from spark.tables.columns import TableRows
from spark.tables.sample_files import MISPLACED, Skipped

RULES = 5
"""Of compaction itself: another number makes every hour be done again whose samples are there."""
RULES_WITH_MINUTES = 5
"""The first by which an hour has a table of its minutes."""
TEXT_BYTES = 8


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
    skipped: tuple[Skipped, ...] = ()
    """What was left out of it."""
    tables: Mapping[str, int] = field(default_factory=dict)
    """Name -> size of its tables; empty: written before records had them."""
    rules: int = RULES

    @property
    def ends_with(self) -> str:
        return _digest({"carried": self.carried, "writers": dict(self.writers)})

    @property
    def identity(self) -> str:
        """The same however its hour was divided, which the sizes of its tables depend on."""
        return _digest({name: value for name, value in asdict(self).items() if name != "tables"})

    @property
    def has_minutes(self) -> bool:
        return self.rules >= RULES_WITH_MINUTES

    @property
    def used(self) -> frozenset[str]:
        """Names of the files whose rows the hour has, or some of them."""
        unused = {each.path.rpartition("/")[2] for each in self.skipped if each.reason != MISPLACED}
        return frozenset(self.files.keys() - unused)

    def has_its_tables(self, stored: Iterable[File]) -> bool:
        """Whether nothing but these lies in the hour's folder. Another run that was frozen while it published, and went
        on when it had lost its reservation, may have put one of its own there."""
        return not self.tables or {file.name: file.size for file in stored} == self.tables

    def covers(self, files: Iterable[File]) -> bool:
        """Whether nothing new lies there; what is gone was removed by retention and stays in the tables."""
        return self.rules == RULES and all(self.files.get(file.name) == file.size for file in files)


def read_record(files: HistoryFiles, hour: str) -> Record | None:
    """`hour`: its name, `date=…/hour=…`. None: not compacted yet, or by something else."""
    try:
        document = json.loads(files.read(f"{layout.hour_folder(hour)}/{layout.RECORD}") or "{}")
        record = Record(**{**document, "skipped": tuple(Skipped(**each) for each in document.get("skipped", ()))})
    except (ValueError, TypeError, AttributeError):
        return None
    return record if isinstance(record.files, dict) and isinstance(record.writers, dict) else None


@dataclass(frozen=True, slots=True)
class Summed:
    """An hour that a day's tables were made from."""

    identity: str
    """Of its record."""
    files: tuple[str, ...] = ()
    """Names of the files whose rows it has."""


def read_summed(files: HistoryFiles, day: str) -> dict[str, Summed]:
    """By the hour's name; none where the day has no tables, or other ones."""
    try:
        document = json.loads(files.read(f"{layout.hourly_folder(day)}/{layout.RECORD}") or "{}")
        return {hour: Summed(each["identity"], tuple(each["files"])) for hour, each in document.items()}
    except (ValueError, TypeError, KeyError, AttributeError):
        return {}


def write_record(files: HistoryFiles, folder: str, record: Record | Mapping[str, Summed]) -> None:
    """Into a folder that is staged: of an hour, or of the hours of a day."""
    document = asdict(record) if isinstance(record, Record) else {hour: asdict(each) for hour, each in record.items()}
    files.write(f"{folder}/{layout.RECORD}", json.dumps(document, indent=1))


def _digest(value: object) -> str:
    return hashlib.sha256(json.dumps(value, sort_keys=True).encode()).hexdigest()[:16]


def digest_of(rows: TableRows) -> str:
    """The same for the same values, whatever the places of their texts."""
    whole = hashlib.sha256()
    for name in sorted(rows.columns):
        values = rows[name]
        if name in rows.texts:
            hashes = [hashlib.sha256(text.encode()).digest()[:TEXT_BYTES] for text in rows.texts[name].to_pylist()]
            # The last one is that of no text, whose place is -1.
            values = np.frombuffer(b"".join([*hashes, bytes(TEXT_BYTES)]), np.uint64)[values]
        whole.update(hashlib.sha256(np.ascontiguousarray(values).tobytes()).digest())
    return f"{len(rows)}-{whole.hexdigest()[:16]}"
