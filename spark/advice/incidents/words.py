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


def lasting(since: datetime, until: datetime, zone: ZoneInfo, *, is_over: bool) -> str:
    """`since Mon 2026-11-02 09:00, 3 h` while it goes on; else `from … to …`."""
    length = formatting.duration((until - since).total_seconds())
    begin = formatting.moment(since, zone)
    return f"from {begin} to {formatting.moment(until, zone)}, {length}" if is_over else f"since {begin}, {length}"
