"""Reads of what follows from the movement of offsets: waits, rates and members, or the problem that refuses them."""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from adapter.cluster.groups import MemberCount
from adapter.columns import Indexes, Seconds
from adapter.lag.demand import FOLLOWED_SECONDS, Rates, losses_in, rates_by, waits_in
from adapter.lag.ring import Past, Track, past_of
from adapter.metrics.problems import Problem, Reason, Refused, refused
from adapter.metrics.requirement import Requirement
from adapter.metrics.selection import Selection

WINDOW_SECONDS = 60.0
"""A rate is over at least this time, so that the commits of a client that commits every 5 s make steps of a twelfth."""
WINDOW_CYCLES = 3
"""And over at least so many cycles."""
BOUND, EXACT, LOWER = "bound", "exact", "lower"
"""A label that says whether a value is exact, and what it says."""


class Wait(NamedTuple):
    milli: int
    bound: str
    row: tuple[Selection, int] | None
    """The selection and row that it is of; None if nothing waits."""


def wait_in(chosen: Sequence[Selection]) -> Wait:
    """Returns the age of the oldest message that waits in the selected partitions, in thousandths of a second.

    It is a lower bound if the age in one of them is."""
    waits = [_wait(one) for one in chosen if one.entries]
    bound = LOWER if any(each.bound == LOWER for each in waits) else EXACT
    shown = max((each for each in waits if each.bound == bound), key=lambda each: each.milli)
    return Wait(max(each.milli for each in waits), bound, shown.row)


def _wait(chosen: Selection) -> Wait:
    rows = _rows(chosen)
    lag = chosen.view.values.lag[rows]
    rows, lag = rows[lag > 0], lag[lag > 0]
    if not len(rows):
        return Wait(0, EXACT, None)
    snapshot = chosen.view.snapshot
    seconds, is_bound = waits_in(chosen.view.ring, rows, snapshot.log_end[rows] - lag, snapshot.received[rows])
    bound = LOWER if is_bound.any() else EXACT
    row = rows[np.argmax(np.where(is_bound == is_bound.any(), seconds, -1))]
    return Wait(round(1000 * float(seconds.max())), bound, (chosen, int(row)))


def check_bound(wait: Wait, asked: Sequence[Requirement], what: str) -> None:
    """Raises ValueUnavailable if the wait is a lower bound and the selector does not ask for one, and NoMatch if it is
    exact and the selector asks only for lower bounds. `what` names the metric."""
    wanted = [requirement for requirement in asked if requirement.key == BOUND]
    if wait.bound == LOWER and wait.row is not None and not (wanted and all(each.matches(LOWER) for each in wanted)):
        raise _only_lower(*wait.row, wait.milli, what)
    if not all(each.matches(wait.bound) for each in wanted):
        text = f"the value is {wait.bound}, which the selector excludes by its label {BOUND}"
        raise refused(text, [Problem(Reason.NOTHING_SELECTED, text)])


def _only_lower(chosen: Selection, row: int, milli: int, what: str) -> Refused:
    text = (
        f"{chosen.view.layout.name(row)} has a message that the adapter cannot date exactly: it is at least "
        f"{milli / 1000:.0f} s old (a selector with {BOUND}={LOWER} reads this lower bound)"
    )
    return _unknown(chosen, row, Reason.LOWER_BOUND, text, what)


def window_of(interval: float) -> float:
    """Returns the seconds that a rate covers at least."""
    return max(WINDOW_SECONDS, WINDOW_CYCLES * interval)


def rates_of(chosen: Selection, track: Track, interval: float, what: str) -> dict[int, int]:
    """Returns by how many thousandths of a message per second the offsets of each selected entry moved.

    Raises ValueUnavailable if that is not known of one of its partitions; `what` names the metric."""
    rows = _rows(chosen)
    per_second = known_rates(chosen, rows, past_of(track, rows), interval, what)
    sizes = [len(chosen.rows_of(entry)) for entry in chosen.entries]
    sums = np.add.reduceat(per_second, np.cumsum([0, *sizes[:-1]]))
    return {entry: round(1000 * rate) for entry, rate in zip(chosen.entries, sums.tolist(), strict=True)}


