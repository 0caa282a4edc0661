"""When a document is written beside the samples: when it changes, once an hour, and by the writer alone."""

import json
from dataclasses import dataclass, field

from adapter.history.notes import Note
from adapter.history.retention import LEDGER
from adapter.history.writer import HistoryWriter
from adapter.telemetry import HistoryTelemetry, Telemetry
from tests.support import samples
from tests.support.history.histories import FakeFiles, ledger
from tests.support.samples import SteppedClock

MINUTE, HOUR = 60.0, 3600.0


@dataclass
class Turns:
    """Whether this process writes."""

    is_held: bool = True
    written: dict[str, float] = field(default_factory=dict)

    def is_ours(self) -> bool:
        return self.is_held

    def is_vacant(self) -> bool:
        return False

    def note_written(self, until: object) -> None:
        pass


class Rig:
    def __init__(self, note: Note | None, files: FakeFiles | None = None) -> None:
        self.note, self.files, self.clock, self.turns = note, files or FakeFiles(), SteppedClock(), Turns()
        given = samples.settings(history={"location": "/history", "flushInterval": "1m", "retention": "3d"}).history
        own = HistoryTelemetry(Telemetry())
        self.history = HistoryWriter(
            given, self.files, own, self.clock, "pod-1", self.turns, autoscalers=lambda: self.note
        )

    def rounds(self, count: int) -> list[str]:
        """The texts that so many rounds, a minute apart, have added."""
        before = set(self.documents())
        for _ in range(count):
            self.history._round()
            self.clock.seconds += MINUTE
        return [self.files.others[path].to_pybytes().decode() for path in self.documents() if path not in before]

    def documents(self) -> list[str]:
        return sorted(path for path in self.files.others if path != LEDGER)


def some(text: str) -> Note:
    return Note(text, text)


def test_a_document_is_written_at_once_and_then_once_an_hour() -> None:
    rig = Rig(some("one"))

    assert [rig.rounds(1), rig.rounds(59), rig.rounds(2)] == [["one"], [], ["one"]]
    assert rig.documents()[0] == "autoscalers/date=2026-11-18/pod-1-20261118T110640.000000Z.json"


def test_a_change_is_written_in_the_next_round_and_the_end_of_all_as_well() -> None:
    rig = Rig(some("one"))
    rig.rounds(3)

    rig.note = some("two")
    assert rig.rounds(2) == ["two"]
    rig.note = Note("none", "none", is_empty=True)
    assert rig.rounds(200) == ["none"]


def test_where_there_is_nothing_from_the_start_nothing_is_written() -> None:
    assert Rig(Note("none", "none", is_empty=True)).rounds(200) == []


def test_what_ended_before_the_start_is_ended_by_one_empty_document() -> None:
    files = FakeFiles(tables={"autoscalers": ["2026-11-17"]}, others=ledger({"2026-11-17": 0}))

    assert Rig(Note("none", "none", is_empty=True), files).rounds(200) == ["none"]


def test_as_long_as_it_is_unknown_what_there_is_nothing_is_written() -> None:
    rig = Rig(None, FakeFiles(tables={"autoscalers": ["2026-11-17"]}, others=ledger({"2026-11-17": 0})))
    assert rig.rounds(3) == []

    rig.note = some("one")
    assert rig.rounds(1) == ["one"]


def test_what_changes_without_need_waits_for_the_hour() -> None:
    rig = Rig(Note("replicas 1", "spec"))
    rig.rounds(1)
    rig.note = Note("replicas 2", "spec")

    assert [rig.rounds(59), rig.rounds(1)] == [[], ["replicas 2"]]


def test_a_replica_that_does_not_write_leaves_it_to_the_other() -> None:
    rig = Rig(some("one"))
    rig.turns.is_held = False
    assert rig.rounds(3) == []

    rig.turns.is_held = True
    assert rig.rounds(1) == ["one"]


def test_the_day_counts_as_written_and_is_deleted_when_it_is_too_old() -> None:
    rig = Rig(some("one"), FakeFiles(tables={"autoscalers": ["2026-11-01"]}, others=ledger({"2026-11-01": 4})))
    rig.rounds(1)
    noted = json.loads(rig.files.others[LEDGER].to_pybytes())["last_written"]

    assert rig.files.deleted == [("autoscalers", "2026-11-01")]
    assert "2026-11-18" in noted
