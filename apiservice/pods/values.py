"""The values of pods: those of the members that run in them."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from adapter.metrics.aggregation import MetricValue
from adapter.metrics.members import MemberReading, MemberValue
from adapter.metrics.problems import Problem, Reason, Refused, refused
from adapter.metrics.requirement import Requirement
from apiservice.pods.matching import pods_of
from apiservice.pods.pod import Pod

PodsOf = Callable[[str], Sequence[Pod] | None]
"""Namespace -> all its pods; None if they are not known."""


@dataclass(frozen=True, slots=True)
class PodQuery:
    """`name`: of one pod; empty: all that match `labels`."""

    namespace: str
    name: str
    labels: Sequence[Requirement]

    def includes(self, pod: Pod) -> bool:
        if self.name:
            return pod.name == self.name
        return all(requirement.matches(pod.labels.get(requirement.key)) for requirement in self.labels)


def effort_of(query: PodQuery, pods_in: PodsOf) -> int:
    """Estimates what the pods cost, in the steps of `adapter.metrics.selection.effort_of`: half a step for each, and an
    eighth for each requirement."""
    return len(pods_in(query.namespace) or ()) * (4 + len(query.labels)) // 8


def values_of_pods(query: PodQuery, reading: MemberReading, pods_in: PodsOf) -> dict[str, MetricValue]:
    """Returns the value of each pod in which a member runs; raises NoMatch, or ValueUnavailable without the pods."""
    pods = pods_in(query.namespace)
    if pods is None:
        text = (
            f"the pods of namespace {query.namespace} are not known: the adapter watches them while an HPA there has a "
            "Pods metric, if it may list and watch pods"
        )
        raise refused(text, [Problem(Reason.PODS_UNKNOWN, text)])
    pod_of_member = pods_of((each.client for each in reading.values), pods)
    members: dict[str, list[MemberValue]] = {}
    for each in reading.values:
        if (pod := pod_of_member.get(each.client)) is not None:
            members.setdefault(pod, []).append(each)
    values = {
        pod.name: _value_of(members[pod.name], reading) for pod in pods if pod.name in members and query.includes(pod)
    }
    if not values:
        raise _nobody(query, reading, pods, matched=len(pod_of_member))
    return values


def _value_of(members: Sequence[MemberValue], reading: MemberReading) -> MetricValue:
    milli = reading.fold([each.milli for each in members])
    return MetricValue({}, milli, min(each.measured_at for each in members))


def _nobody(query: PodQuery, reading: MemberReading, pods: Sequence[Pod], *, matched: int) -> Refused:
    selected = sum(map(query.includes, pods))
    text = (
        f"none of the {selected} selected pods of namespace {query.namespace} has a member of the group, which has "
        f"{len(reading.values)} members, {matched} of them in pods of the namespace"
    )
    return refused(text, [Problem(Reason.NO_MEMBER, text)])