def known_rates(chosen: Selection, rows: Indexes, past: Past, interval: float, what: str) -> Seconds:
    """Returns the same of each row, by its past, in messages per second."""
    rates = recent_rates(past, interval)
    if np.isnan(rates.per_second).any():
        raise _not_followed(chosen, rows, rates, window_of(interval), what)
    return rates.per_second


def recent_rates(past: Past, interval: float) -> Rates:
    # Receipt times scatter, and that must not exclude the tick that is one window old.
    return rates_by(past, window_of(interval) - interval / 2)


def _not_followed(chosen: Selection, rows: Indexes, rates: Rates, window: float, what: str) -> Refused:
    is_unknown = np.isnan(rates.per_second)
    at = int(np.argmin(np.where(is_unknown, rates.followed, np.inf)))
    row = int(rows[at])
    text = (
        f"{chosen.view.layout.name(row)} has been followed for {rates.followed[at]:.0f} s, and a rate covers "
        f"{window:g} s in which its offset does not go backward"
    )
    return _unknown(chosen, row, Reason.MOVEMENT_UNKNOWN, text, what)


def seconds_to_loss(chosen: Sequence[Selection], what: str) -> float | None:
    """Returns in how many seconds retention deletes the first message that was not consumed; None if no selected
    partition has a commit.

    Raises NoMatch if nothing waits, and ValueUnavailable if it is not known or no log start moves."""
    losses = [loss for one in chosen if (loss := _loss_in(one, what)) is not None]
    if not losses:
        return None
    if all(each.row is None for each in losses):
        text = "nothing waits in the selected partitions, so there is nothing to lose"
        raise refused(text, [Problem(Reason.NOTHING_TO_LOSE, text)])
    first = min((each for each in losses if each.row is not None), key=lambda each: each.seconds)
    if np.isinf(first.seconds) and first.row is not None:
        one, row = first.row
        text = f"{one.view.layout.name(row)} has been followed for {first.followed:.0f} s, and no message was deleted"
        raise _unknown(one, row, Reason.MOVEMENT_UNKNOWN, text, what)
    return first.seconds


class _Loss(NamedTuple):
    seconds: float
    """Infinite if the log starts do not move, or nothing waits."""
    followed: float
    row: tuple[Selection, int] | None
    """None if nothing waits."""


def _loss_in(chosen: Selection, what: str) -> _Loss | None:
    values, rows = chosen.view.values, _rows(chosen)
    rows = rows[values.has_commit[rows]]
    if not len(rows):
        return None
    rows = rows[values.lag[rows] > 0]
    if not len(rows):
        return _Loss(np.inf, 0.0, None)
    seconds, followed = losses_in(chosen.view.ring.starts, rows, values.lead[rows])
    if np.isnan(seconds).any():
        at = int(np.argmin(followed))
        name = chosen.view.layout.name(int(rows[at]))
        text = f"the log start of {name} has been followed for {followed[at]:.0f} s, not for {FOLLOWED_SECONDS:g} s"
        raise _unknown(chosen, int(rows[at]), Reason.MOVEMENT_UNKNOWN, text, what)
    at = int(np.argmin(seconds))
    return _Loss(float(seconds[at]), float(followed[at]), (chosen, int(rows[at])))


def members_of(chosen: Selection, group: str, what: str) -> MemberCount:
    """Raises ValueUnavailable if the number is not known; `what` names the metric."""
    counted = chosen.view.members_of(group)
    if counted is None:
        text = "it has not been described as Stable or Empty since its last change"
        problem = Problem(Reason.MEMBERS_UNKNOWN, text, chosen.view.cluster, group)
        raise refused(f"{what} of group {group} is not known: {text}", [problem])
    return counted


def _unknown(chosen: Selection, row: int, reason: Reason, text: str, what: str) -> Refused:
    layout = chosen.view.layout
    group, topic = layout.groups[layout.group[row]], layout.topics[layout.topic[row]]
    problem = Problem(reason, text, chosen.view.cluster, group, topic, int(layout.partition[row]))
    return refused(f"{what} of group {group} is not known: {text}", [problem])


def _rows(chosen: Selection) -> Indexes:
    return np.concatenate([chosen.rows_of(entry) for entry in chosen.entries])
