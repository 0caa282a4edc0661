"""Pure: which files of samples show what moved before the start, by their names alone.

Offsets are remembered more coarsely with age, so of older samples a few files are enough."""

import re
from bisect import bisect_right
from collections.abc import Iterable, Iterator
from datetime import UTC, datetime
from typing import NamedTuple

NAME = re.compile(r"(?P<writer>(?P<process>.+?)(?:-clock(?P<run>\d+))?)-(?P<first>\d{8}T\d{6}\.\d{6})Z\.parquet")
RECENT_SECONDS = 300.0
"""All files of this time before the start are read, because rates need every step."""
SPACING = 1.25
"""Each file that is read beyond that is older than the one after it by this factor."""
MOST_NEWEST = 8
"""Writers whose last file is read, because nobody knows up to when it has samples."""


class SampleFile(NamedTuple):
    path: str
    writer: str
    """In the words of the contract: a process, and the run of its clock if that was set."""
    process: str
    run: int
    first: float
    """The time of its first sample, in seconds since the epoch."""


def sample_file_at(path: str) -> SampleFile | None:
    """Returns None if the name is not one that an adapter writes."""
    match = NAME.fullmatch(path.rpartition("/")[2])
    if match is None:
        return None
    first = datetime.strptime(match["first"], "%Y%m%dT%H%M%S.%f").replace(tzinfo=UTC).timestamp()
    return SampleFile(path, match["writer"], match["process"], int(match["run"] or 1), first)


def contradicted(files: Iterable[SampleFile], now: float) -> frozenset[str]:
    """Returns the processes whose wall clock was set while they ran, or has shown a time later than `now`."""
    return frozenset(file.process for file in files if file.run > 1 or file.first > now)


def chosen(files: Iterable[SampleFile], now: float, depth: float) -> list[SampleFile]:
    """Returns the files to read, by time. `now` is the time of the start in seconds since the epoch; what is older than
    `depth` seconds does not count."""
    by_writer: dict[str, list[SampleFile]] = {}
    by_time = sorted((file for file in files if now - depth < file.first <= now), key=_first)
    for file in by_time:
        by_writer.setdefault(file.writer, []).append(file)
    newest = sorted((own[-1] for own in by_writer.values()), key=_first)
    picked = {*by_time[:1], *newest[-MOST_NEWEST:]}
    picked |= {file for own in by_writer.values() for file in own if file.first > now - RECENT_SECONDS}
    for time in _times(now, depth):
        picked |= _covering(time, list(by_writer.values()))
    return sorted(picked, key=_first)


def _times(now: float, depth: float) -> Iterator[float]:
    age = RECENT_SECONDS
    while age < depth:
        yield now - age
        age *= SPACING


def _covering(time: float, by_writer: Iterable[list[SampleFile]]) -> set[SampleFile]:
    """Returns the last file that was begun before, and the files of other writers that have samples of that time."""
    covering, begun = set(), []
    for own in by_writer:
        place = bisect_right(own, time, key=_first)
        begun += own[place - 1 : place]
        if 0 < place < len(own):
            covering.add(own[place - 1])
    return covering | {max(begun, key=_first)} if begun else covering


def _first(file: SampleFile) -> float:
    return file.first
