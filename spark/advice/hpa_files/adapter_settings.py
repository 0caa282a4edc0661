"""Pure: what the adapter's settings must say of a group, so that a recommended HPA has its metric, as lines of YAML."""

from decimal import Decimal

from spark.advice.hpa_files.yaml_text import quoted
from spark.advice.recommendation import LagPerReplica, Promise, Reads, Recommendation
from spark.figures.model import Group


def rule_of(group: Group, hpa: Recommendation) -> list[str]:
    """A rule for a group that a selector can name; empty: the HPA needs none."""
    if hpa.rule is None:
        return []
    key = "objective" if isinstance(hpa.rule, Promise) else "replicas"
    return ["rules:", f"  - group: {quoted(group.name)}", f"    {_topics(group)}", f"    {key}: {_shape(hpa)}"]


def named_metric(group: Group, hpa: Recommendation, name: str) -> list[str]:
    """The metric of that name, for a group that no selector can name."""
    shape = [] if hpa.rule is None else [f"    replicas: {_shape(hpa)}"]
    return [
        "metrics:",
        f"  - name: {name}",
        f"    value: {hpa.reads.short}",
        f"    cluster: {quoted(group.cluster)}",
        f"    group: {quoted(group.name)}",
        f"    {_topics(group)}",
        *shape,
    ]


def metric_name(name: str, reads: Reads) -> str:
    """Of a named metric. `name`: of the HPA."""
    return f"{name}-{'backlog' if reads is Reads.LAG else 'replicas'}"


def keys_of(hpa: Recommendation) -> list[tuple[str, str, str]]:
    """Key, value and reason of every number of the rule."""
    match hpa.rule:
        case Promise(max_wait_seconds=wait, capacity=capacity, capacity_reason=reason):
            return [("maxWait", f"{wait.value}s", wait.reason), ("capacityHint", _plain(capacity), reason)]
        case LagPerReplica(messages=messages):
            return [("lagPerReplica", str(messages.value), messages.reason)]
    return []


def _shape(hpa: Recommendation) -> str:
    return "{" + ", ".join(f"{key}: {value}" for key, value, _ in keys_of(hpa)) + "}"


def _topics(group: Group) -> str:
    return f"topics: [{', '.join(quoted(topic.name) for topic in group.topics)}]"


def _plain(number: float) -> str:
    """Without an exponent, which YAML may take for a text."""
    return format(Decimal(repr(number)).normalize(), "f")
