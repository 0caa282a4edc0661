"""What compaction notes beside its tables: what an hour or a day was made from, in one record each."""

import hashlib
import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace

import numpy as np
from numpy.typing import NDArray

from spark.errors import Unavailable
from spark.storage.protocol import File, HistoryFiles, Manifest
from spark.tables import layout
from spark.tables.columns import TableRows
from spark.tables.sample_files import MISPLACED, Skipped
from spark.tables.topic_parts import Bounds

RULES = 6
"""Of compaction itself: another number makes every hour be done again whose samples are there."""
OF_FILES = ("tables", "versions", "bounds")
"""What a record says of the files of its hour."""
RULES_WITH_MINUTES = 5
"""The first by which an hour has a table of its minutes."""
TEXT_BYTES = 8
_ODD = np.uint64(0x9E3779B97F4A7C15)


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
    """Name -> size of its tables' files; empty: written before records had them."""
    versions: Mapping[str, str] = field(default_factory=dict)
    """Name -> version of these files: the ETag of an object; empty: written before records had them."""
    bounds: Bounds = ()
    """Of the parts that its tables have a file each of."""
    rules: int = RULES

    @property
    def ends_with(self) -> str:
        return _digest({"carried": self.carried, "writers": dict(self.writers)})

    @property
    def identity(self) -> str:
        """The same however its hour was divided."""
        return _digest({name: value for name, value in asdict(self).items() if name not in OF_FILES})

    def paths(self, hour: str, table: str) -> list[str]:
        """Of the table's files; `hour`: the record's."""
        return layout.hour_tables(hour, table, len(self.bounds) + 1)

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
        on when it had lost its reservation, may have put one of its own there. Versions are compared if both are
        known."""
        files = list(stored)
        is_whole = not self.tables or {file.name: file.size for file in files} == self.tables
        known = (file for file in files if file.version and file.name in self.versions)
        return is_whole and all(self.versions[file.name] == file.version for file in known)

    def covers(self, files: Iterable[File]) -> bool:
        """Whether nothing new lies there; what is gone was removed by retention and stays in the tables."""
        return self.rules == RULES and all(self.files.get(file.name) == file.size for file in files)


def read_record(files: HistoryFiles, hour: str) -> Record | None:
    """`hour`: its name, `date=…/hour=…`. None: not compacted yet, or by something else."""
    try:
        document = json.loads(files.read(f"{layout.hour_folder(hour)}/{layout.RECORD}") or "{}")
        skipped = tuple(Skipped(**each) for each in document.get("skipped", ()))
        bounds = tuple(tuple(topic) for topic in document.get("bounds", ()))
        record = Record(**{**document, "skipped": skipped, "bounds": bounds})
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


def manifest_of_hour(record: Record) -> Manifest:
    """What is written beside its tables. Raises Unavailable where others lie there."""

    def text(stored: Sequence[File]) -> str:
        if not record.has_its_tables(stored):
            raise Unavailable("another run published the same hour at the same time; the next run makes it again")
        return json.dumps(asdict(replace(record, versions={file.name: file.version for file in stored})), indent=1)

    return Manifest(layout.RECORD, text)


def manifest_of_day(hours: Mapping[str, Summed]) -> Manifest:
    text = json.dumps({hour: asdict(each) for hour, each in hours.items()}, indent=1)
    return Manifest(layout.RECORD, lambda _: text)


def _digest(value: object) -> str:
    return hashlib.sha256(json.dumps(value, sort_keys=True).encode()).hexdigest()[:16]


@dataclass(frozen=True, slots=True)
class Digest:
    """Of rows, in any order and however they are divided: the sum of a number that each row's values give."""

    rows: int
    sum: int

    def __str__(self) -> str:
        return f"{self.rows}-{self.sum:016x}"


def digest_of(rows: TableRows) -> Digest:
    """The same for the same values, whatever the places of their texts."""
    number = np.zeros(len(rows), np.uint64)
    for name in sorted(rows.columns):
        number = _mixed(number * _ODD + _bits_of(rows, name))
    return Digest(len(rows), int(number.sum(dtype=np.uint64)))


def digest_of_all(digests: Iterable[Digest]) -> Digest:
    """Of the rows that have these digests, together."""
    parts = list(digests)
    return Digest(sum(each.rows for each in parts), sum(each.sum for each in parts) % 2**64)


def _bits_of(rows: TableRows, name: str) -> NDArray[np.uint64]:
    values = rows[name]
    if name in rows.texts:
        hashes = [hashlib.sha256(text.encode()).digest()[:TEXT_BYTES] for text in rows.texts[name].to_pylist()]
        # The last one is that of no text, whose place is -1.
        return np.frombuffer(b"".join([*hashes, bytes(TEXT_BYTES)]), np.uint64)[values]
    numbers = values.astype(np.float64 if values.dtype.kind == "f" else np.int64)
    return numbers.view(np.uint64)


def _mixed(number: NDArray[np.uint64]) -> NDArray[np.uint64]:
    """Every bit of the result depends on every bit of the number (the last steps of SplitMix64)."""
    number = (number ^ (number >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    number = (number ^ (number >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return number ^ (number >> np.uint64(31))
