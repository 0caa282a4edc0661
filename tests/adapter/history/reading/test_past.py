"""A process that keeps a history ends, and the next one reads back what moved before: by the product's own files."""

from dataclasses import dataclass, field

import numpy as np
import pyarrow as pa
import pytest
from pyarrow import parquet

from adapter.collector.cycle import Cycle
from adapter.history.clock_mark import ClockMark
from adapter.history.contract import CLOCK_KEY
from adapter.history.reading import cycles
from adapter.history.reading.past import Start, past_of
from adapter.history.writer import HistoryWriter
from adapter.lag.earlier import Wanted
from adapter.lag.rules import Watching
from adapter.metrics.problems import Reason
from adapter.settings.models import Settings
from adapter.telemetry import HistoryTelemetry, Telemetry
from tests.support import samples
from tests.support.history.histories import FakeFiles
from tests.support.kafka.fake_cluster import Kafka
from tests.support.kafka.rig import Rig
from tests.support.kafka.small_cluster import BILLING, ORDERS_0, ORDERS_1, given, kafka
from tests.support.samples import NOW

PARTITIONS = (ORDERS_0, ORDERS_1, ("orders", 2))
DEPTH = 40_000.0
DOWN_SECONDS = 20.0


@dataclass
class World:
    """A cluster into each of whose partitions 10 messages come per second, a group that has stopped at 1000, and a
    history. Adapters with an interval of 10 s come and go."""

    cluster: Kafka = field(default_factory=kafka)
    files: FakeFiles = field(default_factory=FakeFiles)
    settings: Settings = field(default_factory=given)
    seconds: float = NOW

    def __post_init__(self) -> None:
        self.cluster.generations = {"orders": "first"}
        self.cluster.commits["billing"] = dict.fromkeys(PARTITIONS, 1000)
        self.cluster.ends = dict.fromkeys(PARTITIONS, 900)

    def pass_by(self, seconds: float) -> None:
        self.seconds += seconds
        for partition in self.cluster.ends:
            self.cluster.ends[partition] += round(10 * seconds)

    def live(
        self, cycles: int, writer: str = "pod-1", boot: str | None = "a", ahead: float = 0.0, flush: int = 6
    ) -> Rig:
        """A process that runs so many cycles and then is killed; it writes a file after every `flush` of them."""
        rig = Rig(self.cluster, self.settings)
        rig.clock.ahead = ahead
        own = HistoryTelemetry(Telemetry())
        history = samples.settings(history={"location": "/history"}).history
        kept = HistoryWriter(history, self.files, own, rig.clock, writer, boot_id=boot)
        for number in range(cycles):
            self.pass_by(10)
            rig.clock.seconds = self.seconds - 10 if rig.store.version else self.seconds
            rig.run()
            for sample in rig.samples:
                kept.append(sample)
            if number % flush == flush - 1:
                kept._encode()
                kept._write(None)
        return rig

    def begin(self, boot: str | None = "a", ahead: float = 0.0) -> Rig:
        """The next process, after its first cycle and what it reads back."""
        self.pass_by(DOWN_SECONDS)
        rig = Rig(self.cluster, self.settings)
        rig.clock.seconds, rig.clock.ahead = self.seconds, ahead
        start = self.seconds
        rig.run()
        self.recall(rig, rig.cycle, start, boot)
        self.step(rig)
        return rig

    def recall(self, rig: Rig, cycle: Cycle, start: float, boot: str | None) -> None:
        layout = rig.view.layout
        wanted = Wanted("main", layout, np.full(len(layout), rig.cycle._rows.is_committed_only.any()))
        mark = ClockMark(boot_id=boot, to_epoch=rig.clock.time() - rig.clock.monotonic())
        cycle.precede(past_of(self.files, wanted, Start(start, mark), DEPTH))

    def step(self, rig: Rig) -> None:
        self.pass_by(10)
        rig.run()


def age(rig: Rig) -> float:
    (item,) = rig.read("lag_seconds", BILLING).values
    return item.milli / 1000


def is_refused(rig: Rig) -> bool:
    return rig.reasons("lag_seconds", BILLING) == [Reason.LOWER_BOUND]


def test_after_a_restart_the_age_of_a_message_that_waits_is_exact() -> None:
    world = World()
    world.live(12)
    rig = world.begin()

    # The log ends passed 1000 ten seconds after NOW.
    assert age(rig) == pytest.approx(world.seconds - (NOW + 10))


@pytest.mark.parametrize("delivered", [0, 1, 2])
def test_a_past_that_is_read_back_during_a_change_of_the_settings_is_not_lost(delivered: int) -> None:
    """A new collector is made while the former one still runs, and the past comes before that, after it or both."""
    world = World()
    world.live(12)
    world.pass_by(DOWN_SECONDS)
    rig, start = Rig(world.cluster, world.settings), world.seconds
    rig.clock.seconds = start
    rig.run()
    former, watching = rig.cycle, Watching(world.settings, "main")
    new = Cycle(watching, rig.brokers, rig.store.feeds["main"], rig.clock, rig.memory)
    if delivered != 1:
        world.recall(rig, former, start, "a")
    new.follow(former)
    if delivered != 0:
        world.recall(rig, former, start, "a")
    rig.cycle = new
    world.step(rig)
    world.step(rig)

    assert age(rig) == pytest.approx(world.seconds - (NOW + 10))


