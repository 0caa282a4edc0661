"""`python -m spark`, `kafka-lag-report`: from the history's samples to tables, and from these to a report.

Each command imports what it alone needs: imports are a tenth of a short run.
"""

import contextlib
import re
import signal
import sys
from collections.abc import Callable, Iterator
from datetime import UTC, datetime
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from py4j.protocol import Py4JError
from pyspark.errors import PySparkException
from rich.console import Console
from rich.text import Text

from adapter.command_line import new_command, run, whole_number
from spark.engine.jobs import Spark
from spark.engine.remote import OF_HPAS
from spark.engine.session import SparkSettings, is_submitted, started
from spark.errors import Interrupted, Unavailable, Unusable, said_by
from spark.figures import formatting
from spark.shutdown import Ending
from spark.storage.location import reached
from spark.time_options import parsed_time, zone_of

if TYPE_CHECKING:
    from spark.pipeline.compact import CompactionResult

app = new_command("Report on the history of consumer group lag.")


def heap(text: str) -> str:
    if not re.fullmatch("[1-9][0-9]*[kmgt]", text, re.IGNORECASE):
        raise typer.BadParameter(f"is {text!r}; must be a size such as 4g or 512m")
    return text


HistoryOption = Annotated[
    str,
    typer.Option(metavar="LOCATION", help="Location of the adapter's history: a path, s3://…, gs://… or abfss://…."),
]
Master = Annotated[str | None, typer.Option(metavar="MASTER", help="Spark master. Default: all cores of this machine.")]
Remote = Annotated[
    str | None, typer.Option(metavar="URL", help="Spark Connect server instead of a master, such as sc://host:15002.")
]
Memory = Annotated[str | None, typer.Option(parser=heap, metavar="SIZE", help="Heap of the driver, such as 4g.")]

Threshold = Annotated[
    int | None,
    typer.Option(
        parser=whole_number(1),
        metavar="MESSAGES",
        help="Threshold. Default: what the busiest hour produces in --max-wait.",
    ),
]
GroupsFile = Annotated[
    Path | None,
    typer.Option(metavar="FILE", help="YAML file with the wait, thresholds, owner and planned pauses of each group."),
]


@app.command("compact")
def compact_command(
    history: HistoryOption,
    until: Annotated[
        str | None,
        typer.Option(metavar="TIME", help="Compact only hours that end before this time, such as 2026-11-20T07:00Z."),
    ] = None,
    master: Master = None,
    remote: Remote = None,
    driver_memory: Memory = None,
) -> None:
    """Compute the deltas, hourly and daily tables of every finished hour that needs them. No sample is deleted."""
    from spark.pipeline.compact import compact  # noqa: PLC0415 -- see above

    now = datetime.now(UTC)
    with _running(SparkSettings(master, driver_memory, remote)) as (session, say, show, ending, stop):
        end = parsed_time("--until", until, zone_of("UTC")) or now
        result = compact(reached(history), session, end, now, say, ending.check, stop=stop, show=show)
        _tell(result, say)


@app.command("report")
def report_command(  # noqa: PLR0913, PLR0917 - an argument is an option
    history: HistoryOption,
    output: Annotated[
        str, typer.Option(metavar="LOCATION", help="Folder or bucket for report.html, .json, .md, groups.csv and hpa/.")
    ],
    since: Annotated[
        str | None,
        typer.Option("--from", metavar="TIME", help="Start of the range, such as 2026-11-20T07:00, in --timezone."),
    ] = None,
    to: Annotated[str | None, typer.Option(metavar="TIME", help="End of the range.")] = None,
    timezone: Annotated[
        str, typer.Option(metavar="ZONE", help="Time zone of hours and weekdays, such as Europe/Berlin.")
    ] = "UTC",
    max_wait: Annotated[
        str | None,
        typer.Option(
            metavar="DURATION",
            help="How long a message may wait, such as 90s or 5m. Sets thresholds and the recommended HPA. "
            "Default: 60s, or longer where samples are too rare for it.",
        ),
    ] = None,
    threshold: Threshold = None,
    groups: GroupsFile = None,
    group: Annotated[
        list[str] | None, typer.Option(metavar="NAME", help="Report only this group. May be repeated.")
    ] = None,
    hpa: Annotated[
        list[Path] | None,
        typer.Option(
            metavar="FILE",
            help="An HPA that a group has today, on its lag or on a number of replicas that the adapter serves, to be "
            "compared with others. May be repeated. Default: those that the adapter saw.",
        ),
    ] = None,
    master: Master = None,
    remote: Remote = None,
    driver_memory: Memory = None,
) -> None:
    """Report the lag, peaks, capacity and a recommended HPA of every group, from the tables that compact made."""
    from spark.report.build import report  # noqa: PLC0415 -- see above
    from spark.report.group_file import agreed  # noqa: PLC0415 -- see above
    from spark.report.request import requested  # noqa: PLC0415 -- see above

    with _running(SparkSettings(master, driver_memory, remote, OF_HPAS)) as (session, say, show, ending, _):
        agreements = agreed(max_wait, threshold, groups, group or ())
        request = requested(history, output, (since, to), timezone, datetime.now(UTC), agreements, hpa or ())
        report(request, reached(history), session, say, ending.check, show)


