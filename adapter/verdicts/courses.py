"""What the required number of members takes from the numbers before it: whether members are still changing, and whether
the latest step up has helped."""

import math
from collections.abc import Callable
from dataclasses import dataclass

from adapter.records import Column
from adapter.verdicts.assignment import NO_LIMIT, UNKNOWN
from adapter.verdicts.demands import Need, able_of

LONGEST_FREEZE_SECONDS = 300.0
"""Kafka's default for max.poll.interval.ms, the longest that a member may hold up a rebalance."""
PROVEN_SECONDS = 120.0
"""After a step, members read for so long before it is judged: rates are over up to 95 s."""
INEFFECTIVE = 0.1
"""A step up that raised the throughput by less than this share of what it should have did not help."""
LIMITED_SECONDS = 1800.0
GROWN = 1.1
"""After that time, or once so many times as much arrives, a step up that did not help is tried again."""


@dataclass(slots=True)
class Course:
    """What the next number depends on, of those before it. Its fields can be those of a record (adapter.records)."""

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


def is_settled(now: float, course: Course) -> bool:
    """Whether the members are those that are expected, as far as they ever are."""
    return not now - course.unsettled_since < LONGEST_FREEZE_SECONDS


def watch(now: float, need: Need, course: Course) -> None:
    """Follows which members are there, and since when they are not those that are expected."""
    difference = 0 if need.expected_members == UNKNOWN else need.members - need.expected_members
    is_usual = difference in (0, course.difference)
    is_late = not math.isnan(course.unsettled_since) and is_settled(now, course)
    if need.members != UNKNOWN and (is_usual or is_late):
        course.unsettled_since, course.difference = math.nan, difference
    elif math.isnan(course.unsettled_since):
        course.unsettled_since = now
    if need.members != course.seen:
        course.seen, course.seen_since = need.members, now


def judge(now: float, need: Need, course: Course, is_lagging: bool, arriving: Column[float]) -> None:  # noqa: FBT001 - as compiled code calls it
    """Decides whether the latest step up has helped, once its members have read for long enough. `arriving`: what
    arrives now in each partition."""
    before = course.step_members
    if before <= 0 or math.isnan(need.read) or now - course.seen_since < PROVEN_SECONDS or not is_settled(now, course):
        return
    course.step_members = 0
    expected = course.step_read * (1 + INEFFECTIVE * (need.members / before - 1))
    if not is_lagging or need.members <= before or not need.read < expected:
        return
    # Members that read about as much as arrives and can be read are not limited further down, however little that is.
    # What is only expected cannot be read yet.
    if need.read < (1 - INEFFECTIVE) * rate_of(arriving, able_of(need)):
        course.limit, course.limited_until = before, now + LIMITED_SECONDS
        course.limited_rate = rate_of(arriving, math.inf)


def rate_of(arriving: Column[float], able: float) -> float:
    """Returns the messages per second in all partitions together, `able` of each at most."""
    rate = 0.0
    for place in range(len(arriving)):
        rate += min(arriving[place], able)
    return rate


RULES: tuple[Callable[..., object], ...] = (is_settled, watch, judge, rate_of)
"""What kernels may call, of this module."""
