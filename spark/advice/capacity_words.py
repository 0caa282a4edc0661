"""What one member can do, in words: each figure with the number of windows that it rests on."""

from adapter.verdicts.capacity import Capacity
from spark.advice.demand import Load
from spark.advice.weekly_pattern import hours_in_words
from spark.figures import formatting


def advised_in_words(capacity: Capacity) -> str:
    """`100 /s, the lower quartile of 3 122 windows`. The capacity has a number to advise."""
    rate = formatting.rate(capacity.advised)
    if capacity.is_steady:
        return f"{rate}, the lower quartile of {formatting.plural(capacity.windows, 'window')}"
    hours = capacity.slowest_hours
    windows = sum(capacity.windows_by_hour[hour] for hour in hours)
    return (
        f"{rate}, the lower quartile of the slowest hour of the day; {hours_in_words(hours)}, the slow hours, have "
        f"{formatting.count(windows)} of {formatting.plural(capacity.windows, 'window')}"
    )


def _scatter_in_words(capacity: Capacity) -> str:
    """Why a capacity that scatters is no number to count with."""
    return (
        f"What a member can do differs too much: {formatting.rate(capacity.p25)} in the slower quarter of "
        f"{formatting.plural(capacity.windows, 'window')}, {formatting.rate(capacity.p95)} in the fastest twentieth, "
        "and the hour of the day does not explain it."
    )


def without_capacity(load: Load) -> str:
    """Why there is no capacity to count with."""
    if load.capacity is None or load.advised is not None:
        return "What a member can do is not known: the group was never seen saturated."
    return _scatter_in_words(load.capacity)
