"""What was put into the demo week, minute by minute, as the figures that a report should have: computed from
`plausible_world` alone, by nothing that the report uses."""

import math
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from local.histories.plausible_history import AWAY, AWAY_PARTITIONS, DOWN, SEED
from local.histories.plausible_world import MINUTES, NEW, OLD, Numbers, Rates, Read, week

MAX_WAIT = 120
HOUR, FIVE, DAY = 60, 5, 1440
"""Minutes."""
DUE = np.setdiff1d(np.arange(MINUTES), DOWN)
"""Minutes in which an adapter ran."""
HOURS = np.unique(DUE // HOUR)
SEEN = np.setdiff1d(DUE, AWAY)
"""Minutes in which every broker answered."""


@dataclass(frozen=True)
class TopicTruth:
    """Of a group's topic. By hour: one entry for each of HOURS."""

    read: Read

    @cached_property
    def known(self) -> Numbers:
        """Minutes in which the lag is known."""
        return SEEN[(self.read.committed[:, SEEN] >= 0).all(axis=0)]

    @cached_property
    def of_partitions(self) -> Numbers:
        return self.read.log.log_end - np.maximum(self.read.committed, self.read.log.log_start)

    @cached_property
    def lag(self) -> Numbers:
        """In the minutes of `known`."""
        found: Numbers = self.of_partitions.sum(axis=0)[self.known]
        return found

    @cached_property
    def produced(self) -> Numbers:
        return _added(self.read, self.read.log.log_end, HOUR)

    @cached_property
    def consumed(self) -> Numbers:
        return _added(self.read, self.read.committed, HOUR)

    @cached_property
    def covered(self) -> Rates:
        """Seconds since the minute before that is known, as in `produced`."""
        return _seconds(self.read, HOUR)

    @property
    def rate(self) -> Rates:
        found: Rates = self.produced.sum(axis=0) / self.covered
        return found

    @property
    def mean_rate(self) -> float:
        return float(self.produced.sum() / self.covered.sum())

    @property
    def steepest(self) -> Rates:
        """Of the five minutes by the clock that are covered to a half or more."""
        produced, seconds = _added(self.read, self.read.log.log_end, FIVE).sum(axis=0), _seconds(self.read, FIVE)
        rates = np.where(seconds >= 150, produced / np.maximum(seconds, 1), np.nan)
        return np.array([np.nanmax(rates[_of_hours(FIVE) == hour]) for hour in HOURS])

    @property
    def threshold(self) -> int:
        return round(MAX_WAIT * float(self.rate[self.covered >= 1800].max()))

    @property
    def busiest(self) -> int:
        return int(np.argmax(np.where(self.covered >= 1800, self.rate, 0)))

    def by_hour(self, minutes: Numbers, values: Numbers) -> list[Numbers]:
        return [values[minutes // HOUR == hour] for hour in HOURS]

    def episodes(self) -> tuple[int, float, float]:
        """How often the lag was above the threshold, the longest time in seconds, and the seconds over gaps in which no
        commit moved."""
        number, longest, bridged, began, last = 0, 0, 0, -1, -1
        for minute in self.known[self.lag > self.threshold].tolist():
            is_next = self.known[np.searchsorted(self.known, minute) - 1] == last
            stood_still = (self.read.committed[:, minute] == self.read.committed[:, last]).all()
            goes_on = last >= 0 and is_next and (minute - last <= 5 or stood_still)
            number, began = (number, began) if goes_on else (number + 1, minute)
            bridged += minute - last - 1 if goes_on and minute - last > 5 else 0
            longest, last = max(longest, minute - began + 1), minute
        return number, 60.0 * longest, 60.0 * bridged

    def by_weekday(self) -> Rates:
        """Monday first, in Berlin, an hour ahead; the last hour is one of a second Monday."""
        found = np.full((7, 24), np.nan)
        local = (HOURS[:-1] + 1) % 168
        found[local // 24, local % 24] = self.rate[:-1]
        return found

    @cached_property
    def waits(self) -> Rates:
        """Seconds for which the oldest message had waited, in the minutes of `known`."""
        waits: Rates = np.stack([of_partition for of_partition, _ in self._of_partitions]).max(axis=0)
        return waits

    @cached_property
    def is_bound(self) -> NDArray[np.bool_]:
        """Whether that is a lower bound."""
        flags: NDArray[np.bool_] = np.any([is_bound for _, is_bound in self._of_partitions], axis=0)
        return flags

    @cached_property
    def _of_partitions(self) -> list[tuple[Rates, NDArray[np.bool_]]]:
        return [self._waits(partition) for partition in range(len(self.read.committed))]

    def _waits(self, partition: int) -> tuple[Rates, NDArray[np.bool_]]:
        """The log end only grows within a generation, so when it was at what the group has passed is found in it."""
        log, seen = self.read.log, _minutes(partition, is_end=True)
        end, passed = log.log_end[partition], np.maximum(self.read.committed, log.log_start)[partition]
        found, is_bound = np.zeros(len(self.known)), np.zeros(len(self.known), np.bool_)
        for kind in (OLD, NEW):
            own = seen[log.generation[seen] == kind]
            assert (np.diff(end[own]) >= 0).all()
            waiting = np.flatnonzero((log.generation[self.known] == kind) & (end > passed)[self.known])
            at = self.known[waiting]
            before = np.searchsorted(end[own], passed[at], side="right") - 1
            # Without a minute before, both are the first one, and so is the result.
            low, high = own[np.maximum(before, 0)], own[before + 1]
            since = low + (passed[at] - end[low]) / np.maximum(end[high] - end[low], 1) * (high - low)
            found[waiting], is_bound[waiting] = 60 * (at - since), before < 0
        return found, is_bound


@dataclass(frozen=True)
class GroupTruth:
    topics: tuple[TopicTruth, ...]

    @property
    def member_per_second(self) -> float:
        """Members work for all topics at once."""
        return sum(topic.read.reader.member_per_second for topic in self.topics)

    @property
    def members(self) -> NDArray[np.int32]:
        return self.topics[0].read.reader.members

    @property
    def partitions(self) -> int:
        return sum(len(topic.read.committed) for topic in self.topics)

    @property
    def most_members(self) -> int:
        return max(len(topic.read.committed) for topic in self.topics)

    @property
    def rate(self) -> Rates:
        produced = sum(topic.produced.sum(axis=0) for topic in self.topics)
        found: Rates = produced / np.max([topic.covered for topic in self.topics], axis=0)
        return found

    @property
    def off_peak(self) -> float:
        return float(np.percentile(self.rate, 10))

    @property
    def rise(self) -> float:
        return float(np.diff(self.rate)[np.diff(HOURS) == 1].max())

    @property
    def hot_share(self) -> float:
        """Of the median hour, of the topic with the hottest partition."""
        return max(float(np.median(of.produced.max(axis=0) / of.produced.sum(axis=0))) for of in self.topics)

    def carrying(self, rate: float) -> int:
        """Returns the fewest members of which each can keep up with its partitions; the largest number if none can."""
        enough = (
            number
            for number in range(1, self.most_members + 1)
            if math.ceil(self.partitions / number) * rate / self.partitions <= self.member_per_second
        )
        return next(enough, self.most_members)


def _added(read: Read, offsets: Numbers, span: int) -> Numbers:
    """Partitions x spans: what was added since the minute before that is known, in the later one's span; nothing across
    generations."""
    found = np.zeros((len(offsets), MINUTES // span), np.int64)
    for partition, of in enumerate(offsets):
        for kind in (0, 1):
            own = _minutes(partition, is_end=offsets is read.log.log_end)
            own = own[(read.log.generation[own] == kind) & (of[own] >= 0)]
            np.add.at(found[partition], own[1:] // span, np.diff(of[own]))
    return found[:, np.isin(_all_hours(span), HOURS)]


def _seconds(read: Read, span: int) -> Rates:
    """The same of time, as the mean of the partitions."""
    found = np.zeros(MINUTES // span)
    for partition in range(len(read.committed)):
        for kind in (0, 1):
            own = _minutes(partition, is_end=True)
            own = own[read.log.generation[own] == kind]
            np.add.at(found, own[1:] // span, 60 * np.diff(own) / len(read.committed))
    kept: Rates = found[np.isin(_all_hours(span), HOURS)]
    return kept


def _minutes(partition: int, *, is_end: bool) -> Numbers:
    """In which its end or its commit is known: a broker that was away led every third partition."""
    return SEEN if is_end and partition % AWAY_PARTITIONS == 0 else DUE


def _all_hours(span: int) -> Numbers:
    return np.arange(MINUTES // span) * span // HOUR


def _of_hours(span: int) -> Numbers:
    return _all_hours(span)[np.isin(_all_hours(span), HOURS)]


def hpa_over(
    rate: Rates, member: float, target: int, least: int, most: int, pods: int, window: int
) -> tuple[Rates, Rates]:
    """An HPA over every minute's production: the lag and the replicas after every step of 15 s. `window`: seconds."""
    wanted, lag, seen, recent = [max(least, 1)] * 4, 0.0, 0.0, [max(least, 1)]
    lags = np.empty(4 * len(rate))
    for step in range(len(lags)):
        lag = max(0.0, lag + 15 * (rate[step // 4] - member * min(wanted[-4:])))
        seen = lag if step % 4 == 0 else seen
        now = wanted[-1]
        desired = now if abs(seen / (target * now) - 1) <= 0.1 else min(max(math.ceil(seen / target), least), most)
        recent = [*recent, desired][-window // 15 :]
        wanted.append(min(desired, max(now + pods, 2 * now)) if desired > now else min(now, max(*recent, now // 2)))
        lags[step] = lag
    return lags, np.array(wanted[4:], np.float64)


READS = {(read.reader.group, read.reader.topic): read for read in week(SEED)}
TOPICS = {key: TopicTruth(read) for key, read in READS.items()}
GROUPS = {
    name: GroupTruth(tuple(topic for key, topic in TOPICS.items() if key[0] == name))
    for name in sorted({group for group, _ in TOPICS})
}
RECREATED = {
    key: int(np.flatnonzero(topic.read.log.generation == NEW)[0]) // HOUR
    for key, topic in TOPICS.items()
    if (topic.read.log.generation == NEW).any()
}
"""The hour in which a topic was made again."""
