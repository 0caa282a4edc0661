"""Why a group has its lag: what is served, and every partition with what counts, what does not, and why."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from operator import attrgetter

import numpy as np

from adapter.clock import Clock
from adapter.columns import NEVER, NO_COMMIT, NOT_KNOWN
from adapter.lag.snapshot import State
from adapter.lag.values import states_of
from adapter.metrics.problems import Problem, Reason, Refused, refused
from adapter.metrics.query import LAG, Metrics
from adapter.metrics.requirement import Operator, Requirement
from adapter.metrics.selection import hint
from adapter.metrics.store import ClusterView
from adapter.settings.models import Rule, Settings

_TREATED = {
    "is_outside": "not counted: its topic is outside of the rule's topics",
    "is_asked": "counted only for the HPAs whose selector names the group and this topic",
    "is_abandoned": "not counted: no member of the group reads its topic",
    "is_in_doubt": "not known: it has been too long since it was seen whether a member reads its topic",
}
"""Field of the row's treatment -> what it means."""


@dataclass(frozen=True, slots=True)
class PartitionLine:
    """None: not known, or there is none."""

    topic: str
    partition: int
    state: str
    """As in the history."""
    committed: int | None
    log_start: int | None
    log_end: int | None
    lag: int | None
    """What it adds to the group's lag; None if it does not count, or is not known."""
    age: float | None
    """For how many seconds commit and end have been known."""
    owner: str
    """The member that it is assigned to; empty if that is not known, or there is none."""
    why: str
    """Why it does not count, why it is not known, or how it counts without a commit; otherwise empty."""


@dataclass(frozen=True, slots=True)
class Served:
    """What a read of a metric returns now."""

    metric: str
    value: str
    """Empty if it is refused."""
    refusal: str = ""


@dataclass(frozen=True, slots=True)
class Explanation:
    cluster: str
    group: str
    summary: str
    state: str
    """Of the group, in Kafka's word; empty if no broker has reported one."""
    members: int | None
    rule: str
    """The rule of the settings that applies to the group."""
    served: tuple[Served, ...]
    partitions: tuple[PartitionLine, ...]


def explanations_of(
    group: str,
    metrics: Metrics,
    settings: Settings,
    clock: Clock,
    namespace: str | None = None,
    *,
    is_asked: bool = False,
) -> tuple[Explanation, ...]:
    """Returns one for each cluster that knows the group, to a reader in the namespace; None: to one who reads all.

    `is_asked`: an HPA of the reader names the group, so one counts that nothing but selectors of HPAs names. Raises
    NoMatch if no cluster knows the group, and ValueUnavailable if one may."""
    views = metrics.views_for(namespace)
    knowing = [view for view in views if group in view.codes and (is_asked or not view.is_only_asked(group))]
    if not knowing:
        raise _unknown(group, views)
    return tuple(_explained(view, group, metrics, settings, clock, namespace) for view in knowing)


def _unknown(group: str, views: Sequence[ClusterView]) -> Refused:
    for view in views:
        why = view.possible_groups.about(group)
        if why is not None:
            text = f"whether group {group!r} exists in cluster {view.cluster} is not known: {why}"
            return refused(text, [Problem(Reason.GROUP_MAY_EXIST, text, view.cluster, group)])
    names = [name for view in views for name in view.codes]
    text = f"no group {group[:249]!r} is known{hint(group, names, 'known groups are')}"
    return refused(text, [Problem(Reason.GROUP_UNKNOWN, text, group=group)])


def _explained(
    view: ClusterView, group: str, metrics: Metrics, settings: Settings, clock: Clock, namespace: str | None
) -> Explanation:
    status, counted = view.statuses.get(group), view.members_of(group)
    labels = {"cluster": view.cluster, "group": group}
    asked = [Requirement(key, Operator.IN, frozenset({value})) for key, value in labels.items()]
    read = (_served(metrics, metric, asked, namespace) for metric in metrics.names if _is_of_groups(metrics, metric))
    served = tuple(each for each in read if each is not None)
    partitions = tuple(_partitions(view, group, clock.monotonic(), settings.collection.max_age))
    (lag,) = (each for each in served if each.metric == LAG)
    state, members = "" if status is None else status.phase.value, None if counted is None else counted.members
    sentences = _sentences(group, view.cluster, lag, state, members, partitions)
    summary = " ".join(_only_asked(group, view.cluster) if view.is_only_asked(group) else sentences)
    rule = _rule_text(settings, settings.rule_for(group))
    return Explanation(view.cluster, group, summary, state, members, rule, served, partitions)


def _is_of_groups(metrics: Metrics, name: str) -> bool:
    """Whether it is built in: a named metric is of its own group, and may be for other readers."""
    served = metrics.served(name)
    return served is not None and served.own is None and name.startswith("kafka_consumergroup_")


def _served(metrics: Metrics, metric: str, asked: Sequence[Requirement], namespace: str | None) -> Served | None:
    """Returns None for what the settings do not ask for."""
    try:
        reading = metrics.read(metric, asked, namespace)
    except Refused as error:
        is_wanted = all(problem.reason is not Reason.NOT_CONFIGURED for problem in error.problems)
        return Served(metric, "", str(error)) if is_wanted else None
    total = sum(each.milli for each in reading.values)
    labels = reading.values[0].labels.get("bound", "")
    return Served(metric, f"{decimal(total)} ({labels})" if labels else decimal(total))