@app.command("replay")
def replay_command(  # noqa: PLR0913, PLR0917 - an argument is an option
    history: HistoryOption,
    group: Annotated[str, typer.Option(metavar="NAME", help="The group whose past is replayed.")],
    hpa: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE",
            help="An HPA of autoscaling/v2 on the group's lag, as YAML or JSON. Default: the one that the adapter saw.",
        ),
    ] = None,
    cluster: Annotated[
        str | None, typer.Option(metavar="NAME", help="Where several clusters have a group of this name.")
    ] = None,
    max_wait: Annotated[
        str | None,
        typer.Option(
            metavar="DURATION",
            help="How long a message may wait. Default: 60s, or longer where samples are too rare for it.",
        ),
    ] = None,
    threshold: Threshold = None,
    groups: GroupsFile = None,
    since: Annotated[
        str | None, typer.Option("--from", metavar="TIME", help="Start of the range, in --timezone.")
    ] = None,
    to: Annotated[str | None, typer.Option(metavar="TIME", help="End of the range.")] = None,
    timezone: Annotated[str, typer.Option(metavar="ZONE", help="Time zone of the times.")] = "UTC",
    output: Annotated[
        str | None, typer.Option(metavar="LOCATION", help="Folder or bucket for replay.html, .json and .txt.")
    ] = None,
    master: Master = None,
    remote: Remote = None,
    driver_memory: Memory = None,
) -> None:
    """Replay an HPA on what a group really did, minute by minute: lag, wait and replicas as they would have been."""
    from spark.replay.command import replay, requested_replay  # noqa: PLC0415 -- see above
    from spark.report.group_file import agreed  # noqa: PLC0415 -- see above

    with _running(SparkSettings(master, driver_memory, remote, OF_HPAS)) as (session, say, _, ending, _):
        times, now = (since, to), datetime.now(UTC)
        agreements = agreed(max_wait, threshold, groups, (group,))
        request = requested_replay(history, cluster, group, hpa, agreements, times, timezone, now)
        print(replay(request, reached(history), session, say, ending.check, output))


def _tell(result: "CompactionResult", say: Callable[[str], None]) -> None:
    for each in result.skipped:
        say(f"skipped {each.path}: {each.reason}")
    if not result.hours and not result.days:
        say("nothing to do")
        return
    hours, days = formatting.plural(len(result.hours), "hour"), formatting.plural(len(result.days), "day")
    say(f"compacted {hours}, summarised {days}, skipped {len(result.skipped)}")


Say = Callable[[str], None]
Running = tuple[Callable[[], Spark], Say, Say | None, Ending, Callable[[], None]]


@contextlib.contextmanager
def _running(settings: SparkSettings) -> Iterator[Running]:
    """A session when it is first asked for, ways to show progress, and the process's end in one sentence."""
    if settings.master and settings.remote:
        _end("--master and --remote exclude each other", 2)
    ending = Ending()
    ending.watch_signals()
    console = Console(stderr=True, highlight=False)
    try:
        with contextlib.ExitStack() as stack, _progress(console) as (say, show):

            @cache
            def session() -> Spark:
                say("starting Spark")
                new = stack.enter_context(started(settings))
                ending.watch_jobs(new)
                return new

            def stop() -> None:
                """After an error: no task runs any more when it returns."""
                stack.__exit__(*sys.exc_info())

            if is_submitted():
                session()  # what starts applications takes one that never has a session for a failed one
            yield session, say, show, ending, stop
    except Unusable as error:
        _end(str(error), 2)
    except KeyboardInterrupt:  # Spark's, while a session starts
        _end("interrupted; the next run goes on from here", 128 + signal.SIGINT)
    except Interrupted:
        _end("interrupted; the next run goes on from here", ending.status)
    except (PySparkException, Py4JError, OSError, Unavailable) as error:
        if ending.asked.is_set():
            _end("interrupted; the next run goes on from here", ending.status)
        _end(said_by(error), 1)


@contextlib.contextmanager
def _progress(console: Console) -> Iterator[tuple[Say, Say | None]]:
    """On a terminal the newest line is what is being done now, and may be replaced; elsewhere each is a line of its
    own, and none is replaced."""
    if not console.is_terminal:
        yield lambda text: print(text, file=sys.stderr, flush=True), None
        return
    with console.status("") as status:

        def say(text: str) -> None:
            console.print(text, markup=False)
            status.update(Text(text))

        yield say, lambda text: status.update(Text(text))


def _end(text: str, status: int) -> None:
    for line in text.splitlines():
        print(f"kafka-lag-report: {line}", file=sys.stderr)
    raise typer.Exit(status)


def main() -> None:
    """The console script."""
    run(app, "kafka-lag-report")
