"""The real server with a heartbeat in its event loop and, if requested, cycles without pauses.

`python -m benchmarks.rig.measured_server [--without-pause] HEARTBEATS serve ...`: the rest are the installed
command's arguments. HEARTBEATS is a file that gets a line for each late beat: when it was due, in seconds of the
machine's monotonic clock, and how late it was."""

import argparse
import asyncio
import dataclasses
import functools
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from typing import TextIO

from adapter.reload import settings_watch
from adapter.settings import file as settings_file
from adapter.settings.models import Settings
from apiservice import __main__ as command
from apiservice import serving
from apiservice.http.server import Listener, Stages, serve

BEAT_SECONDS = 0.001
LATE_SECONDS = 0.001
WRITE_SECONDS = 0.5
NO_PAUSE_SECONDS = 0.001


async def _beat(file: TextIO) -> None:
    """Whatever blocks the loop also blocks this task, so the next beat is late by that time."""
    written = time.monotonic()
    while True:
        due = time.monotonic() + BEAT_SECONDS
        await asyncio.sleep(BEAT_SECONDS)
        now = time.monotonic()
        if now - due >= LATE_SECONDS:
            file.write(f"{due} {now - due}\n")
        if now - written >= WRITE_SECONDS:
            file.flush()
            written = now


def _serve_with_heartbeat(file: TextIO, listeners: tuple[Listener, ...], stages: Stages) -> None:
    beats: list[asyncio.Task[None]] = []

    def on_started() -> None:
        beats.append(asyncio.create_task(_beat(file)))
        stages.on_started()

    serve(listeners, dataclasses.replace(stages, on_started=on_started))


def _without_pause(content: bytes, path: Path, metrics: settings_file.BuiltIn, *, opens_files: bool = True) -> Settings:
    """Returns the file's settings with an interval that a file may not have."""
    settings = settings_in(content, path, metrics, opens_files=opens_files)
    collection = settings.collection.model_copy(update={"interval": NO_PAUSE_SECONDS})
    return settings.model_copy(update={"collection": collection})


settings_in = settings_file.settings_in


def main(arguments: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("heartbeats", type=Path)
    parser.add_argument("--without-pause", action="store_true")
    parser.add_argument("command", nargs=argparse.REMAINDER)
    flags = parser.parse_args(arguments)
    # Names of the composition are replaced here, and nothing else, so that all of it is what is shipped.
    if flags.without_pause:
        settings_file.settings_in = _without_pause
        # The running adapter reads a changed file by this name.
        settings_watch.settings_in = _without_pause  # type: ignore[attr-defined]  # a name that it imports
    with flags.heartbeats.open("w") as file:
        serving.serve = functools.partial(_serve_with_heartbeat, file)  # type: ignore[attr-defined]  # a name that it imports
        command.main(flags.command)


if __name__ == "__main__":
    main(sys.argv[1:])