def decimal(milli: int) -> str:
    """Returns thousandths as a number with all its digits."""
    whole, rest = divmod(milli, 1000)
    return f"{whole}.{rest:03}".rstrip("0") if rest else str(whole)


def _sentences(
    group: str, cluster: str, lag: Served, state: str, members: int | None, partitions: Sequence[PartitionLine]
) -> Iterator[str]:
    counting = [line for line in partitions if line.lag is not None]
    if lag.value:
        yield f"Group {group} in cluster {cluster} has a lag of {lag.value} messages."
    else:
        yield f"The lag of group {group} in cluster {cluster} is not served: {lag.refusal}."
    if counting and lag.value not in {"", "0"}:
        largest = max(counting, key=attrgetter("lag"))
        yield f"The largest part is {largest.lag} in {largest.topic}/{largest.partition}."
    has = "an unknown number of members" if members is None else f"{members} member{'' if members == 1 else 's'}"
    yield f"The group has {has}{f' and is {state}' if state else ''}."
    left_out = sum(line.state == State.STALE.name.lower() for line in partitions)
    unknown = len(partitions) - len(counting) - left_out
    yield f"{len(counting)} of its {len(partitions)} partitions count, {left_out} do not, and {unknown} are not known."
    if lag.value not in {"", "0"} and members == 0:
        yield "Nobody reads what waits."


def _only_asked(group: str, cluster: str) -> Iterator[str]:
    yield f"Kafka knows no group {group} in cluster {cluster}, and only selectors of HPAs name it."
    yield "The topics that they name count for these HPAs alone."


def _rule_text(settings: Settings, rule: Rule | None) -> str:
    if rule is None:
        return "no rule: every topic with a commit counts, and a partition without one counts 0"
    named = f"group: {rule.group}" if rule.group is not None else f"groups: {rule.groups!r}"
    topics = "" if rule.topics is None else f", topics: {', '.join(rule.topics)}"
    counts = "the whole log" if rule.counts_from_start(is_named=False) else "0"
    return (
        f"rules[{settings.rules.index(rule)}] ({named}{topics}): a partition that was never committed counts {counts}"
    )


def _partitions(view: ClusterView, group: str, now: float, max_age: float) -> Iterator[PartitionLine]:
    layout, snapshot, values, span = view.layout, view.snapshot, view.values, view.layout.spans[group]
    rows = np.arange(span.start, span.stop)
    rows = rows[~np.isin(layout.topic[rows], _hidden_topics(view, group))]
    states, owners = states_of(snapshot, view.treatment)[rows].tolist(), _owners(view, group)
    for row, code in zip(rows.tolist(), states, strict=True):
        topic, number = layout.topics[layout.topic[row]], int(layout.partition[row])
        received = float(snapshot.received[row])
        age = None if received == NEVER else max(now - received, 0.0)
        is_known = (
            bool(values.is_known[row]) and age is not None and age <= max_age and not view.treatment.is_in_doubt[row]
        )
        counts = code != State.STALE
        yield PartitionLine(
            topic=topic,
            partition=number,
            state=State(code).name.lower(),
            committed=None if snapshot.committed[row] == NO_COMMIT else int(snapshot.committed[row]),
            log_start=None if snapshot.log_start[row] == NOT_KNOWN else int(snapshot.log_start[row]),
            log_end=None if snapshot.log_end[row] == NOT_KNOWN else int(snapshot.log_end[row]),
            lag=int(values.lag[row]) if is_known and counts else None,
            age=age,
            owner=owners.get((topic, number), ""),
            why=_why(view, row, is_known=is_known, age=age, max_age=max_age),
        )


def _hidden_topics(view: ClusterView, group: str) -> list[int]:
    """Returns the codes of topics that the reader may not see: only HPAs of others name them for the group."""
    totals, topics = view.totals, view.layout.topics
    entries = totals.spans.get(view.layout.codes[group], ())
    only_asked = (entry for entry in entries if totals.is_asked[entry] and not totals.was_committed[entry])
    return [code for entry in only_asked if topics[code := totals.topic[entry]] not in view.topics]


def _owners(view: ClusterView, group: str) -> dict[tuple[str, int], str]:
    owned = view.owned.get(group, ())
    return {(part.topic, number): part.member for part in owned for number in part.partitions}


def _why(view: ClusterView, row: int, *, is_known: bool, age: float | None, max_age: float) -> str:
    treated = (name for name in _TREATED if getattr(view.treatment, name)[row])
    if (name := next(treated, None)) is not None:
        is_counted = name == "is_asked" and is_known
        return f"{_TREATED[name]}: {view.values.lag[row]}" if is_counted else _TREATED[name]
    cause = view.snapshot.cause_of(row).text
    if not is_known and view.snapshot.state[row] == State.AHEAD:
        return "not known: the commit is beyond the log end"
    if not is_known:
        is_old = age is not None and age > max_age
        return f"not known: {cause or (f'it is older than {max_age:g} s' if is_old else 'it has not been read yet')}"
    if cause:
        return f"still served from the last good reading: {cause}"
    return "" if view.snapshot.committed[row] != NO_COMMIT else _without_commit(view, row)


def _without_commit(view: ClusterView, row: int) -> str:
    if view.snapshot.last_commit[row] != NO_COMMIT:
        return f"its commit has expired: counted from the last one that was seen, {view.snapshot.last_commit[row]}"
    if view.values.lag[row] or view.treatment.counts_from_start[row]:
        return "never committed: its whole log counts"
    return "never committed: counts 0"
