"""A generated history, written by the adapter's own code.

python -m local.histories.plausible_history LOCATION                      a week of `plausible_world`, 67 series
python -m local.histories.plausible_history LOCATION --partitions 10000   a large day, for benchmarks

The same seed creates the same files. The week has gaps, two writers for an hour, and a broker that was unavailable."""

from __future__ import annotations

import argparse
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from adapter.history.files import Folder
from adapter.history.parquet import encoded
from adapter.history.rows import ISOLATIONS, NULL, OFFSET_RESETS, STATES, Rows
from adapter.history.writer import path_for
from adapter.lag.snapshot import State
from local.histories import large_day
from local.histories.plausible_world import MINUTE_SECONDS, MINUTES, MONDAY, NEW, OLD, Numbers, Read, at, week

SEED = 20261109
CLUSTER = "main"
WRITERS = ("kafka-lag-adapter-7d9f4-x2k8p-5be01c77", "kafka-lag-adapter-7d9f4-q6w4t-90f3a2d1")
HOUR = 60
DOWN = range(at(5, 2), at(5, 5))
"""Minutes of Saturday in which no adapter ran."""
BOTH = range(at(1, 10), at(1, 11))
"""Minutes of Tuesday in which two adapters wrote."""
SECOND_WRITERS_DELAY = 20.0
"""Seconds by which its cycles begin later."""
MOST_MEMBERS = 16
AWAY, AWAY_PARTITIONS = range(at(6, 20), at(6, 20, 10)), 3
"""Minutes of Sunday in which a broker, the leader of every third partition, did not answer."""


@dataclass(frozen=True, slots=True)
class Written:
    """What was written."""

    files: int
    rows: int
    size: int
    until: datetime
    """The end of the last hour."""


def write_week(location: Path, seed: int = SEED) -> Written:
    """Writes the week, a file for each hour and writer."""
    reads = week(seed)
    first, second = WRITERS
    hours = [range(begin, begin + HOUR) for begin in range(0, MINUTES, HOUR)]
    parts = [(first, hour, 0.0) for hour in hours if hour.start not in DOWN]
    parts += [(second, hour, SECOND_WRITERS_DELAY) for hour in hours if hour.start in BOTH]
    written = [_write(location, writer, _rows(reads, hour, delay)) for writer, hour, delay in parts]
    return _summed(written, datetime.fromtimestamp(MONDAY.timestamp() + MINUTES * MINUTE_SECONDS, UTC))


def write_large_day(
    location: Path, partitions: int, interval: int, days: int, seed: int = SEED, *, is_shuffled: bool = False
) -> Written:
    """Writes partitions x 86,400 / interval rows per day, in files of five minutes each. `is_shuffled` uses
    `large_day.shuffled_flushes`."""
    flushes = large_day.shuffled_flushes if is_shuffled else large_day.flushes
    written = [_write(location, WRITERS[0], rows) for rows in flushes(partitions, interval, days, seed)]
    return _summed(written, datetime.fromtimestamp(MONDAY.timestamp() + days * 86_400, UTC))


def _write(location: Path, writer: str, rows: Rows) -> tuple[int, int]:
    content = encoded(rows)
    Folder(location).write(path_for(writer, rows.first_sample), content)
    return len(rows), content.size


def _summed(written: list[tuple[int, int]], until: datetime) -> Written:
    return Written(len(written), sum(rows for rows, _ in written), sum(size for _, size in written), until)


def _rows(reads: list[Read], minutes: range, delay: float) -> Rows:
    """Returns the rows of some minutes, sorted by series."""
    parts = [_of_read(read, minutes, delay) for read in reads]
    groups = sorted({read.reader.group for read in reads})
    topics = sorted({read.reader.topic for read in reads})
    generations = [f"{topic}-{number}" for topic in topics for number in (OLD, NEW)]
    for part, read in zip(parts, reads, strict=True):
        topic = topics.index(read.reader.topic)
        group = groups.index(read.reader.group)
        part["group"] = np.full_like(part["group"], group)
        part["owner"] = np.where(part["owner"] < 0, NULL, part["owner"] + group * MOST_MEMBERS).astype(np.int32)
        part["topic"] = np.full_like(part["topic"], topic)
        part["topic_id"] = part["topic_id"] + 2 * topic
    names = {
        "cluster": [CLUSTER],
        "group": groups,
        "topic": topics,
        "topic_id": [_topic_id(text) for text in generations],
        "state": STATES,
        "isolation": ISOLATIONS,
        "owner": [f"{group}-{number}" for group in groups for number in range(MOST_MEMBERS)],
        "offset_reset": OFFSET_RESETS,
    }
    return Rows({name: np.concatenate([part[name] for part in parts]) for name in parts[0]}, names)


