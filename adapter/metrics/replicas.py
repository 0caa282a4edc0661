"""Reads of the number of replicas: by which settings, and which rows of a selection count."""

from collections.abc import Iterator, Sequence
from functools import partial

import numpy as np

from adapter.lag.replicas import movement_of, replicas_of, still_after
from adapter.metrics.fallbacks import Asked
from adapter.metrics.problems import Problem, Reason, Refused, refused
from adapter.metrics.requirement import Operator, Requirement
from adapter.metrics.selection import Selection, named
from adapter.settings.models import REPLICAS, REQUIRED_REPLICAS, NamedMetric, Replicas, Settings

_UNDEFINED = {
    True: "no number of replicas is defined for group {group}: add `replicas` to its rule in the adapter's settings, or"
    " use a named metric with `value: replicas`",
    False: "group {group} has no objective: add one such as `objective: {{maxWait: 30s}}` to its rule in the adapter's"
    " settings, or use a named metric with `value: required_replicas`",
}
"""Whether the value is `replicas` -> what is missing."""


def shape_for(
    settings: Settings, value: str, metric: NamedMetric | None, asked: Sequence[Requirement]
) -> Replicas | None:
    """Returns the `replicas` of the named metric, or what the rule of the only group that is asked for says of the
    value, if there is any."""
    if metric is not None and metric.replicas is not None:
        return metric.replicas
    groups = named(asked, "group") or ()
    rule = settings.rule_for(next(iter(groups))) if len(groups) == 1 else None
    if rule is None:
        return None
    return rule.replicas if value == REPLICAS else rule.required_replicas


def partitions_of(shape: Replicas | None) -> tuple[Requirement, ...]:
    """Returns what `partitions` asks for."""
    names = None if shape is None else shape.partition_names
    return () if names is None else (Requirement("partition", Operator.IN, names),)


def values_with_fallback(settings: Settings) -> Iterator[Asked]:
    """Yields those that the settings name."""
    for metric in settings.metrics:
        if metric.replicas is not None and metric.replicas.fallback is not None:
            yield Asked(metric.name, ())
    for rule in settings.rules:
        if rule.group is not None and rule.replicas is not None and rule.replicas.fallback is not None:
            yield of_group(REPLICAS, rule.group)
            if rule.objective is not None:
                yield of_group(REQUIRED_REPLICAS, rule.group)


def of_group(value: str, group: str) -> Asked:
    return Asked(f"kafka_consumergroup_{value}", (Requirement("group", Operator.IN, frozenset({group})),))


def not_servable(
    chosen: Sequence[Selection], asked: Sequence[Requirement], value: str, shape: Replicas | None
) -> Refused | None:
    """Returns why the value of one group cannot follow from what is selected; None if it can."""
    if len(named(asked, "group") or ()) != 1:
        return _not_one("the selector must name one group, as group=billing does: replicas are of a single group")
    selected = [(one.view.cluster, group) for one in chosen for group in one.groups]
    if selected and shape is None:
        cluster, group = selected[0]
        text = _UNDEFINED[value == REPLICAS].format(group=group)
        return refused(text, [Problem(Reason.NOT_CONFIGURED, text, cluster, group)])
    clusters = sorted({one.view.cluster for one in chosen if one.entries})
    if len(clusters) > 1:
        names = ", ".join(clusters)
        return _not_one(f"the group is in the clusters {names}: the selector must name one of them as cluster")
    return None


def _not_one(text: str) -> Refused:
    return refused(text, [Problem(Reason.NOT_ONE_GROUP, text)])


def replicas_in(chosen: Selection, shape: Replicas, interval: float) -> int:
    """Raises ValueUnavailable if the number depends on movement that has not been watched for long enough."""
    view, totals = chosen.view, chosen.totals
    group = view.layout.groups[totals.group[chosen.entries[0]]]
    of_topics = [chosen.rows_of(entry) for entry in chosen.entries]
    # A topic that no member read when the group was last described takes no member.
    in_doubt = (totals.is_in_doubt[entry] for entry in chosen.entries)
    partitions = [len(rows) for rows, is_doubtful in zip(of_topics, in_doubt, strict=True) if not is_doubtful]
    rows = of_topics[0] if len(of_topics) == 1 else np.concatenate(of_topics)
    count = partial(replicas_of, view.values.lag[rows], partitions, view.sharing_of(group), shape)
    if not shape.exclude_persistent_lag:
        return count()
    seconds = still_after(interval)
    is_still, is_unknown = movement_of(view.snapshot, rows, view.judged_at.get(group), seconds)
    replicas = count(is_still)
    if is_unknown.any() and count(is_still | is_unknown) != replicas:
        largest = rows[np.argmax(np.where(is_unknown, view.values.lag[rows], -1))]
        problem = _unwatched(chosen, group, int(largest), seconds)
        raise refused(f"number of replicas of group {group} is not known: {problem.text}", [problem])
    return replicas


def _unwatched(chosen: Selection, group: str, row: int, seconds: float) -> Problem:
    view, layout = chosen.view, chosen.view.layout
    text = f"{layout.name(row)} has not been watched for {seconds:g} s, so whether its commit moves is not known yet"
    topic, partition = layout.topics[layout.topic[row]], int(layout.partition[row])
    return Problem(Reason.MOVEMENT_UNKNOWN, text, view.cluster, group, topic, partition)
