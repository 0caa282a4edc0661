"""Table: compaction of a month of 100,000 partitions on 8, 64 and 512 cores, replayed from the times of real tasks.

`python -m benchmarks.history.scale FOLDER ROWS PARTITIONS` draws docs/scale.svg from the event log of a day."""

import os
import sys
from pathlib import Path

from benchmarks.history.commands import compact
from benchmarks.history.replay import Costs, History, Replay, costs_in, replayed
from benchmarks.measuring.effort import Effort
from benchmarks.measuring.tables import Row, Table, row
from benchmarks.rig.cluster import say
from local.histories.plausible_history import write_large_day

MONTH = History(hours=30 * 24, rows=36_000_000, series=100_000)
"""Sampled every 10 s."""
CORES = (8, 64, 512)
MOST_RATIO = 1.3
SECONDS_BETWEEN_SAMPLES = 15
PICTURE = Path(__file__).parents[2] / "docs" / "scale.svg"
HOW = (
    "Real: a day is compacted on this machine, and Spark's event log has the time of each task. Replayed: 30 days of "
    "100,000 partitions, sampled every 10 s (36 million rows an hour, 25.9 billion in all), divided as the pipeline "
    "divides them, each task taking the measured time per row, on the core that is free first; beside them the time "
    "that the driver took between two jobs, for each series and hour. Not in the replay: the network, a store's "
    "limits, and whatever other work a cluster has."
)


def measure(home: Path, effort: Effort) -> Table:
    partitions = effort.history_partitions[-1]
    say(f"  a day of {partitions:,} partitions, with Spark's event log")
    location, log = home / "day", home / "events"
    written = write_large_day(location, partitions, SECONDS_BETWEEN_SAMPLES, 1)
    log.mkdir()
    conf = " ".join(
        [f"--conf spark.eventLog.{name}" for name in ("enabled=true", "compress=false", f"dir={log.as_uri()}")]
    )
    compact(location, home / "log", env={**os.environ, "PYSPARK_SUBMIT_ARGS": f"{conf} pyspark-shell"})
    costs = costs_of(log, History(24, written.rows // 24, partitions))
    return Table("Compacting on a cluster", HOW, (*_measured(costs, written.rows), *_replays(costs)))


def costs_of(folder: Path, history: History) -> Costs:
    """The only event log in the folder; Spark may have divided it."""
    texts = (path.read_text() for path in sorted(folder.rglob("*")) if path.is_file() and not path.name.startswith("."))
    return costs_in((line for text in texts for line in text.splitlines() if line), history)


def _measured(costs: Costs, rows: int) -> list[Row]:
    return [
        row(f"measured in {rows / 1e6:.1f} million rows: a million rows in a task", costs.delta * 1e6, None, " s"),
        row("measured: what a million rows carry on, in a task", costs.tail * 1e6, None, " s"),
        row("measured: 100,000 series of an hour in the driver", costs.fold * MONTH.series, None, " s"),
    ]


def _replays(costs: Costs) -> list[Row]:
    return [_ratio(replayed(MONTH, costs, cores)) for cores in CORES]


def _ratio(replay: Replay) -> Row:
    shown = row(f"replayed on {replay.cores} cores: as a multiple of work ÷ cores", replay.ratio, MOST_RATIO, "x")
    return Row(shown.what, f"{shown.figure} ({replay.makespan / 60:,.0f} minutes)", shown.goal, shown.verdict)


def picture(replays: list[Replay]) -> str:
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


def main(folder: Path, rows: int, partitions: int) -> None:
    costs = costs_of(folder, History(24, rows // 24, partitions))
    PICTURE.write_text(picture([replayed(MONTH, costs, cores) for cores in CORES]), encoding="utf-8")


if __name__ == "__main__":
    main(Path(sys.argv[1]), int(sys.argv[2]), int(sys.argv[3]))
