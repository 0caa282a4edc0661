"""Times and names as findings tell them."""

from collections.abc import Sequence
from datetime import datetime
from zoneinfo import ZoneInfo

from spark.figures import formatting

MOST_NAMES = 3


def named(names: Sequence[str]) -> str:
    return ", ".join(names[:MOST_NAMES]) + (" and others" if len(names) > MOST_NAMES else "")


def listed(things: Sequence[object]) -> str:
    """`3`, `3 and 5`, `3, 5 and 7`."""
    *most, last = map(str, things)
    return f"{', '.join(most)} and {last}" if most else last


def some_of(number: int, partitions: int, topic: str) -> str:
    """`3 of the 12 partitions of orders`, `all 12 partitions of orders`."""
    if number < partitions:
        return f"{number} of the {partitions} partitions of {topic}"
    return f"{ {1: 'the only partition', 2: 'both partitions'}.get(number, f'all {number} partitions') } of {topic}"


def or_earlier(since: datetime, first: datetime, zone: ZoneInfo) -> str:
    """`first`: the beginning of the first hour of the range. What was there in it may have begun before."""
    return _begin(since, zone, is_exact=since > first)


def lasting(since: datetime, until: datetime, zone: ZoneInfo, *, is_exact: bool = True) -> str:
    """`since Mon 2026-11-02 09:00, 3 h`, of what goes on. `is_exact`: whether it began then, and not earlier."""
    return f"since {_begin(since, zone, is_exact=is_exact)}, {_length(since, until)}"


def spanning(since: datetime, until: datetime, zone: ZoneInfo) -> str:
    """`from Mon 2026-11-02 09:00 to Mon 2026-11-02 12:00, 3 h`."""
    return f"from {formatting.moment(since, zone)} to {formatting.moment(until, zone)}, {_length(since, until)}"


def over(since: datetime, until: datetime, zone: ZoneInfo, *, is_exact: bool = True) -> str:
    """Begins the sentence about what is over: `Over since Mon 2026-11-02 12:00: from Mon 2026-11-02 09:00 until then,
    3 h,`."""
    begin = _begin(since, zone, is_exact=is_exact)
    return f"Over since {formatting.moment(until, zone)}: from {begin} until then, {_length(since, until)},"


def _begin(since: datetime, zone: ZoneInfo, *, is_exact: bool) -> str:
    return formatting.moment(since, zone) + ("" if is_exact else " or earlier")


def _length(since: datetime, until: datetime) -> str:
    return formatting.duration((until - since).total_seconds())
