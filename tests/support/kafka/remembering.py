"""An adapter with a memory, over a fake cluster whose commits expire."""

from collections.abc import Callable
from dataclasses import dataclass

from adapter.errors import AdapterError
from adapter.lag.rules import AskedTopics, topics_for
from adapter.memory.keeper import UNNAMED_SECONDS
from adapter.memory.text import loads
from adapter.memory.value import GroupMemory, LastCommit, Reads, TopicMemory
from adapter.settings.models import Settings
from tests.support import samples
from tests.support.kafka.fake_cluster import Kafka
from tests.support.kafka.rig import Rig
from tests.support.kafka.small_cluster import ORDERS_0, ORDERS_1, ORDERS_2, given
from tests.support.samples import wants

CYCLES_UNTIL_GONE = 16
LATEST = given(offsetReset="latest")
"""Names billing and orders; what was never committed counts nothing."""
KEY = ("main", "billing")
EXACT = {"group": "billing", "topic": "orders"}


@dataclass
class Shelf:
    """A text that outlives an adapter."""

    text: str = ""
    writes: int = 0
    error: AdapterError | None = None
    write_error: AdapterError | None = None

    def exchange(self, change: Callable[[str], str]) -> None:
        if self.error is not None:
            raise self.error
        changed = change(self.text)
        if self.write_error is not None and changed != self.text:
            raise self.write_error
        self.writes += changed != self.text
        self.text = changed


class Adapter(Rig):
    def __init__(
        self, kafka: Kafka, settings: Settings | None = None, shelf: Shelf | None = None, *asked: AskedTopics
    ) -> None:
        super().__init__(kafka, settings, exchange=None if shelf is None else shelf.exchange)
        self.ask(*asked)

    def ask(self, *asked: AskedTopics) -> None:
        self.cycle.asked = topics_for("main", asked, self.metrics.may_name)

    def remember(self, cycles: int = 1) -> None:
        """Runs cycles, each with a round of the keeper before and after it."""
        for _ in range(cycles):
            self.memory.run_once()
            self.run()
            self.memory.run_once()

    def value(self, metric: str = "lag", **labels: str | list[str]) -> int:
        return sum(item.milli // 1000 for item in self.read(metric, wants(**labels)).values)


def hpa(group: str, *topics: str, namespace: str = "shop", cluster: str | None = None) -> AskedTopics:
    return AskedTopics(namespace, cluster, group, tuple(sorted(topics)))


BILLING_ORDERS = hpa("billing", "orders")


def kafka() -> Kafka:
    """Billing has committed for orders, audit for trail; nobody reads other, which has 8 messages."""
    return Kafka(
        topics={"orders": [1, 2, 3], "trail": [1], "other": [1]},
        generations={"orders": "id-1", "trail": "id-2", "other": "id-3"},
        commits={"billing": {ORDERS_0: 7, ORDERS_1: 10, ORDERS_2: 5}, "audit": {("trail", 0): 1}},
        coordinators={"billing": 2, "audit": 1},
        ends={ORDERS_0: 10, ORDERS_1: 20, ORDERS_2: 5, ("trail", 0): 4, ("other", 0): 8},
    )


def gone(settings: Settings | None = None, shelf: Shelf | None = None, *asked: AskedTopics) -> Adapter:
    """Billing's commits have expired, and Kafka no longer knows it; HPAs have named it before."""
    adapter = Adapter(kafka(), settings, shelf, *(asked or (BILLING_ORDERS,)))
    adapter.remember()
    adapter.kafka.commits.pop("billing")
    adapter.remember(CYCLES_UNTIL_GONE)
    return adapter


def group(
    *commits: LastCommit, topic_id: str = "id-1", topic: str = "orders", reads: Reads | None = None
) -> GroupMemory:
    return GroupMemory({topic: TopicMemory(topic_id, commits)}, reads)


def kept(shelf: Shelf, topic: str = "orders") -> list[int]:
    found, bad = loads(shelf.text, samples.EPOCH + UNNAMED_SECONDS)
    assert not bad
    return [reading.offset for reading in found[KEY].topics[topic].commits]


def expired(shelf: Shelf, settings: Settings = LATEST) -> Kafka:
    """A cluster whose commits have expired when 13 messages were waiting; an adapter saw it."""
    adapter = Adapter(kafka(), settings, shelf)
    adapter.remember()
    adapter.kafka.commits.clear()
    adapter.remember(CYCLES_UNTIL_GONE)
    assert adapter.lag() == 13
    return adapter.kafka


def restarted(former: Adapter, shelf: Shelf) -> Adapter:
    """Another process, once the former one has ended as after SIGTERM."""
    former.memory.run_once(is_last=True)
    made = Adapter(former.kafka, former.settings, shelf)
    made.clock.seconds = former.clock.seconds
    made.cycle.asked = former.cycle.asked
    made.remember()
    return made
