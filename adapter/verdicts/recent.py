"""Counts of replicas and their changes over the last minutes or hours: what the HPA controller needs for stabilization
windows and policies.

The functions are about one HPA, a row of records, and plain Python, so that replays can compile them."""

from collections.abc import Callable, Sequence

import numpy as np
from numpy.typing import NDArray

from adapter.records import Records, records_of

Counts = NDArray[np.int64]

NONE = -1
"""There is no count: a metric had no value, or no count is young enough."""
HIGHEST, LOWEST = 1, -1
_ROOM = 4
"""Entries of each HPA at first; a power of two, as `remember` asks for."""


class WindowRecord:
    """The highest or the lowest count of the last seconds."""

    seconds: float
    side: int
    """HIGHEST or LOWEST."""
    first: int
    """Where the oldest of its counts is."""
    number: int
    """Of its counts, which are beside one another. The first one follows the last one."""


class CountRecord:
    """A count that may yet be the extreme of a window: those before a higher count will never be the highest."""

    time: float
    count: int


class ChangesRecord:
    """The controller's list of changes in one direction."""

    longest_seconds: float
    """The longest period of that direction's policies."""
    number: int


class ChangeRecord:
    time: float
    replicas: int


def remember(windows: Records[WindowRecord], counts: Records[CountRecord], at: int, now: float, count: int) -> None:
    """Adds a count to the window of one HPA, after all before; NONE: there is none."""
    if count < 0:
        return
    window, last = windows[at], counts.shape[1] - 1
    while window.number > 0 and _is_beyond(window, counts[at, (window.first + window.number - 1) & last].count, count):
        window.number -= 1
    newest = counts[at, (window.first + window.number) & last]
    newest.time, newest.count = now, count
    window.number += 1


def _is_beyond(window: WindowRecord, earlier: int, count: int) -> bool:
    """Whether an earlier count will not be the extreme again."""
    return window.side * earlier <= window.side * count


def extreme(windows: Records[WindowRecord], counts: Records[CountRecord], at: int, now: float) -> int:
    """Returns the highest or lowest count of one HPA that is younger than the window; NONE: there is none."""
    window, last = windows[at], counts.shape[1] - 1
    while window.number > 0 and counts[at, window.first].time <= now - window.seconds:
        window.first = (window.first + 1) & last
        window.number -= 1
    return counts[at, window.first].count if window.number > 0 else NONE


def note(lists: Records[ChangesRecord], changes: Records[ChangeRecord], at: int, now: float, replicas: int) -> None:
    """Adds a change of one HPA. As in the controller, a new change takes the place of one that is older than the
    longest period of that direction's policies, although a policy of the other direction may still count that one."""
    of, place = lists[at], lists[at].number
    for earlier in range(of.number):
        if changes[at, earlier].time < now - of.longest_seconds:
            place = earlier
    if place == of.number:
        of.number += 1
    change = changes[at, place]
    change.time, change.replicas = now, replicas


def changed_within(
    lists: Records[ChangesRecord], changes: Records[ChangeRecord], at: int, now: float, seconds: float
) -> int:
    """Returns the sum of those changes of one HPA that are younger than so many seconds."""
    total = 0
    for place in range(lists[at].number):
        if changes[at, place].time > now - seconds:
            total += changes[at, place].replicas
    return total


RULES: tuple[Callable[..., object], ...] = (remember, _is_beyond, extreme, note, changed_within)
"""What kernels may call, of this module."""


def windows_of(seconds: Sequence[float], side: int) -> tuple[Records[WindowRecord], Records[CountRecord]]:
    """Returns empty windows, one for each HPA."""
    windows = records_of(WindowRecord, len(seconds))
    windows["seconds"], windows["side"] = seconds, side
    return windows, records_of(CountRecord, len(seconds), _ROOM)


def changes_of(longest_seconds: Sequence[float]) -> tuple[Records[ChangesRecord], Records[ChangeRecord]]:
    """Returns empty lists, one for each HPA."""
    lists = records_of(ChangesRecord, len(longest_seconds))
    lists["longest_seconds"] = longest_seconds
    return lists, records_of(ChangeRecord, len(longest_seconds), _ROOM)


def make_room_for_counts(
    windows: Records[WindowRecord], counts: Records[CountRecord], more: int
) -> Records[CountRecord]:
    """Returns the counts of all windows, with room for so many more of each."""
    room = counts.shape[1]
    needed = windows["number"].max(initial=0) + more
    if needed <= room:
        return counts
    wider = records_of(CountRecord, len(windows), _power_of_two(needed))
    in_order = (windows["first"][:, np.newaxis] + np.arange(room)) % room
    for name in ("time", "count"):
        wider[name][:, :room] = np.take_along_axis(counts[name], in_order, axis=1)
    windows["first"] = 0
    return wider


def make_room_for_changes(
    lists: Records[ChangesRecord], changes: Records[ChangeRecord], more: int
) -> Records[ChangeRecord]:
    """Returns the changes of all lists, with room for so many more of each."""
    room = changes.shape[1]
    needed = lists["number"].max(initial=0) + more
    if needed <= room:
        return changes
    wider = records_of(ChangeRecord, len(lists), _power_of_two(needed))
    for name in ("time", "replicas"):
        wider[name][:, :room] = changes[name]
    return wider


def _power_of_two(least: int) -> int:
    return 1 << (int(least) - 1).bit_length()
