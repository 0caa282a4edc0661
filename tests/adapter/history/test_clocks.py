"""Clocks that are set while a history is kept: no day goes for that, and no file mixes the times of two clocks."""

import itertools
import logging
from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from adapter.history.errors import HistoryUnwritable
from adapter.history.retention import LEDGER
from adapter.history.writer import HistoryWriter
from adapter.telemetry import HistoryTelemetry, Telemetry
from tests.support import samples
from tests.support.history.histories import FakeFiles, read_back, sample
from tests.support.samples import EPOCH

HOUR, DAY, YEAR = 3600.0, 86_400.0, 365 * 86_400.0
RETENTION_DAYS = 3
LAYOUT = samples.layout([("billing", "orders", 0)])


class Location(FakeFiles):
    """The days that it has are those of the files that lie there."""

    def days(self, table: str) -> list[str]:
        self._fail()
        return sorted({path.split("/")[1].removeprefix("date=") for path in self.written if path.startswith(table)})

    def delete_day(self, table: str, day: str) -> None:
        super().delete_day(table, day)
        self.written = {path: file for path, file in self.written.items() if f"{table}/date={day}/" not in path}


@dataclass
class Machine:
    """A machine with a clock that can be set, and one adapter, which samples and does its round every hour."""

    location: Location = field(default_factory=Location)
    wall: float = EPOCH
    monotonic_seconds: float = 50.0
    names: Iterable[str] = field(default_factory=lambda: map("pod-{}".format, itertools.count(1)))

    def __post_init__(self) -> None:
        self.names = iter(self.names)
        self.restart()

    def monotonic(self) -> float:
        return self.monotonic_seconds

    def time(self) -> float:
        return self.wall

    def restart(self) -> None:
        """The monotonic clock begins anew with the machine; nothing of the process is left."""
        self.monotonic_seconds = 50.0
        given = samples.settings(history={"location": "/history", "retention": f"{RETENTION_DAYS}d"}).history
        telemetry = HistoryTelemetry(Telemetry())
        self.history = HistoryWriter(given, self.location, telemetry, self, next(iter(self.names)))
        self.history._round()

    def run(self, hours: float) -> None:
        for _ in range(round(hours)):
            self.wall += HOUR
            self.monotonic_seconds += HOUR
            self.history.append(replace(sample(LAYOUT, at=self.wall), to_epoch=self.wall - self.monotonic_seconds))
            self.history._round()

    def off(self, hours: float) -> None:
        self.wall += hours * HOUR
        self.restart()

    @property
    def days(self) -> list[str]:
        return self.location.days("samples")

    @property
    def writers(self) -> set[str]:
        return {path.split("/")[-1].rsplit("-", 1)[0] for path in self.location.written}


def running(days: float) -> Machine:
    machine = Machine()
    machine.run(24 * days)
    return machine


# -- retention -------------------------------------------------------------------------------------------


def test_a_day_goes_when_its_last_sample_is_as_old_as_the_retention() -> None:
    machine = running(10)

    assert len(machine.days) == RETENTION_DAYS + 1
    assert machine.days[-1] == "2026-11-28"
    assert machine.location.deleted[0] == ("samples", "2026-11-18")


@pytest.mark.parametrize("step", [YEAR, 30 * YEAR, 5 * DAY, -5 * DAY, -20 * YEAR])
def test_a_clock_that_jumps_deletes_nothing(step: float) -> None:
    machine = running(2)
    before = machine.days
    machine.wall += step
    machine.run(12)

    assert machine.location.deleted == []
    assert set(machine.days) > set(before)


def test_after_a_jump_days_go_as_time_passes() -> None:
    machine = running(3)
    machine.wall += 30 * YEAR
    machine.run(24 * (RETENTION_DAYS + 1))

    assert all(day > "2056" for day in machine.days)
    assert len(machine.days) == RETENTION_DAYS + 1


def test_the_time_in_which_no_adapter_runs_is_not_counted() -> None:
    machine = running(2)
    machine.off(24 * 100)
    machine.run(24)

    assert machine.days[0] == "2026-11-18"


def test_restarts_lose_no_more_than_what_was_not_yet_written() -> None:
    machine = Machine()
    for _ in range(10 * 8):
        machine.run(3)
        machine.restart()

    assert len(machine.days) == RETENTION_DAYS + 1


def test_adapters_side_by_side_count_the_same_time_once() -> None:
    machine = Machine()
    other = Machine(machine.location)
    for _ in range(10 * 24):
        machine.run(1)
        other.run(1)

    assert len(machine.days) == RETENTION_DAYS + 1


