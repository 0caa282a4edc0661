"""What the required number of members takes from the numbers before it: whether members are still changing, and whether
the latest step up has helped."""

import math
from collections.abc import Sequence
from dataclasses import dataclass, fields, replace
from typing import Self

import numpy as np

from adapter.columns import Flags
from adapter.verdicts.assignment import NO_LIMIT, UNKNOWN, Counts
from adapter.verdicts.demands import Known, Messages

LONGEST_FREEZE_SECONDS = 300.0
"""Kafka's default for max.poll.interval.ms, the longest that a member may hold up a rebalance."""
PROVEN_SECONDS = 120.0
"""After a step, members read for so long before it is judged: rates are over up to 95 s."""
INEFFECTIVE = 0.1
"""A step up that raised the throughput by less than this share of what it should have did not help."""
LIMITED_SECONDS = 1800.0
GROWN = 1.1
"""After that time, or once so many times as much arrives, a step up that did not help is tried again."""


@dataclass(frozen=True, slots=True)
class Course:
    """What the next number depends on, of those before it."""

    members: int
    """That were required."""
    drain: float = math.inf
    """Messages per second that were to be worked off, when the members were last those that were expected; infinite if
    they never were."""
    unsettled_since: float = math.nan
    """NaN: the members are those that are expected."""
    difference: int = 0
    """Members that are there beyond those that are expected (negative: that are missing), and that have been accepted,
    because a change takes no longer than LONGEST_FREEZE_SECONDS."""
    seen: int = UNKNOWN
    """Members that were last there."""
    seen_since: float = 0.0
    step_members: int = 0
    """Before a step up while something waited; 0: there was none."""
    step_read: float = math.nan
    """Messages per second that were read before it."""
    limit: int = NO_LIMIT
    """More members did not help."""
    limited_until: float = -math.inf
    limited_rate: float = math.inf
    """Messages per second that arrived when that was found."""


@dataclass(frozen=True, slots=True, eq=False)
class Courses:
    """The fields of a course, each with an entry for every group."""

    members: Counts
    drain: Messages
    unsettled_since: Messages
    difference: Counts
    seen: Counts
    seen_since: Messages
    step_members: Counts
    step_read: Messages
    limit: Counts
    limited_until: Messages
    limited_rate: Messages

    @classmethod
    def of(cls, courses: Sequence[Course]) -> Self:
        return cls(*(np.array([getattr(course, it.name) for course in courses]) for it in fields(cls)))

    def is_settled(self, now: float) -> Flags:
        """Whether the members are those that are expected, as far as they ever are."""
        settled: Flags = ~(now - self.unsettled_since < LONGEST_FREEZE_SECONDS)
        return settled


def watched(now: float, demands: Known, courses: Courses) -> Courses:
    """Follows which members are there, and since when they are not those that are expected."""
    members, since = demands.members, courses.unsettled_since
    difference = np.where(demands.expected_members == UNKNOWN, 0, members - demands.expected_members)
    is_usual = (difference == 0) | (difference == courses.difference)
    is_late = ~np.isnan(since) & courses.is_settled(now)
    settles = (members != UNKNOWN) & (is_usual | is_late)
    return replace(
        courses,
        seen=members,
        seen_since=np.where(members != courses.seen, now, courses.seen_since),
        unsettled_since=np.where(settles, np.nan, np.where(np.isnan(since), now, since)),
        difference=np.where(settles, difference, courses.difference),
    )


def judged(now: float, demands: Known, courses: Courses, is_settled: Flags, is_lagging: Flags) -> Courses:
    """Decides whether the latest steps up have helped, once their members have read for long enough."""
    read, before = demands.read, courses.step_members
    is_due = is_settled & (before > 0) & ~np.isnan(read) & (now - courses.seen_since >= PROVEN_SECONDS)
    if not is_due.any():
        return courses
    expected = courses.step_read * (1 + INEFFECTIVE * (demands.members / np.maximum(before, 1) - 1))
    # Members that read about as much as arrives and can be read are not limited further down, however little that is.
    # What is only expected cannot be read yet.
    arriving, readable = demands.measured()
    keep_up = read >= (1 - INEFFECTIVE) * readable
    failed = is_due & is_lagging & (demands.members > before) & (read < expected) & ~keep_up
    return replace(
        courses,
        step_members=np.where(is_due, 0, before),
        limit=np.where(failed, before, courses.limit),
        limited_until=np.where(failed, now + LIMITED_SECONDS, courses.limited_until),
        limited_rate=np.where(failed, arriving, courses.limited_rate),
    )
