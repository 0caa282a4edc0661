"""The HPA of `--hpa`: parsed, and refused where it does not scale on the lag of the group that is replayed."""

from collections.abc import Collection, Iterator
from pathlib import Path

from adapter.documents import content_of, document_in
from adapter.errors import SettingsInvalid
from adapter.verdicts.hpa import Hpa, HpaInvalid, LabelSelector, hpa_of
from spark.errors import Unusable
from spark.tables.seen_hpas import SeenHpa

METRIC = "kafka_consumergroup_lag"


def hpa_in(path: Path) -> Hpa:
    """Raises Unusable with every problem of the file."""
    try:
        return hpa_of(document_in(content_of(path)))
    except HpaInvalid as error:
        raise Unusable(f"--hpa {path}: {error}") from error
    except SettingsInvalid as error:
        raise Unusable(f"--hpa {'; '.join(error.problems)}") from error


def is_of(hpa: Hpa, cluster: str, group: str, topics: Collection[str]) -> bool:
    """Whether it scales on the lag of this group, which a selector names."""
    selectors = [metric.source.metric.selector for metric in hpa.metrics]
    if not any("group" in dict(_chosen(selector)) for selector in selectors):
        return False
    try:
        check_scales_on_lag(hpa, cluster, group, topics)
    except Unusable:
        return False
    return True


def was_seen_for(seen: SeenHpa, topics: Collection[str]) -> bool:
    """Whether an HPA of a group, which has these topics, scales on the lag of all of them."""
    if not seen.is_on_lag or (seen.topics and seen.topics != set(topics)):
        return False
    try:
        check_scales_on_lag(seen.hpa, seen.cluster, seen.group, topics)
    except Unusable:
        return False
    return True


def check_scales_on_lag(hpa: Hpa, cluster: str, group: str, topics: Collection[str]) -> None:
    """Raises Unusable where a metric is another one, or the lag of something else. A metric without a selector is taken
    for a named metric with the group's lag, because the names of these are only in the adapter's settings."""
    for at, metric in enumerate(hpa.metrics):
        name, selector = metric.source.metric.name, metric.source.metric.selector
        chosen = dict(_chosen(selector))
        if not chosen:
            continue
        wanted = {"cluster": {cluster}, "group": {group}, "topic": set(topics)}
        for key, values in chosen.items():
            if values != wanted.get(key):
                given = ", ".join(sorted(values))
                raise Unusable(
                    f"--hpa: spec.metrics[{at}] scales on {key} {given!r}, not on the lag of group {group!r}"
                )
        if name.lower() != METRIC or "group" not in chosen:
            raise Unusable(f"--hpa: spec.metrics[{at}] scales on {name!r}, not on the lag of group {group!r}")


def _chosen(selector: LabelSelector) -> Iterator[tuple[str, set[str]]]:
    """Yields each key with the values that it may have."""
    for key, value in selector.match_labels.items():
        yield key, {value}
    for requirement in selector.match_expressions:
        is_list = requirement.operator == "In"
        yield requirement.key, set(requirement.values) if is_list else {f"{requirement.operator} {requirement.values}"}