@pytest.mark.parametrize("content", [b"", b"{", b'{"running_seconds": -1}', b'{"running_seconds": NaN}', b"\xff"])
def test_a_ledger_that_is_lost_or_damaged_deletes_nothing(content: bytes) -> None:
    machine = running(3)
    machine.location.others[LEDGER] = pa.py_buffer(content)
    machine.run(24)
    assert machine.location.deleted == []

    machine.run(24 * RETENTION_DAYS)
    assert len(machine.days) == RETENTION_DAYS + 1


def test_days_go_while_the_ledger_cannot_be_written(monkeypatch: pytest.MonkeyPatch) -> None:
    """A full disk: what goes makes room for it."""
    machine = running(3)

    def full(path: str, content: pa.Buffer) -> None:
        raise HistoryUnwritable("no_space", f"{path}: no space left for {content.size} bytes")

    monkeypatch.setattr(machine.location, "write", full)
    machine.run(24 * 4)

    assert machine.days == []


STEPS = st.lists(
    st.one_of(
        st.integers(1, 60).map(lambda hours: ("run", hours)),
        st.sampled_from([-20 * YEAR, -3 * DAY, -HOUR, HOUR, 2 * DAY, 9 * YEAR]).map(lambda step: ("set", step)),
        st.integers(0, 200).map(lambda hours: ("off", hours)),
    ),
    max_size=12,
)


@settings(max_examples=20)
@given(STEPS)
def test_whatever_clocks_do_a_deleted_day_is_older_than_the_retention(steps: list[tuple[str, float]]) -> None:
    """By the time that really passed since the newest sample of the day was written."""
    machine, passed = Machine(), 0.0
    newest: dict[str, float] = {}
    for what, value in steps:
        if what == "set":
            machine.wall += value
            continue
        if what == "off":
            machine.off(value)
            passed += value
        for _ in range(int(value) if what == "run" else 0):
            before = set(machine.days)
            machine.run(1)
            passed += 1
            for day in before - set(machine.days):
                assert passed - newest[day] >= 24 * RETENTION_DAYS
            newest[datetime.fromtimestamp(machine.wall, UTC).date().isoformat()] = passed


# -- marks -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("step", [30 * YEAR, -20 * YEAR, 60.0, -60.0])
def test_samples_after_a_step_of_the_clock_have_a_writer_of_their_own(
    step: float, caplog: pytest.LogCaptureFixture
) -> None:
    machine = running(0.5)
    machine.wall += step
    with caplog.at_level(logging.WARNING):
        machine.run(2)

    assert machine.writers == {"pod-1", "pod-1-clock2"}
    assert f"the clock was set by {step:+.0f} s" in caplog.text
    assert len(caplog.messages) == 1


def test_within_a_writers_files_times_differ_by_the_time_that_passed() -> None:
    machine = running(0.5)
    for step in (30 * YEAR, -3 * DAY, -31 * YEAR):
        machine.wall += step
        machine.run(6)
    times: dict[str, list[float]] = {}
    for path, file in machine.location.written.items():
        writer = path.split("/")[-1].rsplit("-", 1)[0]
        times.setdefault(writer, []).extend(row["sampled_at"].timestamp() for row in read_back(file))

    assert {name: len(found) for name, found in times.items()} == {
        "pod-1": 12,
        "pod-1-clock2": 6,
        "pod-1-clock3": 6,
        "pod-1-clock4": 6,
    }
    assert all(max(found) - min(found) == HOUR * (len(found) - 1) for found in times.values())


def test_a_clock_that_is_set_right_again_continues_its_first_run() -> None:
    machine = running(0.5)
    for step in (YEAR, -YEAR):
        machine.wall += step
        machine.run(3)

    assert machine.writers == {"pod-1", "pod-1-clock2"}
    assert sum("clock2" in path for path in machine.location.written) == 3


@pytest.mark.parametrize("drift", [0.0005, -0.0005])
def test_a_clock_that_is_slewed_is_one_run(drift: float) -> None:
    machine = Machine()
    for _ in range(24 * 5):
        machine.wall += drift * HOUR
        machine.run(1)

    assert machine.writers == {"pod-1"}


@pytest.mark.parametrize("step", [60.0, -60.0])
def test_a_step_that_drift_since_the_first_sample_would_explain_is_a_step(step: float) -> None:
    machine = running(5)
    machine.wall += step
    machine.run(2)

    assert machine.writers == {"pod-1", "pod-1-clock2"}


def test_many_small_steps_are_steps_too() -> None:
    machine = Machine()
    for _ in range(24):
        machine.wall += 5.5
        machine.run(1)

    assert len(machine.writers) > 1
