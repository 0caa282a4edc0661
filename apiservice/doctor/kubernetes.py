"""Decides what is wrong between kube-apiserver and the adapter."""

import re
from collections.abc import Iterator
from datetime import UTC, datetime

from adapter.errors import AdapterError, some_of
from apiservice.api_group import EXTERNAL, ApiGroup
from apiservice.auth.cluster_settings import AuthenticationFollower
from apiservice.doctor import codes
from apiservice.doctor.check import Check, Outcome, chained, failed, judged, passed, skipped, warned
from apiservice.doctor.facts import LATE, Answer, ClusterFacts, Replica, verb_of
from apiservice.registration import api_service

_WAY = (codes.HOLDER, codes.AUTHORITY, codes.REACHED)
_REFUSED = re.compile(r": EOF$|remote error: tls: |bad status from \S+ 40[13]")
"""In what kube-apiserver says of a server that does not accept its certificate. The adapter's listener ends such a
connection without an alert of TLS, so kube-apiserver sees the end of the stream."""
_NO_ZERO = "spec.minReplicas: Invalid value"
"""In what kube-apiserver says where the gate is off; an HPA may be refused for other reasons."""


def checks_of(facts: ClusterFacts, now: datetime | None = None, *, before_install: bool) -> Iterator[Check]:
    version = facts.version.document
    if version is None:
        yield from codes.failed_all(codes.CLUSTER, "", facts.version.problem)
        return
    yield passed(codes.CLUSTER, "", str(version.get("gitVersion")))
    for group in facts.ways:
        yield from _before(group, facts) if before_install else _of_api_service(group, facts, now or datetime.now(UTC))
    yield _front_proxy(facts)
    if before_install:
        yield _rights(facts)
    else:
        yield from (_may_read(group, review) for group, review in facts.reviews.items())
        yield from _of_replicas(facts)
    yield _gate(facts.dry_run)


def _before(group: ApiGroup, facts: ClusterFacts) -> Iterator[Check]:
    found, name, state = facts.ways[group].api_service, group.api_service, facts.states[group]
    if found.document is None and not found.is_absent:
        yield skipped(codes.HOLDER, name, found.problem)
    elif found.document is None and state.is_writable:
        yield passed(codes.HOLDER, name, "nobody has it yet")
    else:
        yield judged(codes.HOLDER, name, "" if state.is_ours else state.text, Outcome.WARNING)


def _of_api_service(group: ApiGroup, facts: ClusterFacts, now: datetime) -> Iterator[Check]:
    way, name, state = facts.ways[group], group.api_service, facts.states[group]
    found, discovery = way.api_service, way.discovery
    if found.document is None and not found.is_absent:
        yield from (skipped(code, name, found.problem) for code in _WAY)
        return
    if state.others and group == EXTERNAL and facts.has_custom_metrics:
        yield warned(codes.HOLDER, name, state.text)
        yield from (skipped(code, name, f"it belongs to {state.others}") for code in _WAY[1:])
        return
    if found.document is None or state.others:
        yield from chained(_WAY, name, codes.HOLDER, state.text)
        return
    yield passed(codes.HOLDER, name, f"Service {facts.service.place}")
    untrusted = state.details if "x509" in state.details else api_service.bundle_fault(found.document, now)
    if untrusted:
        yield from chained(_WAY[1:], name, codes.AUTHORITY, untrusted)
    elif _REFUSED.search(state.details):
        yield passed(codes.AUTHORITY, name)
        yield skipped(codes.REACHED, name, f"{codes.FRONT_PROXY.name} failed")
    elif not state.is_registered:
        yield skipped(codes.AUTHORITY, name, f"{codes.REACHED.name} failed")
        yield failed(codes.REACHED, name, f"{state.text}: {state.details}")
    else:
        yield passed(codes.AUTHORITY, name)
        late = skipped(codes.REACHED, name, LATE.problem) if discovery is LATE else None
        yield late or judged(codes.REACHED, name, discovery.problem)


def _front_proxy(facts: ClusterFacts) -> Check:
    found = facts.authentication
    ours = [state.details for state in facts.states.values() if state.is_ours]
    refused = next((details for details in ours if _REFUSED.search(details)), "")
    is_known = found.document is not None or found.is_absent
    try:
        if is_known:
            AuthenticationFollower(lambda _: None).listed(iter([] if found.document is None else [found.document]))
    except AdapterError as error:
        return failed(codes.FRONT_PROXY, "", str(error))
    if refused:
        return failed(codes.FRONT_PROXY, "", f"the adapter does not accept the front proxy's certificate: {refused}")
    return passed(codes.FRONT_PROXY) if is_known else skipped(codes.FRONT_PROXY, "", found.problem)


def _may_read(group: ApiGroup, review: Answer) -> Check:
    if review.is_allowed is None:
        return skipped(codes.HPA_READS, group.name, review.problem)
    lack = f"the ServiceAccount kube-system/horizontal-pod-autoscaler may not {verb_of(group)} {group.title}"
    return judged(codes.HPA_READS, group.name, "" if review.is_allowed else lack)


def _of_replicas(facts: ClusterFacts) -> Iterator[Check]:
    if isinstance(facts.replicas, str):
        yield skipped(codes.READY, "", facts.replicas)
    elif not facts.replicas:
        yield failed(codes.READY, f"Service {facts.service.place}", "there is no pod that it selects")
    else:
        yield from (_of_replica(each) for each in facts.replicas)


def _of_replica(replica: Replica) -> Check:
    subject = f"pod {replica.name}"
    if not replica.says and replica.is_ready:
        return skipped(codes.READY, subject, replica.problem)
    if not replica.says:
        return failed(codes.READY, subject, f"it is not ready, and it could not be asked why: {replica.problem}")
    lines = replica.says.splitlines()
    remarks = [line.removeprefix("warn: ") for line in lines if line.startswith("warn: ")]
    unready = [line[3:].partition(" ")[0] for line in lines if line.startswith("[-]")]
    if unready:
        return failed(codes.READY, subject, f"it is not ready ({some_of(unready, separator=', ')}): {some_of(remarks)}")
    return judged(codes.READY, subject, some_of(remarks), Outcome.WARNING)


def _rights(facts: ClusterFacts) -> Check:
    unknown = [right.review.problem for right in facts.rights if right.review.is_allowed is None]
    if unknown:
        return skipped(codes.INSTALLS, "", unknown[0])
    lacking = [
        f"{right.resource} in {right.namespace}" if right.namespace else right.resource
        for right in facts.rights
        if not right.review.is_allowed
    ]
    return judged(codes.INSTALLS, "", f"may not create {some_of(lacking, most=10, separator=', ')}" if lacking else "")


def _gate(dry_run: Answer) -> Check:
    if dry_run.document is not None:
        return passed(codes.GATE)
    if dry_run.status == 422 and _NO_ZERO in dry_run.problem:
        return warned(codes.GATE, "", "minReplicas 0 is refused: the feature gate HPAScaleToZero is off")
    return skipped(codes.GATE, "", dry_run.problem)
