"""Which partitions a read covers, and how many replicas can have one."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from adapter.metrics.selection import Selection
from adapter.settings.models import Replicas
from adapter.verdicts.assignment import NO_LIMIT, Sharing, most_members


@dataclass(frozen=True, slots=True)
class Readable:
    """The partitions of one group that a read covers."""

    cluster: str
    group: str
    partitions: Mapping[str, int]
    """Topic -> their number."""
    sharing: Sharing = Sharing.BY_TOPIC
    consumers_per_replica: int = 1

    @property
    def most_replicas(self) -> int | None:
        """None if any number of replicas can have a partition."""
        most = most_members(self.partitions.values(), self.sharing)
        return None if most == NO_LIMIT else -(-most // self.consumers_per_replica)


def readable_in(chosen: Sequence[Selection], shape: Replicas | None) -> tuple[Readable, ...]:
    """Returns what each selected group has of the selection; nothing while it is in doubt whether a topic is read.

    `shape`: of the metric, if it is one of replicas."""
    found: dict[tuple[str, str], dict[str, int]] = {}
    sharing: dict[tuple[str, str], Sharing] = {}
    for one in chosen:
        layout, totals = one.view.layout, one.totals
        if any(totals.is_in_doubt[entry] for entry in one.entries):
            return ()
        for entry in one.entries:
            group, topic = layout.groups[totals.group[entry]], layout.topics[totals.topic[entry]]
            sharing[one.view.cluster, group] = one.view.sharing_of(group)
            found.setdefault((one.view.cluster, group), {})[topic] = len(one.rows_of(entry))
    each = 1 if shape is None else shape.consumers_per_replica
    return tuple(Readable(*place, topics, sharing[place], each) for place, topics in found.items())


def combined(read: Sequence[Readable]) -> Readable:
    """Returns what several reads of one group cover together."""
    partitions: dict[str, int] = {}
    for topic, count in (item for each in read for item in each.partitions.items()):
        partitions[topic] = max(count, partitions.get(topic, 0))
    consumers = max(each.consumers_per_replica for each in read)
    return Readable(read[0].cluster, read[0].group, partitions, read[0].sharing, consumers)
