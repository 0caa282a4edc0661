"""Log ends and starts that a leader refuses or cannot report."""

import numpy as np
import pytest

from adapter.cluster.topics import Topology
from adapter.collector.log_offsets import Ends, EndTable
from adapter.columns import NOT_KNOWN, Flags
from adapter.kafka.liveness import Liveness
from adapter.lag.layout import Layout, layout_of
from adapter.lag.snapshot import Causes, State
from adapter.settings.models import Isolation
from tests.support import samples
from tests.support.kafka.fake_brokers import FakeBrokers
from tests.support.kafka.fake_cluster import Kafka
from tests.support.samples import SteppedClock

UNCOMMITTED, COMMITTED = Isolation.READ_UNCOMMITTED, Isolation.READ_COMMITTED
INTERVAL = 10.0


def kafka() -> Kafka:
    ends = {("orders", 0): 10, ("orders", 1): 20, ("orders", 2): 30, ("refunds", 0): 40}
    return Kafka(topics={"orders": [1, 2, 1], "refunds": [3]}, ends=ends, starts={("orders", 1): 4})


class Reads:
    """Ends over a fake cluster; all partitions of orders and refunds are wanted."""

    def __init__(self, leaders: dict[str, list[int]] | None = None) -> None:
        self.kafka = kafka()
        self.clock = SteppedClock()
        self.brokers = FakeBrokers(self.kafka, self.clock)
        self.liveness = Liveness(self.brokers.probe, self.clock.monotonic)
        self.ends = Ends(self.brokers, self.liveness, self.clock.monotonic, INTERVAL)
        self.causes = Causes()
        self.know(leaders or self.kafka.topics)

    def know(self, leaders: dict[str, list[int]], **generations: str) -> None:
        """What Metadata said, which may be old."""
        self.topology: Topology = samples.topology(leaders, generations)
        wanted = dict.fromkeys(("audit", "billing"), ("orders", "refunds"))
        self.layout: Layout = layout_of(wanted, self.topology)

    @property
    def everything(self) -> np.ndarray[tuple[int], np.dtype[np.bool_]]:
        return np.ones(sum(len(topic.leaders) for topic in self.topology.topics.values()), dtype=bool)

    def read(self, level: Isolation = UNCOMMITTED) -> EndTable:
        return self.read_some({level: self.everything})[level]

    def read_some(self, needed: dict[Isolation, Flags]) -> dict[Isolation, EndTable]:
        """In a cycle with one round."""
        self.ends.begin()
        self.ends.ask(self.layout, self.topology, needed)
        (tables,) = self.ends.collect(self.layout, self.causes)
        return tables

    def starts(self) -> list[int]:
        """What is known of the starts in the next cycle."""
        self.brokers.asked_for.clear()
        found: list[int] = self.ends.starts(self.layout, self.topology).tolist()
        self.clock.seconds += INTERVAL
        return found

    def asked(self) -> list[object]:
        return [what for _, what in self.brokers.asked_for]

    def reported(self, table: EndTable) -> list[tuple[State, str]]:
        return [(self.causes.table()[code].state, self.causes.table()[code].text) for code in table.cause.tolist()]


@pytest.mark.parametrize("error", [3, 5, 6, 74, 75, 100])
def test_an_error_of_moving_leadership_is_unknown_and_says_that_metadata_has_news(error: int) -> None:
    reads = Reads()
    reads.kafka.end_errors = {("orders", 2): error}

    assert reads.reported(reads.read())[2] == (State.UNKNOWN, "its leadership is moving")
    assert reads.ends.have_moved

    reads.kafka.end_errors.clear()
    reads.read()
    assert not reads.ends.have_moved


@pytest.mark.parametrize(
    ("error", "text"),
    [
        (29, "the adapter may not describe topic orders (ACL Describe on the topic is missing)"),
        (56, "its leader returned error 56"),
    ],
)
def test_other_errors_are_of_the_partition_alone(error: int, text: str) -> None:
    reads = Reads()
    reads.kafka.end_errors = {("orders", 2): error}
    table = reads.read()

    assert reads.reported(table) == [(State.OK, ""), (State.OK, ""), (State.ERROR, text), (State.OK, "")]
    assert not reads.ends.have_moved


@pytest.mark.parametrize("absurd", [-2, 2**60])
def test_what_can_be_no_offset_is_refused(absurd: int) -> None:
    reads = Reads()
    reads.kafka.ends["orders", 1] = reads.kafka.starts["orders", 0] = absurd

    assert reads.reported(reads.read())[1] == (State.ERROR, "its leader returned an invalid log end")
    assert reads.starts() == [NOT_KNOWN, 4, 0, 0]


def test_the_start_of_a_new_partition_is_read_at_once_and_alone() -> None:
    reads = Reads()
    reads.starts()
    reads.kafka.topics["orders"].append(3)
    reads.kafka.starts["orders", 3] = 5
    reads.know(reads.kafka.topics)

    assert reads.starts() == [0, 4, 0, 5, 0]
    assert reads.asked() == [{3: {"orders": (3,)}}]


def test_a_start_that_cannot_be_read_stays_as_it_was() -> None:
    reads = Reads()
    reads.starts()
    reads.kafka.start_errors = {("orders", 1): 6}
    reads.kafka.starts["orders", 0] = 2
    found = [reads.starts() for _ in range(6)]

    assert found[-1] == [2, 4, 0, 0]
