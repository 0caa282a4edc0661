"""What Metadata says exists: brokers, topics, their generations and leaders, as one frozen value."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace

import numpy as np
from numpy.typing import NDArray

NO_LEADER = -1
ANSWERS_BEFORE_DELETED = 3


@dataclass(frozen=True, slots=True, eq=False)
class Topic:
    generation: str | None
    """The topic id; a topic made again under its name has another. None: the broker is too old to tell."""
    leaders: NDArray[np.int32]
    """Node id of the leader by partition; NO_LEADER where there is none."""
    epochs: NDArray[np.int32] | None = None
    """Leader epoch by partition, which rises with every election. None: not known."""


@dataclass(frozen=True, slots=True)
class Topology:
    brokers: Mapping[int, str] = field(default_factory=dict)
    """Node id -> `host:port`."""
    topics: Mapping[str, Topic] = field(default_factory=dict)
    missing: Mapping[str, int] = field(default_factory=dict)
    """Topics that the last answers no longer had -> in how many answers running."""
    hidden: frozenset[str] = frozenset()
    """Topics that we asked for by name and may not describe; whether they exist is not known."""

    def is_deleted(self, topic: str) -> bool:
        """Whether so many answers lacked the topic that it can be believed."""
        return self.missing.get(topic, 0) >= ANSWERS_BEFORE_DELETED


def updated(known: Topology, seen: Topology, expected: frozenset[str], *, counts: bool = True) -> Topology:
    """`seen` as the new truth, but a topic known or `expected` is deleted only after several answers running.

    The same object as before where nothing has changed.
    A broker that is cut off knows fewer partitions and older leaders than the others do: neither is news.
    `counts`: False for a second look in one cycle, which proves no more than the first.
    """
    absent = (known.topics.keys() | expected | known.missing.keys()) - seen.topics.keys() - seen.hidden
    missing = {topic: known.missing.get(topic, 0) + counts for topic in absent}
    doubtful = {topic: known.topics[topic] for topic in absent & known.topics.keys()}
    kept = {topic: value for topic, value in doubtful.items() if missing[topic] < ANSWERS_BEFORE_DELETED}
    forgotten = {topic for topic, count in missing.items() if count > ANSWERS_BEFORE_DELETED and topic not in expected}
    found = replace(
        seen,
        topics={**sharing(known, _caught_up(known, seen)).topics, **kept},
        missing={topic: count for topic, count in missing.items() if topic not in forgotten},
    )
    return known if found == known else found


def without_epochs(known: Topology) -> Topology:
    """The same, so that the next answer is believed whatever its leader epochs: it may come from other brokers."""
    return replace(known, topics={name: replace(topic, epochs=None) for name, topic in known.topics.items()})


def _caught_up(known: Topology, seen: Topology) -> Topology:
    """`seen`, with what is known better of topics of the same generation."""
    merged = {
        name: _merged(before, topic)
        for name, topic in seen.topics.items()
        if (before := known.topics.get(name)) is not None
        and before is not topic
        and topic.generation is not None
        and before.generation == topic.generation
    }
    return replace(seen, topics={**seen.topics, **merged}) if merged else seen


def _merged(before: Topic, seen: Topic) -> Topic:
    """Of each partition the leader of the newer epoch; a topic never loses partitions."""
    missing = slice(len(seen.leaders), None)
    leaders = np.concatenate([seen.leaders, before.leaders[missing]])
    if before.epochs is None or seen.epochs is None:
        return replace(seen, leaders=leaders, epochs=seen.epochs if len(leaders) == len(seen.leaders) else None)
    epochs = np.concatenate([seen.epochs, before.epochs[missing]])
    is_older = epochs[: len(before.epochs)] < before.epochs
    for newest, older in ((leaders, before.leaders), (epochs, before.epochs)):
        newest[: len(older)][is_older] = older[is_older]
    return replace(seen, leaders=leaders, epochs=epochs)


def sharing(known: Topology, seen: Topology) -> Topology:
    """`seen`, whose topics are the same objects as the known ones where nothing has changed."""
    return replace(seen, topics={name: _same_or(known.topics.get(name), value) for name, value in seen.topics.items()})


def _same_or(known: Topic | None, seen: Topic) -> Topic:
    """The topic as it was known, where nothing has changed: much is worked out once per topology."""
    if known is None or known is seen:
        return seen
    is_same = known.generation == seen.generation and np.array_equal(known.leaders, seen.leaders)
    return known if is_same and _bytes(known.epochs) == _bytes(seen.epochs) else seen


def _bytes(epochs: NDArray[np.int32] | None) -> bytes | None:
    return None if epochs is None else epochs.tobytes()


def wants_another_look(topology: Topology) -> bool:
    """Whether a topic is between "not in the last answer" and "deleted"."""
    return any(count < ANSWERS_BEFORE_DELETED for count in topology.missing.values())
