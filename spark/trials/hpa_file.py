"""The HPA of `--hpa`: parsed, and refused where it scales on what is not replayed, or on another group."""

from collections.abc import Collection, Iterator
from pathlib import Path

from adapter.documents import content_of, document_in
from adapter.errors import SettingsInvalid
from adapter.verdicts.hpa import Hpa, HpaInvalid, LabelSelector, Metric, hpa_of
from adapter.verdicts.simulation.promised import Promised
from spark.errors import Unusable
from spark.tables.seen_hpas import SeenHpa
from spark.trials.references import Candidate

METRIC, REQUIRED = "kafka_consumergroup_lag", "kafka_consumergroup_required_replicas"
REPLICAS = "kafka_consumergroup_replicas"
"""Is recommended, but not replayed from a file: how much lag a replica counts for is only in the adapter's settings."""
ONE = 1000
"""A target of 1, in thousandths."""


def hpa_in(path: Path) -> Hpa:
    """Raises Unusable with every problem of the file."""
    try:
        return hpa_of(document_in(content_of(path)))
    except HpaInvalid as error:
        raise Unusable(f"--hpa {path}: {error}") from error
    except SettingsInvalid as error:
        raise Unusable(f"--hpa {'; '.join(error.problems)}") from error


def is_of(hpa: Hpa, cluster: str, group: str, topics: Collection[str]) -> bool:
    """Whether it scales on this group, which a selector names."""
    selectors = [metric.source.metric.selector for metric in hpa.metrics]
    return any("group" in dict(_chosen(it)) for it in selectors) and _can_be_replayed(hpa, cluster, group, topics)


def was_seen_for(seen: SeenHpa, topics: Collection[str]) -> bool:
    """Whether an HPA of a group, which has these topics, scales on all of them by metrics that can be replayed."""
    if not seen.is_replayable or (seen.topics and seen.topics != set(topics)):
        return False
    return _can_be_replayed(seen.hpa, seen.cluster, seen.group, topics)


def _can_be_replayed(hpa: Hpa, cluster: str, group: str, topics: Collection[str]) -> bool:
    try:
        candidate_of(hpa, cluster, group, topics, 0.0)
    except Unusable:
        return False
    return True


def candidate_of(hpa: Hpa, cluster: str, group: str, topics: Collection[str], promised_seconds: float) -> Candidate:
    """Returns the HPA with what it reads: the lag of the group, or the number that keeps a promise about waiting.

    Raises Unusable where a metric is another one, or that of something else. A metric without a selector is taken for a
    named metric, because the names of these are only in the adapter's settings: with an average of 1 for a number of
    replicas, otherwise for the group's lag."""
    metrics = [_metric(at, it, cluster, group, topics) for at, it in enumerate(hpa.metrics)]
    if set(metrics) == {METRIC}:
        return Candidate(hpa)
    if set(metrics) == {REQUIRED}:
        return Candidate(hpa, rule=Promised(promised_seconds))
    raise Unusable("--hpa: spec.metrics has both a lag and a number of replicas; HPAs are replayed with one of them")


def _metric(at: int, metric: Metric, cluster: str, group: str, topics: Collection[str]) -> str:
    """Returns METRIC or REQUIRED."""
    name, target = metric.source.metric.name.lower(), metric.source.target
    chosen = dict(_chosen(metric.source.metric.selector))
    if not chosen:
        return REQUIRED if target.average_value == ONE else METRIC
    wanted = {"cluster": {cluster}, "group": {group}, "topic": set(topics)}
    for key, values in chosen.items():
        if values != wanted.get(key):
            given = ", ".join(sorted(values))
            raise Unusable(f"--hpa: spec.metrics[{at}] scales on {key} {given!r}, not on the lag of group {group!r}")
    if name not in {METRIC, REQUIRED} or "group" not in chosen:
        shown = metric.source.metric.name
        raise Unusable(f"--hpa: spec.metrics[{at}] scales on {shown!r}, not on the lag of group {group!r}")
    if name == REQUIRED and target.average_value != ONE:
        raise Unusable(f'--hpa: spec.metrics[{at}] is a number of replicas, so its target must be `averageValue: "1"`')
    return name


def _chosen(selector: LabelSelector) -> Iterator[tuple[str, set[str]]]:
    """Yields each key with the values that it may have."""
    for key, value in selector.match_labels.items():
        yield key, {value}
    for requirement in selector.match_expressions:
        is_list = requirement.operator == "In"
        yield requirement.key, set(requirement.values) if is_list else {f"{requirement.operator} {requirement.values}"}
