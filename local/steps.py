"""Steps of a download or a build that take a while: their progress is shown, and their output matters if they fail."""

import contextlib
import sys
import threading
import time
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

from local.processes import RigError, start

PLAIN_LINE_SECONDS = 20.0


def run_step(
    what: str,
    command: Sequence[str],
    log: Path,
    env: Mapping[str, str] | None = None,
    cwd: Path | None = None,
) -> None:
    """Runs a command with a progress display. Raises RigError with the end of its output."""
    with _shown(what), start(command[0], command, log=log, env=env, cwd=cwd) as process:
        if process.wait() != 0:
            raise RigError(f"{what} did not work:\n{process.log_tail()}")


def say(line: str) -> None:
    print(line, file=sys.stderr, flush=True)


@contextlib.contextmanager
def _shown(what: str) -> Iterator[None]:
    """Shows a spinner on a terminal; elsewhere prints a line now and every 20 s, so that it does not seem to hang."""
    if sys.stderr.isatty():
        # Here, as loading it takes longer than all the rest does where nothing is missing.
        from rich.console import Console  # noqa: PLC0415
        from rich.progress import Progress, SpinnerColumn, TextColumn, TimeElapsedColumn  # noqa: PLC0415

        columns = (SpinnerColumn(), TextColumn("{task.description}"), TimeElapsedColumn())
        with Progress(*columns, console=Console(stderr=True), transient=True) as progress:
            progress.add_task(what, total=None)
            yield
        return
    began = time.monotonic()
    ended = threading.Event()

    def report() -> None:
        say(what)
        while not ended.wait(PLAIN_LINE_SECONDS):
            say(f"still {what.partition(' (')[0]}: {time.monotonic() - began:.0f} s")

    reporter = threading.Thread(target=report, name="progress")
    reporter.start()
    try:
        yield
    finally:
        ended.set()
        reporter.join()
