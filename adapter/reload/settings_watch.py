"""Reads the settings file again while the adapter runs, and makes changed settings take effect.

A ConfigMap's file is replaced through a symlink, which keeps modification times, so the content is compared."""

from collections.abc import Callable
from pathlib import Path

from adapter.clock import Clock
from adapter.conditions import SETTINGS
from adapter.documents import content_of
from adapter.errors import SettingsInvalid, some_of
from adapter.metrics.definitions import SERVED
from adapter.reload.live_metrics import LiveMetrics
from adapter.repeating import Repeating
from adapter.settings.file import settings_in
from adapter.settings.models import Settings
from adapter.telemetry import Telemetry

LOOK_SECONDS = 2.0
RETRY_SECONDS = 30.0
"""A refused file is checked again after this time: a file that it names may have been mounted since."""


class SettingsWatch(Repeating):
    """Calls `on_taken_over` whenever changed settings have taken effect."""

    def __init__(
        self,
        path: Path,
        live: LiveMetrics,
        telemetry: Telemetry,
        clock: Clock,
        on_taken_over: Callable[[], None],
    ) -> None:
        super().__init__("settings", is_nice=True)
        self._path = path
        self._live = live
        self._on_taken_over = on_taken_over
        self._changes, self._conditions = telemetry.settings_changes, telemetry.conditions
        self._clock = clock
        self._seen: bytes | str | None = None
        self._checked: bytes | str | None = None
        """The file's content, or why it could not be read: at the latest look, and when it was last checked."""
        self._is_refused = False
        self._retry_at = clock.monotonic()

    def turn(self) -> float:
        self._read()
        if self._live.is_preparing:
            self._take_over_if_ready()
        return LOOK_SECONDS

    def _read(self) -> None:
        before, self._seen = self._seen, _content(self._path)
        # A file that is being edited in place may be half written, so it must be the same twice.
        if self._seen != before:
            return
        is_retry = self._is_refused and self._clock.monotonic() >= self._retry_at
        if self._seen != self._checked or is_retry:
            self._checked = self._seen
            self._retry_at = self._clock.monotonic() + RETRY_SECONDS
            self._check(self._seen)

    def _check(self, content: bytes | str | None) -> None:
        try:
            settings = self._settings_in(content)
        except SettingsInvalid as invalid:
            self._live.discard()
            self._refuse(invalid.problems)
            return
        self._is_refused = False
        if settings == self._live.settings:
            self._live.discard()
            self._live.report_settings()
        else:
            self._live.prepare(settings)

    def _settings_in(self, content: bytes | str | None) -> Settings:
        if not isinstance(content, bytes):
            raise SettingsInvalid((str(content),))
        settings = settings_in(content, self._path, SERVED)
        if settings.history != self._live.settings.history:
            raise SettingsInvalid((f"{self._path}: history: cannot change while the adapter runs; restart it",))
        return settings

    def _refuse(self, problems: tuple[str, ...]) -> None:
        self._is_refused = True
        # The message has places in the file and no values.
        places = dict.fromkeys(problem.removeprefix(f"{self._path}: ").partition(": ")[0] for problem in problems)
        shown = some_of([*places], most=10, separator=", ")
        message = f"{self._path} is refused, so the previous settings stay in force: {shown}"
        if self._conditions.fails(SETTINGS, "Refused", message, details="; ".join(problems)):
            self._changes.labels("refused").inc()

    def _take_over_if_ready(self) -> None:
        waiting_for = self._live.waiting_for()
        if waiting_for:
            clusters = some_of([*waiting_for], separator=", ")
            message = f"{self._path}: changed settings take effect when these clusters have been read: {clusters}"
            details = some_of([f"cluster {name}: {trouble}" for name, trouble in waiting_for.items() if trouble])
            self._conditions.fails(SETTINGS, "WaitingForClusters", message, details=details)
            return
        self._live.take_over()
        self._on_taken_over()
        self._changes.labels("taken_over").inc()


def _content(path: Path) -> bytes | str:
    try:
        return content_of(path)
    except SettingsInvalid as invalid:
        return str(invalid)
