"""A cycle over a fake cluster, and the metrics of what it stored."""

from collections import Counter

from adapter.collector.cycle import Cycle, Outcome
from adapter.conditions import Conditions
from adapter.history.sample import Sample
from adapter.lag.rules import Watching
from adapter.memory.keeper import Exchange, MemoryKeeper
from adapter.metrics.query import Metrics
from adapter.metrics.store import ClusterView, Store
from adapter.settings.models import Settings
from tests.support import samples
from tests.support.kafka.fake_brokers import FakeBrokers
from tests.support.kafka.fake_cluster import Kafka
from tests.support.samples import MetricsReader, SteppedClock


class Rig(MetricsReader):
    """A cycle over a fake cluster, and the metrics of what it stored."""

    def __init__(
        self,
        kafka: Kafka,
        settings: Settings | None = None,
        cluster: str = "main",
        exchange: Exchange | None = None,
    ) -> None:
        """`exchange` reaches the text that outlives the process; the test runs the keeper's rounds itself."""
        self.kafka = kafka
        self.settings = settings or samples.settings()
        self.clock = SteppedClock()
        self.brokers = FakeBrokers(kafka, self.clock)
        self.store = Store(one.name for one in self.settings.clusters)
        self.samples: list[Sample] = []
        """What the newest cycle hands over to the history."""
        self.memory = MemoryKeeper(lambda: {cluster: self.cycle.remembered()}, self.clock, Conditions(), exchange)
        watching, feed = Watching(self.settings, cluster), self.store.feeds[cluster]
        self.cycle = Cycle(watching, self.brokers, feed, self.clock, self.memory)
        self.metrics = Metrics(self.settings, self.store, self.clock)

    def run(self, cycles: int = 1) -> Outcome:
        """So many cycles, an interval apart; the clock stands where the last one read. Gives its outcome."""
        for _ in range(cycles):
            if self.store.version:
                self.clock.seconds += self.settings.collection.interval
            self.brokers.requests.clear()
            self.brokers.asked_for.clear()
            outcome = self.cycle.run_once()
            self.samples = [sample for sample in [outcome.sample] if sample is not None]
        return outcome

    def counted(self) -> Counter[str]:
        """How many requests of each kind the newest cycle sent; the two isolation levels apart."""
        return Counter(kind for kind, _ in self.brokers.requests)

    def asked(self, kind: str) -> list[object]:
        return [what for asked, what in self.brokers.asked_for if asked == kind]

    @property
    def view(self) -> ClusterView:
        return self.store.views[0]

    def lag(self, group: str = "billing") -> int:
        """The sum of what a selector for the group gives, as the autoscaler adds it."""
        return sum(item.milli // 1000 for item in self.read("lag", samples.wants(group=group)).values)

    def lag_of(self, group: str, topic: str) -> int:
        (item,) = self.read("lag", samples.wants(group=group, topic=topic)).values
        return item.milli // 1000