def test_without_a_past_it_is_refused_as_a_lower_bound() -> None:
    world = World()
    world.live(12)
    world.files.written.clear()

    assert is_refused(world.begin())


def test_rates_are_known_at_once() -> None:
    world = World()
    world.live(12)
    rig = world.begin()
    (item,) = rig.read("production_rate", BILLING).values

    assert item.milli == 30_000
    assert world.live(1).reasons("production_rate", BILLING) == [Reason.MOVEMENT_UNKNOWN]


def test_a_group_of_whom_only_old_files_are_left_has_no_rate_and_its_ages() -> None:
    world = World()
    world.live(12)
    world.pass_by(3600)
    rig = world.begin()

    assert rig.reasons("production_rate", BILLING) == [Reason.MOVEMENT_UNKNOWN]
    assert age(rig) == pytest.approx(world.seconds - (NOW + 10))


def test_a_topic_that_was_created_again_meanwhile_has_no_past() -> None:
    world = World()
    world.live(12)
    world.cluster.generations = {"orders": "second"}

    assert is_refused(world.begin())


def test_log_ends_of_another_isolation_level_do_not_count() -> None:
    world = World()
    world.live(12)
    world.settings = given(isolation="read_committed")
    world.cluster.stable_ends = world.cluster.ends

    assert is_refused(world.begin())


def test_what_another_replica_sampled_since_the_start_does_not_count() -> None:
    world = World()
    layout = world.live(12, flush=12).view.layout
    start = NOW + 65
    wanted = Wanted("main", layout, np.zeros(len(layout), dtype=bool))
    past = past_of(world.files, wanted, Start(start, ClockMark(boot_id="a", to_epoch=samples.EPOCH - NOW)), DEPTH)

    assert past.seam == NOW + 60


# -- clocks ----------------------------------------------------------------------------------------------------


def test_on_another_machine_the_wall_clock_is_taken() -> None:
    world = World()
    world.live(12, boot="b", ahead=0.5)

    assert age(world.begin()) == pytest.approx(world.seconds - (NOW + 10) - 0.5), "as wrong as the clocks differ"


@pytest.mark.parametrize("step", [3600.0, -3600.0])
def test_a_wall_clock_that_was_set_while_no_process_ran_makes_no_age(step: float) -> None:
    world = World()
    world.live(12)

    assert is_refused(world.begin(ahead=step))


def test_samples_of_the_future_make_the_clock_of_another_machine_worthless() -> None:
    world = World()
    world.live(12, boot="b", ahead=3600)

    assert is_refused(world.begin())


def test_a_process_whose_clock_was_set_while_it_ran_is_not_believed_on_another_machine() -> None:
    world = World()
    world.live(6, boot="b")
    world.live(6, boot="b", writer="pod-1-clock2")

    assert is_refused(world.begin())


def test_a_file_that_does_not_say_its_clock_does_not_count() -> None:
    world = World()
    world.live(12)
    for path, content in world.files.written.items():
        table = parquet.read_table(pa.BufferReader(content))
        metadata = {key: value for key, value in table.schema.metadata.items() if key.decode() != CLOCK_KEY}
        sink = pa.BufferOutputStream()
        parquet.write_table(table.replace_schema_metadata(metadata), sink)
        world.files.written[path] = sink.getvalue()

    assert is_refused(world.begin())


# -- files -----------------------------------------------------------------------------------------------------


def test_a_torn_file_does_not_keep_the_others_from_being_read() -> None:
    world = World()
    world.live(12)
    newest = max(world.files.written)
    world.files.written[newest] = world.files.written[newest].slice(0, 300)

    assert age(world.begin()) == pytest.approx(world.seconds - (NOW + 10))


def test_of_two_writers_the_one_with_most_known_rows_counts() -> None:
    """The other one could read one partition alone, and says that the log ends passed 1000 later."""
    world = World()
    world.live(12)
    behind = World(files=world.files, seconds=NOW - 1)
    behind.cluster.silent = {2, 3}
    behind.cluster.ends = dict.fromkeys(PARTITIONS, 0)
    behind.live(12, writer="a-pod")

    assert age(world.begin()) == pytest.approx(world.seconds - (NOW + 10))


def test_a_file_with_many_cycles_is_read_a_few_at_a_time(monkeypatch: pytest.MonkeyPatch) -> None:
    world = World()
    rig = world.live(20, flush=20)
    layout = rig.view.layout
    mark = ClockMark(boot_id="a", to_epoch=rig.clock.time() - rig.clock.monotonic())
    wanted, start = Wanted("main", layout, np.zeros(len(layout), dtype=bool)), Start(world.seconds + 20, mark)
    found = {}
    for most in (1000, 3):
        monkeypatch.setattr(cycles, "MOST_ROWS", most * len(layout))
        ticks = past_of(world.files, wanted, start, DEPTH).ends.ticks
        found[most] = [(tick.at, tick.offset[:].tolist()) for tick in ticks]

    assert len(found[1000]) > 3
    assert found[1000] == found[3]
