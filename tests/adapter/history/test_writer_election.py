"""Two replicas write one history in turns: nothing is missing, and each minute has one writer with all of it."""

from collections import defaultdict
from dataclasses import dataclass, field

import pytest

from adapter.history import writer as module
from adapter.history.retention import ledger_in
from adapter.history.writer_election import Marks
from tests.adapter.history.test_writer import FULL, Rig
from tests.support.history.histories import FakeFiles, ledger, read_back, sample

MINUTE = 1_795_003_020.0
"""The start of a minute."""


@dataclass
class Turn:
    """A replica's view of a Lease whose holder the test chooses."""

    lease: "Lease"
    name: str

    def is_ours(self) -> bool:
        return self.lease.holder == self.name

    def is_vacant(self) -> bool:
        return not self.lease.holder

    @property
    def written(self) -> Marks:
        return self.lease.written

    def note_written(self, until: Marks) -> None:
        self.lease.written |= until


@dataclass
class Lease:
    holder: str = "a"
    written: dict[str, float] = field(default_factory=dict)


class Replicas:
    """Both sample every 10 s, `b` 3 s after `a`."""

    def __init__(self) -> None:
        self.lease, self.files, self.now = Lease(), FakeFiles(), MINUTE
        self.a, self.b = (Rig(self.files, Turn(self.lease, name), name, flushInterval="1m") for name in "ab")
        self.running = [self.a, self.b]

    def run(self, seconds: int) -> None:
        for _ in range(seconds // 10):
            for rig in self.running:
                rig.history.append(sample(at=self.now + (3 if rig is self.b else 0)))
                rig.round_after(10)
            self.now += 10

    def minutes(self) -> dict[int, dict[str, int]]:
        """Minute -> writer -> how many of its samples are in the location."""
        found: dict[int, dict[str, set[object]]] = defaultdict(lambda: defaultdict(set))
        for path, content in self.files.written.items():
            for row in read_back(content):
                minute = int(row["sampled_at"].timestamp() - MINUTE) // 60
                found[minute][path.split("/")[-1][0]].add(row["sampled_at"])
        return {minute: {who: len(times) for who, times in writers.items()} for minute, writers in found.items()}


def test_the_one_whose_turn_it_is_not_writes_and_deletes_nothing_and_counts_nothing_as_lost() -> None:
    both = Replicas()
    both.files.others.update(ledger({"2026-01-01": 40}))
    both.files.tables = {"samples": ["2026-01-01"]}
    both.lease.holder = "nobody"
    both.run(300)

    assert (both.files.written, both.files.deleted) == ({}, [])
    assert both.b.metric("flush_age_seconds") <= 10
    assert both.b.metric("writer") == 0
    both.b.history.start()
    both.b.history.stop(60)
    assert both.b.metric("dropped_rows_total") == 0


def test_the_other_holds_what_is_not_written_yet_and_no_more() -> None:
    both = Replicas()
    both.run(600)

    assert {path.rpartition("/")[2][0] for path in both.files.written} == {"a"}
    assert both.b.metric("buffered_rows") <= 2 * 12 * 2


def test_after_a_sudden_end_no_sample_is_missing_and_each_minute_has_one_whole_writer() -> None:
    both = Replicas()
    both.run(230)
    both.lease.holder = "nobody"  # `a` is gone, with all that it had in memory
    both.running.remove(both.a)
    both.run(20)
    both.lease.holder = "b"
    both.run(230)

    minutes = both.minutes()  # of the last one, not everything is due yet
    assert [max(minutes[number].values()) for number in range(7)] == [6] * 7
    assert sum(len(writers) > 1 for writers in minutes.values()) <= 1


def test_one_that_lost_its_turn_while_it_could_not_write_leaves_its_rows_to_the_other() -> None:
    both = Replicas()
    both.run(120)
    both.files.trouble = FULL
    both.run(60)
    both.lease.holder = "b"
    both.files.trouble = None
    both.run(180)
    assert both.a.metric("buffered_rows") <= 2 * 12 * 2

    both.lease.holder = "a"
    both.run(120)
    minutes = both.minutes()  # of the last one, not everything is due yet
    assert [max(minutes[number].values()) for number in range(7)] == [6] * 7


@pytest.mark.parametrize(("holder", "is_written"), [("", True), ("another", False)])
def test_at_its_end_a_replica_writes_what_no_other_writes(holder: str, *, is_written: bool) -> None:
    both = Replicas()
    both.lease.holder = holder
    both.run(300)
    both.b.history.start()

    both.b.history.stop(60)
    assert bool(both.files.written) == is_written
    assert (both.b.metric("buffered_rows") == 0) == is_written


def test_days_do_not_age_faster_because_another_replica_takes_over() -> None:
    """Both have run for the same 300 s, which count once."""
    both = Replicas()
    both.run(150)
    both.lease.holder = "b"
    both.run(150)

    content = both.files.read("_retention.json")
    assert content is not None
    assert ledger_in(content).running_seconds <= 300


def test_rows_that_no_replica_could_keep_are_counted_by_the_one_that_continues(monkeypatch: pytest.MonkeyPatch) -> None:
    """Without a holder, as during an outage of kube-apiserver, nothing is encoded, and samples fill their memory."""
    monkeypatch.setattr(module, "SAMPLE_BYTES", 12 * sample().size)
    both = Replicas()
    both.lease.holder = "nobody"
    both.run(300)
    assert (both.a.metric("dropped_rows_total"), both.a.metric("buffered_rows")) == (0, 24)

    both.lease.holder = "a"
    both.run(10)
    assert both.a.metric("dropped_rows_total") + both.a.metric("rows_total") == 31 * 2
    assert both.b.metric("dropped_rows_total") == 0


def test_rows_that_another_has_written_are_not_lost(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "SAMPLE_BYTES", 12 * sample().size)
    both = Replicas()
    both.files.trouble = FULL
    both.run(300)  # `a` keeps files, which `b` cannot
    both.files.trouble = None
    both.run(60)
    both.lease.holder = "b"
    both.run(10)

    assert both.b.metric("dropped_rows_total") == 0
