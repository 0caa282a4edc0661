"""`kafka-lag-adapter top`: the groups of one or more clusters, read by this process, the most urgent first."""

import contextlib
import csv
import json
import os
import signal
import sys
from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict, dataclass, fields
from pathlib import Path
from threading import Event
from typing import Any

from adapter import clock
from adapter.clock import utc_text
from adapter.overview.cells import HEADINGS, RIGHT, cells_of
from adapter.overview.lines import GroupLine, lines_of
from apiservice.commands.reading import Reading, hurried, reading
from apiservice.commands.screen import show
from apiservice.flags import Output, given_settings

Look = Callable[[], list[GroupLine]]
Write = Callable[[Sequence[GroupLine]], None]
TIME = "at"
SHARE_FOLLOWED = 0.75
"""Of the time since the start, by which a rate is computed as long as that is short."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Options:
    config: Path | None
    bootstrap_servers: str | None
    interval: float
    """Seconds between two cycles."""
    after: float
    """Seconds to read before the first table, so that there are rates and waits in it."""
    once: bool
    output: Output


def run(options: Options) -> None:
    """Shows the groups once, or until the user ends it. Raises AdapterError if no cluster can be read."""
    settings = hurried(given_settings(options.config, options.bootstrap_servers), options.interval)
    several = len(settings.clusters) > 1
    with ended_by_the_user() as end_if_asked, reading(settings) as clusters:
        clusters.wait()
        began = clock.monotonic()
        Event().wait(options.after)

        def look() -> list[GroupLine]:
            end_if_asked()
            # Single cycles may miss a commit or a log end, at both ends of that time.
            return _lines(clusters, max(SHARE_FOLLOWED * (clock.monotonic() - began), options.interval))

        if options.output == "table" and not options.once and sys.stdin.isatty() and sys.stdout.isatty():
            show(look, options.interval, names_cluster=several)
        else:
            _write(look, options, names_cluster=several)


@contextlib.contextmanager
def ended_by_the_user() -> Iterator[Callable[[], None]]:
    """Yields what raises KeyboardInterrupt once SIGINT has come. The one that the signal itself raises is lost where a
    library takes every exception for an answer, as numpy does where it looks for an attribute."""
    asked: list[int] = []

    def interrupt(number: int, _: object) -> None:
        asked.append(number)
        raise KeyboardInterrupt

    def end_if_asked() -> None:
        if asked:
            raise KeyboardInterrupt

    before = signal.signal(signal.SIGINT, interrupt)
    try:
        yield end_if_asked
    except KeyboardInterrupt:
        pass
    except BrokenPipeError:
        # As in `| head`; the interpreter's own flush at the end would fail again.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    finally:
        signal.signal(signal.SIGINT, before)


def _write(look: Look, options: Options, *, names_cluster: bool) -> None:
    write = _writer(options.output, is_only=options.once, names_cluster=names_cluster)
    write(look())
    while not options.once:
        Event().wait(options.interval)
        write(look())


def _lines(clusters: Reading, followed: float) -> list[GroupLine]:
    """A rate covers what was followed so far, until that is as much as the adapter's rates cover."""
    known = clusters.metrics.known()
    return lines_of(known._replace(window=min(known.window, followed)))


def _writer(output: Output, *, is_only: bool, names_cluster: bool) -> Write:
    match output:
        case "json":
            return lambda lines: _print(json.dumps(_document(lines), indent=2 if is_only else None))
        case "csv":
            _rows([TIME, *(field.name for field in fields(GroupLine))])
            return lambda lines: _rows(*([_now(), *csv_cells(line)] for line in lines))
        case "table":
            return lambda lines: _print(plain_table(lines, names_cluster=names_cluster))


def csv_cells(line: GroupLine) -> list[object]:
    """Returns the fields. Bytes of a name that are no characters could not be written, so they become numbers."""
    values = asdict(line).values()
    return [each.encode("utf-8", "backslashreplace").decode() if isinstance(each, str) else each for each in values]


def plain_table(lines: Sequence[GroupLine], *, names_cluster: bool) -> str:
    rows = [HEADINGS, *(cells_of(line, names_cluster=names_cluster) for line in lines)]
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    sides = [">" if heading in RIGHT else "<" for heading in HEADINGS]
    cells = ([f"{cell:{side}{width}}" for cell, side, width in zip(row, sides, widths, strict=True)] for row in rows)
    return "\n".join("  ".join(row).rstrip() for row in cells)


def _document(lines: Sequence[GroupLine]) -> dict[str, Any]:
    return {TIME: _now(), "groups": [asdict(line) for line in lines]}


def _rows(*rows: Sequence[object]) -> None:
    csv.writer(sys.stdout, lineterminator="\n").writerows(rows)
    sys.stdout.flush()


def _print(text: str) -> None:
    print(text, flush=True)


def _now() -> str:
    return utc_text(clock.time())
