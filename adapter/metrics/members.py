"""The values of the members of groups: what their partitions, as the latest view has them, make together."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from adapter.cluster.groups import Assignment, Client
from adapter.metrics.aggregation import MemberFold
from adapter.metrics.problems import Problem, Reason
from adapter.metrics.refusals import Query
from adapter.metrics.requirement import Requirement
from adapter.metrics.selection import Selection, fits


class MemberValue(NamedTuple):
    client: Client
    milli: int
    """The value in thousandths of the metric's unit."""
    measured_at: float
    """When its oldest part was received, in seconds since the epoch."""


@dataclass(frozen=True, slots=True)
class MemberReading:
    metric: str
    values: tuple[MemberValue, ...]
    fold: MemberFold
    """For the values of members of one process."""
    version: int
    valid_until: float
    """As of `Reading`."""


def problems_of_members(query: Query, chosen: Sequence[Selection]) -> list[Problem]:
    """Returns a problem for each selected group whose members' partitions are not known."""
    return [
        Problem(Reason.MEMBERS_UNKNOWN, text, one.view.cluster, group)
        for one in chosen
        for group in groups_in(one)
        if (text := _problem(query, one.view.assignments.get(group)))
    ]


def _problem(query: Query, assignment: Assignment | None) -> str:
    if assignment is None:
        return (
            "which partitions its members own is not known: the group is rebalancing or a share group, or no HPA asks "
            "for its pods"
        )
    age = query.now - assignment.described_at
    if age > query.max_age:
        return f"which partitions its members own was last known {age:.0f} s ago, limit {query.max_age:g} s"
    return ""


def groups_in(chosen: Selection) -> list[str]:
    """Returns the groups with selected entries."""
    names = chosen.view.layout.groups
    return [names[code] for code in dict.fromkeys(chosen.totals.group[entry] for entry in chosen.entries)]


def values_of_members(query: Query, chosen: Sequence[Selection], fold: MemberFold) -> Iterator[MemberValue]:
    """Yields every member of the selected groups; one that owns none of the selected partitions has 0."""
    for one in chosen:
        for group in groups_in(one):
            yield from _of_group(query, one, group, one.view.assignments[group], fold)


def _of_group(
    query: Query, chosen: Selection, group: str, assignment: Assignment, fold: MemberFold
) -> Iterator[MemberValue]:
    rows = _rows_of(chosen, group, assignment, query.asked)
    lag, received = chosen.view.values.lag, chosen.view.snapshot.received
    for client in assignment.clients:
        own = rows.get(client.member, [])
        oldest = min([assignment.described_at, *received[own].tolist()])
        yield MemberValue(client, 1000 * fold(lag[own].tolist()) if own else 0, oldest + query.to_epoch)


def _rows_of(
    chosen: Selection, group: str, assignment: Assignment, asked: Sequence[Requirement]
) -> Mapping[str, list[int]]:
    """Returns member -> its selected rows."""
    layout, totals = chosen.view.layout, chosen.totals
    code = layout.codes[group]
    topics = {layout.topics[totals.topic[entry]] for entry in chosen.entries if totals.group[entry] == code}
    rows: dict[str, list[int]] = {}
    for owned in assignment.owned:
        if owned.topic in topics:
            span = layout.pairs[group, owned.topic]
            count = span.stop - span.start
            wanted = (each for each in owned.partitions if 0 <= each < count and fits("partition", str(each), asked))
            rows.setdefault(owned.member, []).extend(span.start + each for each in wanted)
    return rows
