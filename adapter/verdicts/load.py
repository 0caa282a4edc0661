"""What arrives in a group, minute by minute, and how long what waits has waited."""

from dataclasses import dataclass
from typing import Self

import numpy as np
from numpy.typing import NDArray

from adapter.columns import Seconds
from adapter.verdicts.plant import Messages

MINUTE = 60.0
WAITS_FROM = 0.5
"""Messages: fewer are a remainder of the arithmetic."""


@dataclass(frozen=True, slots=True)
class Load:
    """What arrived in a group in each minute."""

    produced: Messages
    """In all partitions."""
    largest_share: NDArray[np.float64] | None = None
    """Of `produced`, what the busiest partition got; None: all got the same."""
    lag: float = 0.0
    """Messages that waited at the start."""
    wait_seconds: float = 0.0
    """How long the oldest of these had waited."""


@dataclass(frozen=True, slots=True)
class Curves:
    """How many messages have arrived in a partition, by time; negative before the replay's start."""

    times: Seconds
    busiest: Messages
    others: Messages
    """In each of the other partitions."""

    @classmethod
    def of(cls, load: Load, partitions: int) -> Self:
        produced = _filled(load.produced)
        share = np.full(len(produced), 1 / partitions)
        if load.largest_share is not None and partitions > 1:
            share = np.clip(np.nan_to_num(load.largest_share, nan=1 / partitions), 1 / partitions, 1.0)
        of_others = (1 - share) / max(1, partitions - 1)
        usual = float((produced * share).sum() / produced.sum()) if produced.any() else 1 / partitions
        started = load.wait_seconds or (load.lag * MINUTE / max(float(produced.mean()), 1.0)) or 1.0
        times = np.concatenate([[-started], np.arange(len(produced) + 1) * MINUTE])
        first = (load.lag * usual, load.lag * (1 - usual) / max(1, partitions - 1))
        return cls(
            times,
            *(
                np.concatenate([[-waiting], np.zeros(1), np.cumsum(produced * of_one)])
                for waiting, of_one in zip(first, (share, of_others), strict=True)
            ),
        )

    def wait(self, busiest: NDArray[np.float32], others: NDArray[np.float32]) -> NDArray[np.float32]:
        """Returns the age of the oldest message at the end of each minute, from what waits in the partitions with most:
        the messages of a partition are read in their order."""
        ends = self.times[2:]
        ages = [
            np.where(waiting > WAITS_FROM, ends - np.interp(curve[2:] - waiting, curve, self.times), 0.0)
            for curve, waiting in ((self.busiest, busiest), (self.others, others))
        ]
        return np.maximum(*ages).astype(np.float32)


def _filled(produced: Messages) -> Messages:
    """Replaces unknown minutes (NaN) by what lies between those around them; by 0 where nothing is known."""
    known = ~np.isnan(produced)
    if known.all() or not known.any():
        return np.nan_to_num(produced)
    minutes = np.arange(len(produced))
    return np.interp(minutes, minutes[known], produced[known])
