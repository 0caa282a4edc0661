"""Random small histories: one cluster each, so that one run of Spark proves many of them.

In them topics are made again, log ends and commits go down, commits jump, values are unknown or as large as they may
be, samples are missing, there twice or at an hour's very ends, names are empty or strange, up to three writers write
the same minutes, rows lie in another hour's folder, and some files come late.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime, timedelta
from pathlib import Path
from random import Random

from tests.support.history.written_history import START, Row, sample, write, write_file

STATES = ("ok", "ok", "ok", "ok", "ok", "truncated", "stale", "ahead", "unknown", "error", "leaderless")
NAMES = (
    "",
    " ",
    "g",
    "G",
    "é",
    "e\u0301",
    "\uffff",
    "\U00010000",
    "\\udcff",
    "a\x1fb",
    "b\x00",
    "null",
    "日本語",
    "x" * 249,
)
"""U+10000 comes before U+FFFF where texts are sorted by UTF-16, after it by bytes and by code points."""
LAST_OFFSET = 2**53
LAST_PARTITION = 2**31 - 1
MICROSECOND = 1e-6
HOUR_SECONDS = 3600


@dataclass(frozen=True, slots=True)
class Written:
    """Rows with their `writer`; late ones are written after a first compaction."""

    rows: tuple[Row, ...]
    is_late: bool
    """Whether their file comes late."""
    is_misplaced: bool = False
    """Whether it lies in the folder of the hour after its own, so that no row of it counts."""


@dataclass(frozen=True, slots=True)
class Style:
    """What all series of one history have in common."""

    intervals: tuple[float, ...]
    groups: tuple[str, ...]
    least: int
    """Of all offsets."""
    has_last_partition: bool
    is_stale: bool


def history(cluster: str, chance: Random) -> list[Written]:
    """A few hours of one cluster, in several files."""
    style = _style(chance)
    rows = [row for series in range(chance.randint(1, 4)) for row in _series(cluster, series, style, chance)]
    return list(_files(rows, chance.choice([["a"]] * 3 + [["a", "b"], ["c", "a", "b"]]), chance))


def _style(chance: Random) -> Style:
    interval = chance.choice([10.0, 15.0, 60.0])
    return Style(
        intervals=(interval,) if chance.random() < 0.7 else (interval, 12.5),
        groups=("g0", "g1") if chance.random() < 0.5 else (chance.choice(NAMES), chance.choice(NAMES)),
        least=0 if chance.random() < 0.8 else LAST_OFFSET - 2000,
        has_last_partition=chance.random() < 0.2,
        is_stale=chance.random() < 0.1,
    )


def _series(cluster: str, number: int, style: Style, chance: Random) -> Iterator[Row]:
    topic = f"t{number // 3}"
    partition = LAST_PARTITION - number if style.has_last_partition else number
    end, commit, start, generation = chance.randint(0, 500), chance.randint(0, 500), 0, 0
    interval = chance.choice(style.intervals)
    at, told = chance.choice([0.0, 3500.0]), set[float]()
    for _ in range(chance.randint(1, 14)):
        at += interval if number else chance.choice([interval] * 8 + [2 * interval, 400.0, 4000.0])
        step = chance.random()
        end = max(0, end - 50) if step < 0.05 else end + chance.randint(0, 40)
        if step > 0.95:
            generation, end, commit, start = generation + 1, 5, 0, 0
        commit = chance.choice(
            [commit, commit, min(end, commit + chance.randint(0, 60)), max(0, commit - 5), end, end + 9]
        )
        start = chance.choice([start, start, start, min(end, start + 30)])
        sampled = _perhaps_at_an_end(at, chance)
        if sampled in told:
            continue
        told.add(sampled)
        yield sample(
            sampled,
            *_known(style.least + commit, style.least + end, chance),
            cluster=cluster,
            group=style.groups[number % 2],
            topic=topic,
            topic_id=chance.choice([f"id{generation}", f"id{generation}", None]) if number == 3 else f"id{generation}",
            partition=partition,
            log_start=chance.choice([style.least + start] * 3 + [None]),
            interval_seconds=interval,
            members=chance.choice([None, 1, 2, 5]),
            state="stale" if style.is_stale else chance.choice(STATES),
            owner=chance.choice([None, "m-0", "m-1"]),
            offset_reset=chance.choice([None, "latest", "earliest"]),
            last_commit=chance.choice([None, style.least + commit]),
            has_marker=chance.random() < 0.1,
        )


def _perhaps_at_an_end(seconds: float, chance: Random) -> float:
    """The last or the first microsecond of an hour, now and then."""
    hour = seconds // HOUR_SECONDS * HOUR_SECONDS
    return chance.choice([seconds] * 18 + [hour + HOUR_SECONDS - MICROSECOND, hour + HOUR_SECONDS])


def _known(commit: int, end: int, chance: Random) -> tuple[int | None, int | None]:
    return chance.choice([(commit, end)] * 6 + [(None, end), (commit, None), (None, None)])


def _files(rows: list[Row], writers: list[str], chance: Random) -> Iterator[Written]:
    """Each writer has most of the rows; a few are there twice; a row without a commit may say so."""
    for writer in writers:
        own = [_stated(row, chance) | {"writer": writer} for row in rows if chance.random() < 0.95]
        cut = chance.randint(0, len(own))
        for part in (own[:cut], own[cut:]):
            if part:
                twins = [row | _other(chance) for row in part if chance.random() < 0.1]
                yield Written((*part, *twins), is_late=chance.random() < 0.3)
                if chance.random() < 0.05:
                    yield Written(tuple(part), is_late=chance.random() < 0.3, is_misplaced=True)


def _other(chance: Random) -> Row:
    """What tells a twin from its row."""
    return chance.choice(
        [{"log_end": chance.randint(0, 900)}, {"members": 9}, {"interval_seconds": 30.0}, {"log_start": None}, {}]
    )


def _stated(row: Row, chance: Random) -> Row:
    is_absent = row["committed"] is None and chance.random() < 0.7
    received = START + timedelta(seconds=chance.randint(0, 9999)) if chance.random() < 0.7 else None
    return row | {"state": "no_commit" if is_absent else row["state"], "received_at": received}


def lay(root: Path, written: list[Written]) -> None:
    """One file for each part: its first sample and number tell it from the others."""
    for number, part in enumerate(written):
        writer = str(part.rows[0]["writer"])
        rows = [{name: value for name, value in row.items() if name != "writer"} for row in part.rows]
        for path in _misplaced(root, rows, writer) if part.is_misplaced else write(root, rows, writer):
            path.rename(path.with_name(f"{path.stem}.{number}.parquet"))


def _misplaced(root: Path, rows: list[Row], writer: str) -> list[Path]:
    last = max(row["sampled_at"] for row in rows if isinstance(row["sampled_at"], datetime))
    return [write_file(root / "samples" / f"{last + timedelta(hours=1):date=%Y-%m-%d/hour=%H}", rows, writer)]
