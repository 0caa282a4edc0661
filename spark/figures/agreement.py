"""What the people behind a group have agreed on: how long a message may wait, who owns the group, when it may pause."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

MAX_WAIT_SECONDS = 60.0


@dataclass(frozen=True, slots=True)
class Agreement:
    max_wait_seconds: float = MAX_WAIT_SECONDS
    """The longest that a message should wait."""
    threshold: int | None = None
    """Messages, of every topic; None: what the busiest hour produces in `max_wait_seconds`."""
    thresholds: Mapping[str, int] = field(default_factory=dict)
    """Of single topics."""
    owner: str = ""

    def threshold_of(self, topic: str) -> int | None:
        return self.thresholds.get(topic, self.threshold)
