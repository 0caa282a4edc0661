"""SIGTERM and SIGINT: Spark's jobs are cancelled from another thread, for a Python signal handler must not talk to the
JVM while the main thread does; then the run ends by itself, with status 143 (130 for SIGINT)."""

import contextlib
import signal
import threading
from types import FrameType

from spark.engine.jobs import Spark, cancel
from spark.errors import Interrupted


class Ending:
    """`asked` is set once a signal came."""

    def __init__(self) -> None:
        self.asked = threading.Event()
        self.status = 0
        self._session: Spark | None = None
        self._thread = threading.Thread(target=self._cancel, name="ending", daemon=True)

    def watch_signals(self) -> None:
        signal.signal(signal.SIGTERM, self._ask)
        signal.signal(signal.SIGINT, self._ask)
        self._thread.start()

    def watch_jobs(self, session: Spark) -> None:
        """The jobs to cancel; a signal that came while the JVM started ends the run here."""
        self._session = session
        if threading.current_thread() is threading.main_thread():
            signal.signal(signal.SIGINT, self._ask)  # a new session has put its own in our place
        self.check()

    def check(self) -> None:
        """Raises Interrupted when a signal came."""
        if self.asked.is_set():
            raise Interrupted

    def _ask(self, number: int, _frame: FrameType | None) -> None:
        self.status = 128 + number
        self.asked.set()

    def _cancel(self) -> None:
        self.asked.wait()
        if self._session is not None:
            with contextlib.suppress(Exception):  # the JVM may be gone already: the signal went to it, too
                cancel(self._session)
