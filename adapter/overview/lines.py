"""Each group as one line, in the order in which they need attention. Nothing is judged that a read judges otherwise."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from enum import StrEnum
from math import isnan

from adapter.metrics.demand import WINDOW_SECONDS
from adapter.metrics.query import Known
from adapter.metrics.store import ClusterView
from adapter.overview import figures
from adapter.overview.figures import Part, parts_of
from adapter.settings.models import Level

SURE_SECONDS = 5 / 6 * WINDOW_SECONDS
"""The shortest window of any interval. In a shorter time, a commit that stands still says nothing: clients commit every
5 s, and some every minute."""


class Attention(StrEnum):
    """Why a group needs attention, the most urgent first."""

    UNKNOWN = "unknown"
    """Its lag is not known."""
    NO_MEMBERS = "no members"
    """Messages wait, and nobody reads them."""
    STUCK = "stuck"
    """Messages wait, and no commit moves."""
    GROWING = "growing"
    """More is produced than consumed."""
    LAGGING = "lagging"
    NONE = ""


URGENCY = tuple(Attention)
OTHERS = "(others)"
"""Stands for groups whose names only an unresponsive broker knows."""


@dataclass(frozen=True, slots=True)
class GroupLine:
    """None: not known."""

    cluster: str
    group: str
    state: str
    """Kafka's, in lower case; empty if no broker has reported one."""
    attention: Attention
    members: int | None = None
    partitions: int = 0
    lag: int | None = None
    wait: float | None = None
    """For how many seconds the oldest message has waited."""
    wait_is_bound: bool = False
    """Whether it has waited at least so long."""
    production: float | None = None
    """Messages per second, like `consumption`."""
    consumption: float | None = None
    reason: str = ""
    """Why the lag is not known, or does not exist."""


def lines_of(known: Known) -> list[GroupLine]:
    """Returns the groups, the most urgent first, and of these the one with the largest lag."""
    lines = {(line.cluster, line.group): line for part in parts_of(known) for line in _of_part(part)}
    for (cluster, group), problem in known.left_out.items():
        view = next((one.view for one in known.chosen if one.view.cluster == cluster), None)
        name = group or OTHERS
        lines[cluster, name] = _without_lag(view, cluster, name, Attention.UNKNOWN, problem.text)
    for one in known.chosen:
        view = one.view
        for group in (group for group in one.groups if (view.cluster, group) not in lines):
            reason = "no partition counts: it has no commit, or only for topics that it does not read"
            lines[view.cluster, group] = _without_lag(view, view.cluster, group, Attention.NONE, reason)
    return sorted(lines.values(), key=lambda line: (URGENCY.index(line.attention), -(line.lag or 0), line.group))


def _without_lag(view: ClusterView | None, cluster: str, group: str, attention: Attention, reason: str) -> GroupLine:
    state, members = ("", None) if view is None else (_state(view, group), _members(view, group))
    return GroupLine(cluster, group, state, attention, members, reason=reason)


def _of_part(part: Part) -> Iterator[GroupLine]:
    view, starts = part.view, part.starts(Level.GROUP)
    names = [view.layout.groups[code] for code in view.layout.group[part.rows[starts]].tolist()]
    sizes = [*(starts[1:] - starts[:-1]).tolist(), len(part.rows) - int(starts[-1])]
    shown = (figures.LAG, figures.WAIT, figures.LEAST_WAIT, figures.PRODUCTION, figures.CONSUMPTION)
    columns: Sequence[Sequence[float]] = [each.of(part, Level.GROUP).tolist() for each in shown]
    for group, size, lag, wait, least, production, consumption in zip(names, sizes, *columns, strict=True):
        members, rates = _members(view, group), (_known(production), _known(consumption))
        yield GroupLine(
            cluster=view.cluster,
            group=group,
            state=_state(view, group),
            attention=_attention(int(lag), members, *rates, is_sure=part.window >= SURE_SECONDS),
            members=members,
            partitions=size,
            lag=int(lag),
            wait=least,
            wait_is_bound=isnan(wait),
            production=rates[0],
            consumption=rates[1],
        )


def _attention(
    lag: int, members: int | None, production: float | None, consumption: float | None, *, is_sure: bool
) -> Attention:
    if lag == 0:
        return Attention.NONE
    if members == 0:
        return Attention.NO_MEMBERS
    if consumption == 0 and is_sure:
        return Attention.STUCK
    if production is not None and consumption is not None and production > consumption:
        return Attention.GROWING
    return Attention.LAGGING


def _known(value: float) -> float | None:
    return None if isnan(value) else value


def _state(view: ClusterView, group: str) -> str:
    status = view.statuses.get(group)
    return "" if status is None else status.phase.value


def _members(view: ClusterView, group: str) -> int | None:
    counted = view.members_of(group)
    return None if counted is None else counted.members
