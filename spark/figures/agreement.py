"""What the people behind a group have agreed on: how long a message may wait, who owns it, and when it may pause."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from zoneinfo import ZoneInfo

from spark.tables.layout import HOUR

MAX_WAIT_SECONDS = 60.0
"""Unless people agree on another one, or samples are too rare for it."""


@dataclass(frozen=True, slots=True)
class Pause:
    """A planned one, every week, in local time."""

    days: frozenset[int]
    """Weekdays on which it begins; 0 is Monday."""
    begins: timedelta
    """After midnight."""
    ends: timedelta
    """After the same midnight; beyond 24 hours where it ends on the next day."""
    zone: ZoneInfo

    def has(self, hour: datetime) -> bool:
        """Whether a part of this hour lies in it."""
        local = hour.astimezone(self.zone).replace(tzinfo=None)
        today = local.replace(hour=0, minute=0)
        return any(
            day.weekday() in self.days and local - day < self.ends and local + HOUR - day > self.begins
            for day in (today, today - timedelta(days=1))
        )


@dataclass(frozen=True, slots=True)
class Agreement:
    max_wait_seconds: float = MAX_WAIT_SECONDS
    """The longest that a message should wait."""
    threshold: int | None = None
    """Messages, of every topic; None: what the busiest hour produces in `max_wait_seconds`."""
    thresholds: Mapping[str, int] = field(default_factory=dict)
    """Of single topics."""
    owner: str = ""
    pauses: tuple[Pause, ...] = ()
    has_wait: bool = False
    """Whether people agreed on the longest wait."""

    def threshold_of(self, topic: str) -> int | None:
        return self.thresholds.get(topic, self.threshold)

    def has_pause(self, hour: datetime) -> bool:
        return any(pause.has(hour) for pause in self.pauses)
