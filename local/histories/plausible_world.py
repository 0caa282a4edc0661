"""A plausible week: topics and the groups that read them, minute by minute, as columns. No IO.

Every array has one entry per minute of the week, or partitions x minutes. Rates are messages per second."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

import numpy as np
from numpy.typing import NDArray

Numbers = NDArray[np.int64]
Rates = NDArray[np.float64]

MINUTES = 7 * 24 * 60
MONDAY = datetime(2026, 11, 9, tzinfo=UTC)
MINUTE_SECONDS = 60.0
RETAINED_MINUTES = 3 * 24 * 60
"""Topics keep three days."""
OLD, NEW = 0, 1
"""Generations of a topic."""


def at(day: int, hour: int, minute: int = 0) -> int:
    """Returns the minute of the week; day 0 is Monday."""
    return (day * 24 + hour) * 60 + minute


MINUTE = np.arange(MINUTES)
HOUR_OF_DAY = MINUTE / 60 % 24
DAY = MINUTE // (24 * 60)
IS_WEEKEND = DAY >= 5
IS_OFFICE = ~IS_WEEKEND & (HOUR_OF_DAY >= 8) & (HOUR_OF_DAY < 18)


def _bump(hour: float, width_hours: float) -> Rates:
    away = np.minimum(np.abs(HOUR_OF_DAY - hour), 24 - np.abs(HOUR_OF_DAY - hour))
    bump: Rates = np.exp(-((away / width_hours) ** 2) / 2)
    return bump


SHOPPING = (0.12 + 0.7 * _bump(11, 2.5) + _bump(20, 2.0)) * np.where(IS_WEEKEND, 1.35, 1.0)
OFFICE = np.where(IS_OFFICE, 1.0, 0.04)
EVEN = np.ones(MINUTES)


def _bursts() -> Rates:
    """Returns an import every night, and three unannounced ones on afternoons."""
    quiet = np.full(MINUTES, 0.05)
    for begin in (*(at(day, 2) for day in range(7)), at(1, 14, 37), at(3, 16, 5), at(4, 13, 50)):
        quiet[begin : begin + 50] = 1.0
    return quiet


@dataclass(frozen=True, slots=True)
class Topic:
    name: str
    partitions: int
    per_second: float
    """The rate over all partitions while `shape` is 1."""
    shape: Rates
    hot_share: float = 0.0
    """What partition 0 receives beyond an even share."""
    made_again_at: int | None = None


@dataclass(frozen=True, slots=True)
class Reader:
    """A group that reads a topic."""

    group: str
    topic: str
    member_per_second: float
    """The rate that one member can process."""
    members: NDArray[np.int32]
    stands_from: int = MINUTES
    """Nothing is committed from this minute on."""


TOPICS = (
    Topic("orders", 12, 420.0, SHOPPING),
    Topic("payments", 6, 150.0, SHOPPING),
    Topic("products", 8, 2400.0, _bursts()),
    Topic("notifications", 3, 40.0, SHOPPING),
    Topic("audit-log", 4, 25.0, EVEN, made_again_at=at(2, 9, 30)),
    Topic("clicks", 16, 900.0, SHOPPING, hot_share=0.35),
    Topic("images", 4, 30.0, OFFICE),
    Topic("exports", 2, 12.0, OFFICE),
)


def _members(count: int) -> NDArray[np.int32]:
    return np.full(MINUTES, count, dtype=np.int32)


def _by_hand() -> NDArray[np.int32]:
    """Six during working hours, which end before the evening's peak; otherwise four, and six on weekend days."""
    is_weekend_day = IS_WEEKEND & (HOUR_OF_DAY >= 9) & (HOUR_OF_DAY < 23)
    return np.where(IS_OFFICE | is_weekend_day, 6, 4).astype(np.int32)


READERS = (
    Reader("checkout", "orders", 85.0, _by_hand()),
    Reader("invoicing", "orders", 400.0, _members(2)),
    Reader("invoicing", "payments", 400.0, _members(2)),
    Reader("search-index", "products", 320.0, _members(4)),
    Reader("mail", "notifications", 60.0, _members(3), stands_from=at(3, 14, 20)),
    Reader("audit", "audit-log", 60.0, _members(1)),
    Reader("clickstream", "clicks", 500.0, _members(8)),
    Reader("thumbnails", "images", 15.0, _members(7)),
    Reader("reporting", "exports", 20.0, np.where(IS_OFFICE, 2, 0).astype(np.int32)),
)


