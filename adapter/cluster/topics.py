"""What Metadata reports: brokers, topics, their generations and leaders, as one frozen value."""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace

import numpy as np
from numpy.typing import NDArray

from adapter.columns import Flags

ANSWERS_BEFORE_DELETED = 3


@dataclass(frozen=True, slots=True, eq=False)
class Topic:
    generation: str | None
    """The topic id, which changes if a topic is created again. None: no broker has reported it."""
    leaders: NDArray[np.int32]
    """Leader by partition; NOBODY (`cluster.groups`) if there is none."""
    epochs: NDArray[np.int32] | None = None
    """Leader epoch by partition, which rises with every election; None if unknown."""


@dataclass(frozen=True, slots=True)
class Topology:
    brokers: Mapping[int, str] = field(default_factory=dict)
    """Node id -> `host:port`."""
    topics: Mapping[str, Topic] = field(default_factory=dict)
    missing: Mapping[str, int] = field(default_factory=dict)
    """Missing topics -> the number of consecutive responses without them."""
    hidden: frozenset[str] = frozenset()
    """Topics requested by name that we may not describe; it is unknown whether they exist."""

    def is_deleted(self, topic: str) -> bool:
        return self.missing.get(topic, 0) >= ANSWERS_BEFORE_DELETED


def updated(known: Topology, seen: Topology, expected: frozenset[str], *, counts: bool = True) -> Topology:
    """Merges `seen`; a known or `expected` topic is deleted only after several responses without it.

    Returns the same object if nothing changed. Fewer partitions and older leaders are ignored, because a broker that is
    cut off may report them. So may one that has just been fenced, perhaps the only one, report no brokers at all.
    `counts` is False for a second response in a cycle, which proves no more."""
    absent = (known.topics.keys() | expected | known.missing.keys()) - seen.topics.keys() - seen.hidden
    missing = {topic: known.missing.get(topic, 0) + counts for topic in absent}
    doubtful = {topic: known.topics[topic] for topic in absent & known.topics.keys()}
    kept = {topic: value for topic, value in doubtful.items() if missing[topic] < ANSWERS_BEFORE_DELETED}
    forgotten = {topic for topic, count in missing.items() if count > ANSWERS_BEFORE_DELETED and topic not in expected}
    merged = replace(
        seen,
        brokers=seen.brokers or known.brokers,
        topics={**sharing(known, _caught_up(known, seen)).topics, **kept},
        missing={topic: count for topic, count in missing.items() if topic not in forgotten},
    )
    return known if merged == known else merged


def without_epochs(known: Topology) -> Topology:
    """Drops the epochs, so that the next response is believed: it may come from other brokers."""
    return replace(known, topics={name: replace(topic, epochs=None) for name, topic in known.topics.items()})


def is_same_generation(before: str | None, after: str | None) -> bool:
    """Whether a topic may be the one of before. During an upgrade, a topic without an id is given one."""
    return before is None or before == after


def _caught_up(known: Topology, seen: Topology) -> Topology:
    """Returns `seen`, corrected by newer knowledge about topics of the same generation.

    A broker that reports no topic ids, as some do during an upgrade, proves no other generation. After a downgrade all
    of them report none, also of a topic that was created again, whose epochs begin anew."""
    merged = {
        name: _merged(before, topic)
        for name, topic in seen.topics.items()
        if (before := known.topics.get(name)) is not None
        and before is not topic
        and before.generation is not None
        and topic.generation in {before.generation, None}
    }
    return replace(seen, topics={**seen.topics, **merged}) if merged else seen


def _merged(before: Topic, seen: Topic) -> Topic:
    """Keeps the leader of the newer epoch for each partition; a topic never loses partitions.

    Older epochs without a topic id are not believed once, and then any response is."""
    has_id, seen = seen.generation is not None, replace(seen, generation=before.generation)
    if before.epochs is None and not has_id:
        return seen
    missing = slice(len(seen.leaders), None)
    leaders = np.concatenate([seen.leaders, before.leaders[missing]])
    if before.epochs is None or seen.epochs is None:
        return replace(seen, leaders=leaders, epochs=seen.epochs if len(leaders) == len(seen.leaders) else None)
    epochs = np.concatenate([seen.epochs, before.epochs[missing]])
    is_older = epochs[: len(before.epochs)] < before.epochs
    for newest, older in ((leaders, before.leaders), (epochs, before.epochs)):
        newest[: len(older)][is_older] = older[is_older]
    return replace(seen, leaders=leaders, epochs=epochs if has_id or not is_older.any() else None)


def sharing(known: Topology, seen: Topology) -> Topology:
    """Returns `seen` with the known objects for unchanged topics."""
    return replace(seen, topics={name: _same_or(known.topics.get(name), value) for name, value in seen.topics.items()})


def _same_or(known: Topic | None, seen: Topic) -> Topic:
    """Returns the known object if it is unchanged, because much is computed once per object."""
    if known is None or known is seen:
        return seen
    is_same = known.generation == seen.generation and np.array_equal(known.leaders, seen.leaders)
    return known if is_same and _bytes(known.epochs) == _bytes(seen.epochs) else seen


def _bytes(epochs: NDArray[np.int32] | None) -> bytes | None:
    return None if epochs is None else epochs.tobytes()


def led_throughout(before: Topic | None, after: Topic) -> Flags:
    """Whether the same broker leads each partition in the same epoch; False where that is unknown."""
    is_same: Flags = np.zeros(len(after.leaders), dtype=bool)
    if (
        before is None
        or not is_same_generation(before.generation, after.generation)
        or before.epochs is None
        or after.epochs is None
    ):
        return is_same
    both = slice(min(len(before.leaders), len(after.leaders)))
    is_same[both] = (before.leaders[both] == after.leaders[both]) & (before.epochs[both] == after.epochs[both])
    return is_same


def has_more_partitions(known: Topology, seen: Topology) -> bool:
    """Whether a topic of both has more partitions in `seen`."""
    pairs = ((known.topics.get(name), topic) for name, topic in seen.topics.items())
    return any(before is not None and len(topic.leaders) > len(before.leaders) for before, topic in pairs)


def has_undecided_topics(topology: Topology) -> bool:
    """Whether a topic is missing but does not count as deleted yet."""
    return any(count < ANSWERS_BEFORE_DELETED for count in topology.missing.values())
