"""Days of many partitions for benchmarks, one flush at a time, so that no day has to fit into memory."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from adapter.history.rows import ISOLATIONS, NULL, OFFSET_RESETS, STATES, Rows
from adapter.history.rows import Numbers as Column
from local.histories.plausible_world import MONDAY, Numbers, Rates

PARTITIONS_OF_A_TOPIC = 10
TOPICS_OF_A_GROUP = 5
FLUSH_SECONDS = 300
IDLE_SHARE = 0.3
"""The share of partitions without any messages."""
MEMBERS = 4


@dataclass(frozen=True, slots=True, eq=False)
class _Offsets:
    """Per partition, at the end of a flush."""

    log_end: Numbers
    committed: Numbers


def flushes(
    partitions: int, interval: int, days: int, seed: int, topics_of_a_group: int = TOPICS_OF_A_GROUP
) -> Iterator[Rows]:
    """Yields the rows of every five minutes, sorted by series; `interval` is in seconds, a divisor of 300."""
    if FLUSH_SECONDS % interval or partitions < 1:
        raise ValueError(f"{interval} s is no divisor of {FLUSH_SECONDS} s, or {partitions} partitions are none")
    random = np.random.default_rng(seed)
    rates = np.where(random.random(partitions) < IDLE_SHARE, 0.0, random.lognormal(1.5, 1.5, partitions))
    base = random.integers(10**4, 10**8, partitions)
    offsets = _Offsets(base, base)
    fixed = _fixed_columns(partitions, FLUSH_SECONDS // interval, topics_of_a_group)
    names = _names(partitions, topics_of_a_group)
    for number in range(days * 86_400 // FLUSH_SECONDS):
        begin = number * FLUSH_SECONDS
        rows, offsets = _flush(offsets, rates * _tide(begin), interval, random)
        yield Rows({**fixed, **_times(begin, interval, partitions), **rows}, names)


def _tide(second: int) -> float:
    """A day's minimum is a quarter of its maximum."""
    return float(0.625 - 0.375 * np.cos(2 * np.pi * second / 86_400))


def _flush(
    before: _Offsets, rates: Rates, interval: int, random: np.random.Generator
) -> tuple[dict[str, Numbers], _Offsets]:
    """Returns what is produced, and committed up to half a minute later; sometimes a partition's reader pauses."""
    count = FLUSH_SECONDS // interval
    log_end = before.log_end[:, np.newaxis] + random.poisson(
        rates[:, np.newaxis] * interval, (len(rates), count)
    ).cumsum(axis=1)
    behind = (rates[:, np.newaxis] * random.uniform(0, 30, (len(rates), count))).astype(np.int64)
    pauses = random.random(len(rates)) < 0.02
    behind[pauses] += (rates[pauses, np.newaxis] * np.arange(count) * interval).astype(np.int64)
    wanted = np.maximum(log_end - behind, before.committed[:, np.newaxis])
    committed = np.minimum(np.maximum.accumulate(wanted, axis=1), log_end)
    rows = {"committed": committed.reshape(-1), "log_end": log_end.reshape(-1)}
    return rows, _Offsets(log_end[:, -1], committed[:, -1])


def _times(begin: int, interval: int, partitions: int) -> dict[str, Numbers]:
    seconds = int(MONDAY.timestamp()) + begin + np.arange(0, FLUSH_SECONDS, interval, dtype=np.int64)
    sampled = seconds * 1_000_000
    received = sampled + 8_000 + 1_500 * (np.arange(partitions, dtype=np.int64)[:, np.newaxis] % 3)
    return {"sampled_at": np.tile(sampled, partitions), "received_at": received.reshape(-1)}


def _fixed_columns(partitions: int, count: int, topics_of_a_group: int = TOPICS_OF_A_GROUP) -> dict[str, Column]:
    """Returns the columns that are the same in every flush."""
    number = np.repeat(np.arange(partitions, dtype=np.int32), count)
    topic = number // PARTITIONS_OF_A_TOPIC
    zeros = np.zeros(len(number), dtype=np.int32)
    return {
        "interval_seconds": np.full(len(number), FLUSH_SECONDS / count, dtype=np.float32),
        "cluster": zeros,
        "group": topic // topics_of_a_group,
        "topic": topic,
        "topic_id": topic,
        "partition": number % PARTITIONS_OF_A_TOPIC,
        "log_start": zeros.astype(np.int64),
        "state": zeros,
        "members": np.full(len(number), MEMBERS, dtype=np.int32),
        "isolation": zeros,
        "owner": topic // topics_of_a_group * MEMBERS + number % MEMBERS,
        "offset_reset": zeros,
        "last_commit": np.full(len(number), NULL, dtype=np.int64),
        "has_marker": np.zeros(len(number), dtype=bool),
    }


def shuffled_flushes(partitions: int, interval: int, days: int, seed: int) -> Iterator[Rows]:
    """Yields a harder history: every group has one topic, names are unsorted within a file, every partition is busy,
    and increments are random."""
    random = np.random.default_rng(seed)
    rates = random.lognormal(3.0, 1.0, partitions)
    base = random.integers(10**4, 10**8, partitions)
    offsets = _Offsets(base, base)
    count = FLUSH_SECONDS // interval
    fixed = _fixed_columns(partitions, count)
    fixed["group"] = fixed["topic"]
    order = np.argsort(random.permutation(partitions).repeat(count), kind="stable")
    names = {**_names(partitions), "group": [f"group-{number:04d}" for number in range(-(-partitions // 10))]}
    for number in range(days * 86_400 // FLUSH_SECONDS):
        grown = random.integers(0, 2 * np.ceil(rates * interval).astype(np.int64)[:, np.newaxis], (partitions, count))
        log_end = offsets.log_end[:, np.newaxis] + grown.cumsum(axis=1)
        read = random.integers(0, log_end - offsets.committed[:, np.newaxis] + 1)
        committed = np.maximum.accumulate(offsets.committed[:, np.newaxis] + read, axis=1)
        offsets = _Offsets(log_end[:, -1], committed[:, -1])
        rows = {"committed": committed.reshape(-1), "log_end": log_end.reshape(-1)}
        columns = {**fixed, **_times(number * FLUSH_SECONDS, interval, partitions), **rows}
        yield Rows({name: values[order] for name, values in columns.items()}, names)


def _names(partitions: int, topics_of_a_group: int = TOPICS_OF_A_GROUP) -> dict[str, list[str] | tuple[str, ...]]:
    topics = -(-partitions // PARTITIONS_OF_A_TOPIC)
    groups = -(-topics // topics_of_a_group)
    return {
        "cluster": ["main"],
        "group": [f"group-{number:04d}" for number in range(groups)],
        "topic": [f"topic-{number:05d}" for number in range(topics)],
        "topic_id": [f"id-of-topic-{number:010d}" for number in range(topics)],
        "state": STATES,
        "isolation": ISOLATIONS,
        "owner": [f"group-{number // MEMBERS:04d}-{number % MEMBERS}" for number in range(groups * MEMBERS)],
        "offset_reset": OFFSET_RESETS,
    }