@dataclass(frozen=True, slots=True, eq=False)
class Log:
    """A topic's partitions over the week: partitions x minutes."""

    log_end: Numbers
    log_start: Numbers
    generation: NDArray[np.int32]
    """OLD or NEW, per minute."""


@dataclass(frozen=True, slots=True, eq=False)
class Read:
    """A group's offsets in a topic's partitions: partitions x minutes; -1: no commit."""

    reader: Reader
    log: Log
    committed: Numbers


def week(seed: int) -> list[Read]:
    """Returns the whole week, the same for the same seed; sorted by group and topic."""
    random = np.random.default_rng(seed)
    produced = {topic.name: _produced(topic, random) for topic in TOPICS}
    logs = {topic.name: _log(topic, produced[topic.name], random) for topic in TOPICS}
    reads = [_read(each, produced[each.topic], logs[each.topic], random) for each in READERS]
    return sorted(reads, key=lambda read: (read.reader.group, read.reader.topic))


def _produced(topic: Topic, random: np.random.Generator) -> Numbers:
    """Returns the messages of the previous minute."""
    shares = np.full(topic.partitions, (1 - topic.hot_share) / topic.partitions)
    shares[0] += topic.hot_share
    restless = topic.shape * random.gamma(60.0, 1 / 60.0, MINUTES)
    return random.poisson(np.outer(shares, topic.per_second * MINUTE_SECONDS * restless))


def _log(topic: Topic, produced: Numbers, random: np.random.Generator) -> Log:
    base = random.integers(10**6, 10**8, (topic.partitions, 1))
    end = base + produced.cumsum(axis=1)
    start = np.concatenate([np.repeat(base, RETAINED_MINUTES, axis=1), end[:, :-RETAINED_MINUTES]], axis=1)
    generation = np.full(MINUTES, OLD, dtype=np.int32)
    if topic.made_again_at is not None:
        generation[topic.made_again_at :] = NEW
        end[:, topic.made_again_at :] = produced[:, topic.made_again_at :].cumsum(axis=1)
        start[:, topic.made_again_at :] = 0
    return Log(end, start, generation)


def _read(reader: Reader, produced: Numbers, log: Log, random: np.random.Generator) -> Read:
    partitions, together = len(produced), _read_together(reader, len(produced))
    of_member = produced.reshape(-1, together, MINUTES).sum(axis=1)
    busy = np.minimum(reader.members, partitions) / partitions * together
    able = random.poisson(np.outer(np.ones(len(of_member)), reader.member_per_second * MINUTE_SECONDS * busy))
    # What waits, if nothing is ever done before it is there: the sum so far above its own lowest point.
    balance = (of_member - able).cumsum(axis=1)
    of_member_waiting = balance - np.minimum(np.minimum.accumulate(balance, axis=1), 0)
    # A member takes the oldest message of all its partitions first.
    share = produced.sum(axis=1) / np.repeat(of_member.sum(axis=1), together)
    waiting = (np.repeat(of_member_waiting, together, axis=0) * share[:, np.newaxis]).astype(np.int64)
    uncommitted = random.integers(0, 5, produced.shape) * produced // 60  # commits come every 5 s
    committed = log.log_end - waiting - uncommitted
    for generation in (OLD, NEW):
        part = log.generation == generation
        if part.any():
            first = log.log_start[:, part][:, :1]
            committed[:, part] = np.maximum.accumulate(np.maximum(committed[:, part], first), axis=1)
    committed[:, reader.stands_from :] = committed[:, reader.stands_from - 1 : reader.stands_from]
    # A topic that was made again is found by its readers within three minutes.
    committed[:, np.flatnonzero(log.generation == NEW)[:3]] = -1
    return Read(reader, log, committed)


def _read_together(reader: Reader, partitions: int) -> int:
    """Returns how many neighbouring partitions one member has all week; 1 where members come and go."""
    members = np.unique(reader.members)
    return partitions // int(members[0]) if len(members) == 1 and partitions % int(members[0]) == 0 else 1


def moment(minute: int) -> datetime:
    return MONDAY + timedelta(minutes=minute)
