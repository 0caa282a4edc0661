"""Random small histories: one cluster each, so that one run of Spark proves many of them.

In them topics are made again, log ends and commits go down, commits jump, values are unknown, samples are missing or
there twice, two writers write the same minutes, and some files come late.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path
from random import Random

from tests.written_history import START, Row, sample, write

STATES = ("ok", "ok", "ok", "ok", "ok", "truncated", "stale", "ahead", "unknown", "error", "leaderless")


@dataclass(frozen=True, slots=True)
class Written:
    """Rows with their `writer`; late ones are written after a first compaction."""

    rows: tuple[Row, ...]
    is_late: bool
    """Whether their file comes late."""


def history(cluster: str, chance: Random) -> list[Written]:
    """A few hours of one cluster, in several files."""
    interval = chance.choice([10.0, 15.0, 60.0])
    rows = [row for series in range(chance.randint(1, 4)) for row in _series(cluster, series, interval, chance)]
    writers = ["a", "b"] if chance.random() < 0.4 else ["a"]
    return list(_files(rows, writers, chance))


def _series(cluster: str, number: int, interval: float, chance: Random) -> Iterator[Row]:
    group, topic, partition = f"g{number % 2}", f"t{number // 3}", number
    end, commit, start, generation = chance.randint(0, 500), chance.randint(0, 500), 0, 0
    at = chance.choice([0.0, 3500.0])
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
        yield sample(
            at,
            *_known(commit, end, chance),
            cluster=cluster,
            group=group,
            topic=topic,
            topic_id=chance.choice([f"id{generation}", f"id{generation}", None]) if number == 3 else f"id{generation}",
            partition=partition,
            log_start=chance.choice([start, start, start, None]),
            interval_seconds=interval,
            members=chance.choice([None, 1, 2, 5]),
            state=chance.choice(STATES),
        )


def _known(commit: int, end: int, chance: Random) -> tuple[int | None, int | None]:
    return chance.choice([(commit, end)] * 6 + [(None, end), (commit, None), (None, None)])


def _files(rows: list[Row], writers: list[str], chance: Random) -> Iterator[Written]:
    """Each writer has most of the rows; a few are there twice; a row without a commit may say so."""
    for writer in writers:
        own = [_stated(row, chance) | {"writer": writer} for row in rows if chance.random() < 0.95]
        cut = chance.randint(0, len(own))
        for part in (own[:cut], own[cut:]):
            if part:
                twins = [row | {"log_end": chance.randint(0, 900)} for row in part if chance.random() < 0.05]
                yield Written((*part, *twins), is_late=chance.random() < 0.3)


def _stated(row: Row, chance: Random) -> Row:
    is_absent = row["committed"] is None and chance.random() < 0.7
    received = START + timedelta(seconds=chance.randint(0, 9999)) if chance.random() < 0.7 else None
    return row | {"state": "no_commit" if is_absent else row["state"], "received_at": received}


def lay(root: Path, written: list[Written]) -> None:
    """One file for each part: its first sample and number tell it from the others."""
    for number, part in enumerate(written):
        writer = part.rows[0]["writer"]
        rows = [{name: value for name, value in row.items() if name != "writer"} for row in part.rows]
        for path in write(root, rows, str(writer)):
            path.rename(path.with_name(f"{path.stem}.{number}.parquet"))