def _topic_id(text: str) -> str:
    """Returns 22 letters, as in Kafka's own ids."""
    return (text.replace("-", "") + "A" * 22)[:20] + text[-1] + "A"


def _of_read(read: Read, minutes: range, delay: float) -> dict[str, Numbers]:
    part = slice(minutes.start, minutes.stop)
    share = delay / MINUTE_SECONDS
    committed, log_end, log_start = (
        _later(column, minutes, share) for column in (read.committed, read.log.log_end, read.log.log_start)
    )
    partitions, count = committed.shape
    is_away = _is_away(partitions, minutes)
    state = np.where(committed < log_start, int(State.TRUNCATED), int(State.OK))
    state = np.where(committed < 0, int(State.NO_COMMIT), state)
    state = np.where(is_away, int(State.UNKNOWN), state)
    sampled = _microseconds(minutes, delay)
    # Each broker's answer comes at its own time, a few milliseconds into the cycle.
    received = sampled + 9_000 + 1_500 * (np.arange(partitions)[:, np.newaxis] % 3)
    columns = {
        "sampled_at": np.tile(sampled, partitions),
        "received_at": np.where(is_away, NULL, received),
        "interval_seconds": np.full(partitions * count, MINUTE_SECONDS, dtype=np.float32),
        "cluster": np.zeros(partitions * count, dtype=np.int32),
        "group": np.zeros(partitions * count, dtype=np.int32),
        "topic": np.zeros(partitions * count, dtype=np.int32),
        "topic_id": np.tile(read.log.generation[part], partitions),
        "partition": np.repeat(np.arange(partitions, dtype=np.int32), count),
        "committed": committed,
        "log_end": np.where(is_away, NULL, log_end),
        "log_start": log_start,
        "state": state.astype(np.int32),
        "members": np.tile(read.reader.members[part], partitions),
        "isolation": np.zeros(partitions * count, dtype=np.int32),
        "owner": _owner(partitions, read.reader.members[part]),
        "offset_reset": np.zeros(partitions * count, dtype=np.int32),
        "last_commit": np.full(partitions * count, NULL, dtype=np.int64),
        "has_marker": np.zeros(partitions * count, dtype=bool),
    }
    return {name: column.reshape(-1) for name, column in columns.items()}


def _owner(partitions: int, members: NDArray[np.int32]) -> Numbers:
    """Assigns the partitions of a topic like the RangeAssignor; there are members in every minute, or NULL."""
    number = np.maximum(members, 1)
    least, more = partitions // number, partitions % number
    partition = np.arange(partitions)[:, np.newaxis]
    in_larger = partition < more * (least + 1)
    owner = np.where(
        in_larger, partition // (least + 1), more + (partition - more * (least + 1)) // np.maximum(least, 1)
    )
    return np.where(members > 0, owner, NULL)


def _is_away(partitions: int, minutes: range) -> Numbers:
    in_time = np.isin(np.arange(minutes.start, minutes.stop), np.arange(AWAY.start, AWAY.stop))
    return np.outer(np.arange(partitions) % AWAY_PARTITIONS == 0, in_time)


def _later(column: Numbers, minutes: range, share: float) -> Numbers:
    """Returns the columns of these minutes, or those at this fraction of the way to the next minute."""
    now = column[:, minutes.start : minutes.stop]
    if not share:
        return now
    following = column[:, minutes.start + 1 : minutes.stop + 1]
    return now + ((following - now) * share).astype(np.int64)


def _microseconds(minutes: range, delay: float) -> Numbers:
    begin = int((MONDAY.timestamp() + delay) * 1e6)
    return begin + np.arange(minutes.start, minutes.stop, dtype=np.int64) * int(MINUTE_SECONDS * 1e6)


def _arguments(arguments: list[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog="python -m local.histories.plausible_history", description=__doc__.split("\n")[0]
    )
    parser.add_argument("location", type=Path, help="a folder")
    parser.add_argument("--partitions", type=int, help="a large day of so many, instead of the week")
    parser.add_argument("--interval", type=int, default=15, help="seconds between two samples of a large day")
    parser.add_argument("--days", type=int, default=1)
    parser.add_argument("--seed", type=int, default=SEED)
    return parser.parse_args(arguments)


def main(arguments: list[str] | None = None) -> None:
    given = _arguments(arguments)
    if given.partitions is None:
        written = write_week(given.location, given.seed)
    else:
        written = write_large_day(given.location, given.partitions, given.interval, given.days, given.seed)
    print(f"{written.rows} rows, {written.files} files, {written.size} bytes in {given.location}")


if __name__ == "__main__":
    main()
