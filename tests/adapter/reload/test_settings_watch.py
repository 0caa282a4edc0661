"""The settings file that changes while the adapter runs: what is taken over, refused, and said about it."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import cast

import pytest

from adapter.conditions import SETTINGS, Conditions, ConditionStatus
from adapter.metrics.definitions import SERVED
from adapter.reload.live_metrics import LiveMetrics
from adapter.reload.settings_watch import LOOK_SECONDS, RETRY_SECONDS, SettingsWatch
from adapter.settings.file import load
from adapter.settings.models import Settings
from adapter.telemetry import Telemetry
from tests.support.samples import SteppedClock

FIRST = "clusters: [{name: main, bootstrapServers: ['kafka:9092']}]\n"
SECOND = FIRST + "rules: [{group: billing, topics: [orders]}]\n"


@dataclass
class FakeLive:
    """Remembers what it was asked to do."""

    settings: Settings
    conditions: Conditions
    prepared: Settings | None = None
    unread: Sequence[str] = ()
    done: list[str] = field(default_factory=list)

    @property
    def is_preparing(self) -> bool:
        return self.prepared is not None

    def prepare(self, settings: Settings) -> None:
        self.prepared = settings
        self.done.append("prepare")

    def discard(self) -> None:
        self.prepared = None

    def waiting_for(self) -> dict[str, str]:
        return dict.fromkeys(self.unread, "broker 1 does not answer")

    def report_settings(self) -> None:
        self.conditions.holds(SETTINGS)

    def take_over(self) -> None:
        assert self.prepared is not None
        self.settings, self.prepared = self.prepared, None
        self.done.append("take over")
        self.report_settings()


@dataclass
class Watched:
    path: Path
    clock: SteppedClock
    live: FakeLive
    watch: SettingsWatch
    telemetry: Telemetry

    def look(self, times: int = 2, seconds: float = LOOK_SECONDS) -> None:
        for _ in range(times):
            self.clock.seconds += seconds
            self.watch.turn()

    def changes(self, outcome: str) -> float | None:
        name = "kafka_lag_adapter_settings_changes_total"
        return self.telemetry.registry.get_sample_value(name, {"outcome": outcome})

    @property
    def message(self) -> str:
        """Why the file is not in force; empty: it is."""
        (condition,) = self.telemetry.conditions.current
        return "" if condition.status is ConditionStatus.TRUE else condition.message


@pytest.fixture
def watched(tmp_path: Path) -> Watched:
    path = tmp_path / "settings.yaml"
    path.write_text(FIRST)
    clock, telemetry = SteppedClock(), Telemetry()
    live = FakeLive(load(path, SERVED), telemetry.conditions)
    watch = SettingsWatch(path, cast("LiveMetrics", live), telemetry, clock, lambda: live.done.append("say so"))
    made = Watched(path, clock, live, watch, telemetry)
    made.look()
    return made


def test_a_file_takes_effect_once_it_has_stayed_the_same(watched: Watched) -> None:
    watched.path.write_text(SECOND)
    watched.look(1)
    assert watched.live.done == []

    watched.look(1)

    assert watched.live.done == ["prepare", "take over", "say so"]
    assert watched.live.settings.rules[0].group == "billing"
    assert (watched.message, watched.changes("taken_over")) == ("", 1)
    watched.look(5)
    assert watched.live.done == ["prepare", "take over", "say so"]


def test_a_file_that_means_the_same_changes_nothing(watched: Watched) -> None:
    watched.path.write_text("# a comment\n" + FIRST)
    watched.look(3)

    assert (watched.live.done, watched.message) == ([], "")


@pytest.mark.parametrize(
    ("text", "place", "words"),
    [
        (FIRST + "rule: []\n", "rule", "is not a known key; did you mean 'rules'?"),
        (FIRST + "tenancy: secret\n", "tenancy", "is 'secret'; must be 'open' or 'closed'"),
        ("clusters: [", "line 1, column 12", "expected the node content, but found '<stream end>'"),
        (FIRST + "history: {location: /history}\n", "history", "cannot change while the adapter runs; restart it"),
        (None, "No such file or directory", ""),
    ],
)
def test_a_file_that_cannot_take_effect_is_refused_as_a_whole_and_reported_once(
    watched: Watched, caplog: pytest.LogCaptureFixture, text: str | None, place: str, words: str
) -> None:
    """Everybody may read the message, so only the log has values of the file."""
    watched.path.write_text(SECOND)
    watched.look()
    in_force = watched.live.settings
    if text is None:
        watched.path.unlink()
    else:
        watched.path.write_text(text)
    watched.look(2 + int(2 * RETRY_SECONDS / LOOK_SECONDS))

    assert watched.live.settings is in_force
    problem = f"{place}: {words}" if words else place
    assert watched.message == f"{watched.path} is refused, so the previous settings stay in force: {place}"
    assert caplog.messages == [f"settings: Refused: {watched.message}: {watched.path}: {problem}"]
    assert watched.changes("refused") == 1

    watched.path.write_text(SECOND)
    watched.look()
    assert watched.message == ""


def test_a_file_that_is_refused_for_an_absent_secret_takes_effect_when_that_is_mounted(watched: Watched) -> None:
    secret = watched.path.with_name("password")
    security = f"{{protocol: SASL_PLAINTEXT, mechanism: PLAIN, username: lag, passwordFile: {secret}}}"
    watched.path.write_text(f"clusters: [{{name: main, bootstrapServers: ['kafka:9092'], security: {security}}}]\n")
    watched.look()
    assert "clusters[0].security" in watched.message
    secret.write_text("wonderland")
    watched.look(1, RETRY_SECONDS)

    assert watched.live.done == ["prepare", "take over", "say so"]


def test_settings_whose_clusters_have_not_been_read_are_reported_as_waiting(
    watched: Watched, caplog: pytest.LogCaptureFixture
) -> None:
    watched.live.unread = ["main"]
    watched.path.write_text(SECOND)
    watched.look()

    assert watched.message.endswith("changed settings take effect when these clusters have been read: main")
    assert caplog.messages[-1].endswith("read: main: cluster main: broker 1 does not answer")
    watched.path.write_text(FIRST)
    watched.look()
    assert (watched.message, watched.live.prepared) == ("", None)
