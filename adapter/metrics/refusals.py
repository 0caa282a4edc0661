"""Collects the problems of what a query covers. One refuses the whole, because partial sums are never served."""

from collections.abc import Iterator, Sequence
from typing import NamedTuple

import numpy as np

from adapter.columns import NEVER
from adapter.lag.snapshot import State
from adapter.metrics.definitions import MetricDefinition
from adapter.metrics.problems import Problem, Reason
from adapter.metrics.requirement import Requirement
from adapter.metrics.selection import Selection, fits, hint, named, of_partitions
from adapter.metrics.store import ClusterView

_NEEDED = " (a partition needs a commit, or a rule or an HPA that names group and topics)"
_UNKNOWN = {"cluster": Reason.CLUSTER_UNKNOWN, "group": Reason.GROUP_UNKNOWN, "topic": Reason.TOPIC_UNKNOWN}


class Query(NamedTuple):
    definition: MetricDefinition
    asked: Sequence[Requirement]
    max_age: float
    now: float
    """In monotonic seconds."""
    to_epoch: float


def problems_of(query: Query, chosen: Sequence[Selection]) -> list[Problem]:
    problems = [problem for one in chosen for problem in _unheard(one, query.asked)]
    problems += [problem for one in chosen if one.view.problems for problem in _of_groups(one, query.asked)]
    return problems + [_of_entry(query, one, entry) for one in chosen for entry in _without_value(query, one)]


def nothing_selected(
    metric: str, definition: MetricDefinition, views: Sequence[ClusterView], asked: Sequence[Requirement]
) -> Problem:
    """Returns why nothing is selected, by the first name that is not known."""
    values = {"cluster": [view.cluster for view in views]}
    values["group"] = [group for view in views for group in view.codes]
    values["topic"] = sorted({topic for view in views for topic in view.topics})
    for requirement in asked:
        names = values.get(requirement.key)
        if names is not None and requirement.only and not requirement.only & set(names):
            key, name = requirement.key, min(requirement.only)
            text = f"no {key} {name[:249]!r} is known{hint(name, names, f'known {key}s are')}"
            cluster, group, topic = (name if each == key else "" for each in _UNKNOWN)
            return Problem(_UNKNOWN[key], text, cluster, group, topic)
    if not values["group"]:
        return Problem(Reason.GROUP_UNKNOWN, "no consumer group is known")
    groups = [min(r.only) for r in asked if r.key == "group" and r.only]
    whose = f" of group {groups[0]!r}" if groups else ""
    text = f"the selector matches nothing{whose} for {metric}{_NEEDED if definition.is_listed else ''}"
    return Problem(Reason.NOTHING_SELECTED, text, group=next(iter(groups), ""))


def _unheard(chosen: Selection, asked: Sequence[Requirement]) -> Iterator[Problem]:
    """A group that only an unavailable broker can know is neither absent nor 0."""
    view = chosen.view
    if not view.possible_groups.leaves_doubt:
        return
    whose, groups = f"not all groups of cluster {view.cluster} are known", named(asked, "group")
    if groups is None and view.possible_groups.in_sums is not None:
        yield Problem(Reason.GROUP_MAY_EXIST, f"{whose}: {view.possible_groups.in_sums}", view.cluster)
    for group in sorted((groups or frozenset()).difference(chosen.groups)):
        # The coordinator of a known group has confirmed that nothing here belongs to it.
        has_answered = group in view.assumed and not view.is_unread(group)
        why = None if has_answered else view.possible_groups.about(group)
        if why is not None and fits("group", group, asked):
            yield Problem(Reason.GROUP_MAY_EXIST, f"{whose}: {why}", view.cluster, group)


def _of_groups(chosen: Selection, asked: Sequence[Requirement]) -> Iterator[Problem]:
    for group in chosen.groups:
        for problem in chosen.view.problems.get(group, ()):
            is_covered = not problem.topic or fits("topic", problem.topic, asked)
            if is_covered and problem.reason is not Reason.IN_DOUBT:
                yield problem


def _without_value(query: Query, chosen: Selection) -> list[int]:
    """Returns the entries that are in doubt, and those that are too old, the oldest first."""
    oldest = query.definition.age.oldest(chosen.totals)
    in_doubt = [entry for entry in chosen.entries if _is_in_doubt(query, chosen, entry)]
    # NEVER, and so too old, if a part is unknown or contradictory.
    too_old = [entry for entry in chosen.entries if query.now - oldest[entry] > query.max_age]
    return in_doubt + sorted(set(too_old).difference(in_doubt), key=oldest.__getitem__)


def _is_in_doubt(query: Query, chosen: Selection, entry: int) -> bool:
    """Whether the topic is still read matters only if it changes the reply."""
    if not chosen.totals.is_in_doubt[entry]:
        return False
    return query.definition.column(chosen.totals)[entry] != query.definition.fold.neutral


def _of_entry(query: Query, chosen: Selection, entry: int) -> Problem:
    view, totals = chosen.view, chosen.totals
    group, topic = view.layout.groups[totals.group[entry]], view.layout.topics[totals.topic[entry]]
    if not _is_in_doubt(query, chosen, entry):
        return _of_row(query, chosen, group, topic)
    doubt = next(problem for problem in view.problems[group] if problem.reason is Reason.IN_DOUBT)
    text = f"{doubt.text}, and did not read topic {topic} then; whether it reads the topic now is not known"
    return doubt._replace(topic=topic, text=text)


def _of_row(query: Query, chosen: Selection, group: str, topic: str) -> Problem:
    """Returns the problem of the topic's oldest row, which is one without a value if there is any."""
    view, snapshot, layout = chosen.view, chosen.view.snapshot, chosen.view.layout
    span = layout.pairs[group, topic]
    rows = of_partitions(layout, np.arange(span.start, span.stop), query.asked)
    is_known = query.definition.age.is_known(view.values)[rows]
    row = int(rows[np.argmin(np.where(is_known, snapshot.received[rows], NEVER))])
    received, why = float(snapshot.received[row]), snapshot.cause_of(row).text
    if snapshot.state[row] == State.AHEAD:
        reason = Reason.COMMIT_BEYOND_END
        text = f": committed {snapshot.committed[row]} is beyond the log end {snapshot.log_end[row]}"
    elif received == NEVER:
        reason, text = Reason.NOT_READ_YET, f": {why}"
    elif not view.values.is_known[row]:
        reason, text = Reason.START_BEYOND_END, f": {why or 'its log start is beyond the last known log end'}"
    else:
        age = f"{query.now - received:.0f} s old, limit {query.max_age:g} s"
        reason, text = Reason.NOT_READ_SINCE, f" is {age}: {why or 'no cycle has ended since'}"
    since = None if received == NEVER else received + query.to_epoch
    partition = int(layout.partition[row])
    return Problem(reason, layout.name(row) + text, view.cluster, group, topic, partition, since)
