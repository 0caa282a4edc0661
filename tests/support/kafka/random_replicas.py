"""Two replicas that share a text, while groups commit, expire, sleep and wake up, and everything around them fails."""

from collections.abc import Callable, Sequence
from random import Random

from adapter.errors import AdapterError
from adapter.metrics.problems import NoMatch, ValueUnavailable
from tests.support import samples
from tests.support.kafka.fake_cluster import Kafka
from tests.support.kafka.remembering import Adapter, Shelf, hpa

OFFSETS = "__consumer_offsets"
GROUPS = ("billing", "audit")
TOPICS = ("orders", "trail")
ASKED = tuple(hpa(group, *TOPICS) for group in GROUPS)
CYCLES_UNTIL_SETTLED = 14
CYCLES_UNTIL_PLAIN = 32
"""After a refusal: the doubts that a move leaves, and two rounds of descriptions."""
ROUND_CYCLES = 6


class Replicas:
    """Both adapters name each group with each topic, so that what they serve must follow from what they saw."""

    def __init__(self, chance: Random) -> None:
        self.chance = chance
        self.shelf = Shelf()
        self.kafka = Kafka(topics={OFFSETS: [1, 2, 3]}, generations={OFFSETS: "offsets"}, epochs={OFFSETS: [1, 1, 1]})
        self.last: dict[tuple[str, str, int], int] = {}
        """The latest commit that an adapter could see, also after it expired."""
        self.created = 0
        for topic in TOPICS:
            self._create(topic)
        self.kafka.commits = {group: {} for group in GROUPS}
        self.seconds = samples.NOW
        self.adapters = [self._started(), self._started()]
        self._calm_down()
        self.history: list[str] = []

    # -- events ------------------------------------------------------------------------------------

    def happen(self) -> None:
        """One to three events of one kind of trouble, and what follows while they last."""
        kinds = self.chance.choice(_KINDS)
        for _ in range(self.chance.randint(1, 3)):
            event = self.chance.choice(kinds)
            self.history.append(event.__name__)
            event(self)
            self.run(self.chance.randint(0, 3))
        self.run(ROUND_CYCLES)
        for adapter in self.adapters:
            adapter.clock.ahead = 0
        self.kafka.silent, self.kafka.refusing, self.shelf.error, self.shelf.write_error = set(), set(), None, None
        self.run(CYCLES_UNTIL_SETTLED)

    def produce(self) -> None:
        topic = self.chance.choice(TOPICS)
        for partition in self._partitions(topic):
            self.kafka.ends[topic, partition] += self.chance.randint(0, 30)

    def commit(self) -> None:
        group, topic = self.chance.choice(GROUPS), self.chance.choice(TOPICS)
        own = self.kafka.commits.setdefault(group, {})
        for partition in self._partitions(topic):
            place, end = (topic, partition), self.kafka.ends[topic, partition]
            if place in own or self.chance.random() < 0.8:
                least = max(own.get(place, 0), self.last.get((group, *place), 0))
                own[place] = self.last[group, *place] = self.chance.randint(min(least, end), end)
        self._calm_down()

    def expire_topic(self) -> None:
        group, topic = self.chance.choice(GROUPS), self.chance.choice(TOPICS)
        own = self.kafka.commits.get(group, {})
        for place in [place for place in own if place[0] == topic]:
            del own[place]

    def expire_group(self) -> None:
        self.kafka.commits.pop(self.chance.choice(GROUPS), None)

    def retain(self) -> None:
        topic = self.chance.choice(TOPICS)
        for partition in self._partitions(topic):
            place = topic, partition
            self.kafka.starts[place] = self.chance.randint(self.kafka.starts.get(place, 0), self.kafka.ends[place])

    def create_again(self) -> None:
        topic = self.chance.choice(TOPICS)
        for own in self.kafka.commits.values():
            for place in [place for place in own if place[0] == topic]:
                del own[place]
        self._create(topic)
        self._calm_down()

    def add_partition(self) -> None:
        """While the groups sleep, so that it counts from its start for those that have committed."""
        topic = self.chance.choice(TOPICS)
        partition = len(self.kafka.topics[topic])
        self.kafka.topics[topic].append(self.chance.choice((1, 2, 3)))
        self.kafka.epochs[topic].append(1)
        self.kafka.ends[topic, partition] = 0
        for group in GROUPS:
            if self._has_committed(group, topic):
                self.last[group, topic, partition] = 0

    def restart_one(self) -> None:
        place = self.chance.randrange(2)
        self.adapters[place].memory.run_once(is_last=True)
        self.adapters[place] = self._started()

    def restart_both(self) -> None:
        self.adapters = [self._started(), self._started()]

    def create_hpas_again(self) -> None:
        for adapter in self.adapters:
            adapter.ask()
        self.run(self.chance.randint(1, 2 * ROUND_CYCLES))
        for adapter in self.adapters:
            adapter.ask(*ASKED)

    def turn_clock(self) -> None:
        """Ahead, or back again."""
        self.chance.choice(self.adapters).clock.ahead = self.chance.choice((0, 7200))

    def deny_text(self) -> None:
        self.shelf.error = AdapterError("the API server does not answer")

    def deny_writes(self) -> None:
        self.shelf.write_error = AdapterError("the API server has no room")

    def silence_broker(self) -> None:
        self.kafka.silent = {self.chance.choice((1, 2, 3))}

    def refuse_connections(self) -> None:
        self.kafka.refusing = {self.chance.choice((1, 2, 3))}

    def move_leader(self) -> None:
        self._move(self.chance.choice(TOPICS))

    def move_coordinator(self) -> None:
        self._move(OFFSETS)

    # -- what is served, and what is right -----------------------------------------------------------

    def served(self) -> list[dict[tuple[str, str], int | str]]:
        return [{pair: _answer(adapter, *pair) for pair in self._pairs} for adapter in self.adapters]

    def numbers(self) -> list[tuple[tuple[str, str], int]]:
        """Without what is refused."""
        answers = [answer for served in self.served() for answer in served.items()]
        return [(pair, answer) for pair, answer in answers if isinstance(answer, int)]

    def right(self) -> dict[tuple[str, str], int]:
        return {
            pair: sum(self._lag(*pair, partition) for partition in self._partitions(pair[1])) for pair in self._pairs
        }

    def run(self, cycles: int = 1) -> None:
        """Each replica exchanges what it knows once in about six cycles."""
        for _ in range(cycles):
            self.seconds += 10
            for adapter in self.adapters:
                adapter.clock.seconds = self.seconds
                adapter.cycle.run_once()
                if self.chance.random() < 1 / ROUND_CYCLES:
                    adapter.memory.run_once()

    def _lag(self, group: str, topic: str, partition: int) -> int:
        place = topic, partition
        end, start = self.kafka.ends[place], self.kafka.starts.get(place, 0)
        commit = self.kafka.commits.get(group, {}).get(place, self.last.get((group, *place)))
        if commit is not None:
            return max(end - max(commit, start), 0)
        return 0 if self._has_committed(group, topic) else end - start

    @property
    def _pairs(self) -> Sequence[tuple[str, str]]:
        return [(group, topic) for group in GROUPS for topic in TOPICS]

    def _started(self) -> Adapter:
        adapter = Adapter(self.kafka, None, self.shelf, *ASKED)
        adapter.clock.seconds = self.seconds
        adapter.memory.run_once()
        return adapter

    def _calm_down(self) -> None:
        """Every replica has the time to see the groups, and to say so, before something else happens."""
        self.kafka.silent, self.kafka.refusing, self.shelf.error, self.shelf.write_error = set(), set(), None, None
        self.run(5)
        for adapter in self.adapters:
            adapter.memory.run_once()

    def _create(self, topic: str) -> None:
        self.created += 1
        leaders = [self.chance.choice((1, 2, 3)) for _ in range(self.chance.randint(1, 3))]
        self.kafka.generations[topic] = f"id-{self.created}"
        self.kafka.topics[topic], self.kafka.epochs[topic] = leaders, [1] * len(leaders)
        self.kafka.starts = {place: start for place, start in self.kafka.starts.items() if place[0] != topic}
        self.kafka.ends |= {(topic, partition): self.chance.randint(0, 50) for partition in range(len(leaders))}
        self.last = {key: commit for key, commit in self.last.items() if key[1] != topic}

    def _move(self, topic: str) -> None:
        partition = self.chance.randrange(len(self.kafka.topics[topic]))
        self.kafka.topics[topic][partition] = self.chance.choice((1, 2, 3))
        self.kafka.epochs[topic][partition] += 1

    def _partitions(self, topic: str) -> range:
        return range(len(self.kafka.topics[topic]))

    def _has_committed(self, group: str, topic: str) -> bool:
        return any(known[:2] == (group, topic) for known in self.last)


Event = Callable[[Replicas], None]
_DATA: tuple[Event, ...] = (Replicas.produce, Replicas.produce, Replicas.commit, Replicas.commit, Replicas.retain)
_LOSSES: tuple[Event, ...] = (
    Replicas.expire_topic,
    Replicas.expire_group,
    Replicas.create_again,
    Replicas.add_partition,
)
_TROUBLE: tuple[Event, ...] = (
    *(Replicas.restart_one, Replicas.restart_both, Replicas.deny_text, Replicas.deny_writes),
    *(Replicas.silence_broker, Replicas.move_leader, Replicas.create_hpas_again, Replicas.turn_clock),
)
_MOVES: tuple[Event, ...] = (Replicas.move_coordinator, Replicas.refuse_connections, Replicas.restart_one)
_KINDS = ((*_DATA, *_LOSSES, *_TROUBLE), (*_DATA, *_TROUBLE, *_MOVES))
"""A commit that is lost while its coordinator moves cannot be told from one that the new coordinator has not read."""


def _answer(adapter: Adapter, group: str, topic: str) -> int | str:
    try:
        return adapter.value(group=group, topic=topic)
    except (NoMatch, ValueUnavailable) as error:
        return f"{type(error).__name__}: {error}"
