"""Table: compaction of a month of 100,000 partitions on 8, 64 and 512 cores, replayed from the times of real tasks.

`python -m benchmarks.history.scale FOLDER` draws docs/scale.svg from the location and the event log that `measure` left
in the folder."""

import sys
import time
from collections.abc import Sequence
from dataclasses import replace
from datetime import UTC, datetime
from itertools import islice
from pathlib import Path

from adapter.history.files import Folder
from adapter.history.parquet import encoded
from adapter.history.writer import path_for
from benchmarks.history.commands import compact
from benchmarks.history.replay import Costs, History, Replay, Store, costs_in, replayed
from benchmarks.measuring.effort import Effort
from benchmarks.measuring.tables import Row, Table, row
from benchmarks.rig.cluster import say
from local.histories.large_day import FLUSH_SECONDS, flushes
from local.spark.cluster import environment, spark_cluster
from spark.pipeline.batches import BatchLimits
from spark.pipeline.examine_task import ExamineTask, examine_hours
from spark.pipeline.fold_task import FoldTask, TailOfHour, fold_tails
from spark.pipeline.hour_task import HoursTask, stage_tails
from spark.pipeline.plan import found_in
from spark.storage.local import LocalFiles
from spark.tables import layout
from spark.tables.sample_files import examined, micros_of
from spark.tables.topic_parts import parts_between

INTERVAL, FLUSHES_OF_AN_HOUR = 10, 3600 // FLUSH_SECONDS
MONTH = History(hours=30 * 24, rows=36_000_000, series=100_000, files=FLUSHES_OF_AN_HOUR)
FLUSHES = 18
"""An hour and a half."""
CORES = (8, 64, 512)
BUCKET = Store(request=0.03, copy=0.1)
"""Assumed: a bucket in the same region."""
MOST_RATIO = 1.3
PICTURE = Path(__file__).parents[2] / "docs" / "scale.svg"
LOCATION, LOG, STAGED = "hours", "events", ".measured"
UNTIL = datetime(2027, 1, 1, tzinfo=UTC)
HOURS_FOLDED = 24
HOW = (
    "Real: an hour and a half of 100,000 partitions, sampled every 10 s (54 million rows), is compacted by a worker "
    "of Spark's standalone cluster with two cores, and Spark's event log has the time of each task. Replayed: 30 "
    "days of it (25.9 billion rows), divided as the pipeline divides them, one round of tasks after the other, each "
    "task going to the core that is free first and taking the measured time for each row or series. What is done "
    "for each file and for each hour of a chain is measured in a process of its own: 18 files and two hours say too "
    "little of it. The driver publishes hours in a bucket as the pipeline does, several at once and while others are "
    "made; a request is assumed to take 30 ms, and the copy of an object 100 ms. Not in the replay: other network "
    "traffic, a store's limits, what the driver needs for each task, and whatever else a cluster does."
)


def measure(home: Path, effort: Effort) -> Table:
    partitions = 10 * effort.history_partitions[-1]
    say(f"  an hour and a half of {partitions:,} partitions, with Spark's event log")
    for rows in islice(flushes(partitions, INTERVAL, 1, 1), FLUSHES):
        Folder(home / LOCATION).write(path_for("adapter-0", rows.first_sample), encoded(rows))
    (home / LOG).mkdir()
    with spark_cluster(home / "cluster", workers=1, cores=2) as cluster:
        logged = {"enabled": "true", "compress": "false", "dir": (home / LOG).as_uri()}
        conf = (part for name, value in logged.items() for part in ("--conf", f"spark.eventLog.{name}={value}"))
        arguments = " ".join([*cluster.arguments()[2:], *conf, "pyspark-shell"])
        env = environment() | {"PYSPARK_SUBMIT_ARGS": arguments}
        compact(home / LOCATION, home / "log", ["--master", cluster.master], env)
    costs = costs_of(home, partitions)
    return Table("Compacting on a cluster", HOW, (*_measured(costs), *_replays(costs)))


def costs_of(home: Path, partitions: int) -> Costs:
    """From the cluster's event log; Spark may have divided it."""
    texts = (path.read_text() for path in sorted((home / LOG).glob("eventlog_v2_app-*/events_*")))
    files = LocalFiles(home / LOCATION)
    hours = [
        History(1, number * partitions * FLUSH_SECONDS // INTERVAL, partitions, number)
        for number in (FLUSHES_OF_AN_HOUR, FLUSHES - FLUSHES_OF_AN_HOUR)
    ]
    log = (line for text in texts for line in text.splitlines() if line)
    return costs_in(log, _seconds_of_a_footer(files), _seconds_of_a_fold(files) / partitions, hours)


def _seconds_of_a_footer(files: LocalFiles) -> float:
    stored = files.listed(layout.SAMPLES, 2)
    hours = [layout.start_of(layout.hour_of(file.path)) for file in stored]
    began = time.perf_counter()
    for file, hour in zip(stored, hours, strict=True):
        assert hour is not None
        examined(files, file, hour)
    return (time.perf_counter() - began) / len(stored)


def _seconds_of_a_fold(files: LocalFiles) -> float:
    """To add up what an hour carries on, of all its series: in one process, for the first hour again and again."""
    found = found_in(files, UNTIL, UNTIL).hours[:1]
    (hour,) = examine_hours(ExamineTask(files, tuple(replace(each, record=None) for each in found), BatchLimits(), {}))
    (tail,) = stage_tails(HoursTask(files, STAGED, (hour,)))
    starts = (micros_of(hour.start + number * layout.HOUR) for number in range(HOURS_FOLDED))
    tails = tuple(TailOfHour(start, (tail,), is_followed=True) for start in starts)
    lanes = [lane for lane in parts_between(hour.lanes) if lane.overlaps(hour.ranges[0])]
    began = time.perf_counter()
    fold_tails(FoldTask(files, STAGED, lanes[0], 0, (), tails))
    seconds = time.perf_counter() - began
    files.delete(STAGED)
    return seconds / HOURS_FOLDED * (len(hour.lanes) + 1)


def _measured(costs: Costs) -> list[Row]:
    return [
        row("measured: a million rows in a task", costs.delta * 1e6, None, " s"),
        row("measured: what a million rows carry on, in a task", costs.tail * 1e6, None, " s"),
        row("measured: to add that up, for an hour of 100,000 series, in tasks", costs.fold * MONTH.series, None, " s"),
        row("measured: the footer of a file of three million rows", costs.footer * 1e3, None, " ms"),
    ]


def _replays(costs: Costs) -> list[Row]:
    return [_ratio(replayed(MONTH, costs, cores, BUCKET)) for cores in CORES]


def _ratio(replay: Replay) -> Row:
    shown = row(f"replayed on {replay.cores} cores: as a multiple of work ÷ cores", replay.ratio, MOST_RATIO, "x")
    return Row(shown.what, f"{shown.figure} ({replay.makespan / 60:,.0f} minutes)", shown.goal, shown.verdict)


def picture(replays: Sequence[Replay]) -> str:
    """Bars of work ÷ cores within those of the whole run, by the minute, each on a scale of its own."""
    lines = [
        '<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 640 220" font-family="sans-serif" font-size="13">',
        '<rect width="640" height="220" fill="white"/>',
        '<text x="16" y="24" font-size="15">A month of 100,000 partitions, compacted from the start</text>',
    ]
    for number, each in enumerate(replays):
        top, ideal = 52 + 52 * number, each.work / each.cores
        share = ideal / each.makespan
        lines += [
            f'<text x="16" y="{top + 20}">{each.cores} cores</text>',
            f'<rect x="96" y="{top}" width="360" height="28" fill="#c9d6e8"/>',
            f'<rect x="96" y="{top}" width="{360 * share:.0f}" height="28" fill="#3b6ea5"/>',
            f'<text x="468" y="{top + 19}">{each.makespan / 60:,.0f} min, ratio {each.ratio:.2f}</text>',
        ]
    lines.append('<text x="96" y="212" fill="#444">dark: work ÷ cores; light: until the last hour is published</text>')
    return "\n".join([*lines, "</svg>", ""])


def main(home: Path) -> None:
    costs = costs_of(home, MONTH.series)
    PICTURE.write_text(picture([replayed(MONTH, costs, cores, BUCKET) for cores in CORES]), encoding="utf-8")


if __name__ == "__main__":
    main(Path(sys.argv[1]))
