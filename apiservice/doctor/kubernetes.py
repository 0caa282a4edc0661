"""Decides what is wrong between kube-apiserver and the adapter."""

from collections.abc import Iterator
from datetime import UTC, datetime

from adapter.errors import AdapterError, some_of
from apiservice.api_group import EXTERNAL
from apiservice.auth.cluster_settings import AuthenticationFollower
from apiservice.doctor import codes
from apiservice.doctor.check import Category, Check, Outcome, failed, judged, passed, skipped, warned
from apiservice.doctor.facts import LATE, Answer, ClusterFacts
from apiservice.registration import api_service
from apiservice.tls.issuing import PRODUCT

_CODES = tuple(code for code in codes.CODES if code.category is Category.KUBERNETES)


def not_asked(why: str) -> Iterator[Check]:
    yield from (skipped(code, "", why) for code in _CODES)


def unusable(problem: str) -> Iterator[Check]:
    """The kubeconfig cannot be used, or nothing answers."""
    yield failed(codes.CLUSTER, "", problem)
    yield from (skipped(code, "", f"{codes.CLUSTER.name} failed") for code in _CODES if code is not codes.CLUSTER)


def checks_of(facts: ClusterFacts, now: datetime | None = None, *, before_install: bool) -> Iterator[Check]:
    version = facts.version.document
    if version is None:
        yield from unusable(facts.version.problem)
        return
    yield passed(codes.CLUSTER, "", str(version.get("gitVersion")))
    yield from _before(facts) if before_install else _of_api_service(facts, now or datetime.now(UTC))
    yield _front_proxy(facts)
    if before_install:
        yield _rights(facts)
    else:
        yield _may_read(facts.review)
    yield _gate(facts.dry_run)


def _before(facts: ClusterFacts) -> Iterator[Check]:
    found, name = facts.api_service, EXTERNAL.api_service
    if found.document is None and not found.is_absent:
        yield skipped(codes.HOLDER, name, found.problem)
    elif found.document is None:
        yield passed(codes.HOLDER, name, "nobody has it yet")
    else:
        state = api_service.state_of(EXTERNAL, found.document, _service(facts), None)
        yield judged(codes.HOLDER, name, state.text if state.is_others else "", Outcome.WARNING)


def _of_api_service(facts: ClusterFacts, now: datetime) -> Iterator[Check]:
    found, name = facts.api_service, EXTERNAL.api_service
    if found.document is None and not found.is_absent:
        yield from (skipped(code, name, found.problem) for code in (codes.HOLDER, codes.AUTHORITY, codes.REACHED))
        return
    service = _service(facts)
    state = api_service.state_of(EXTERNAL, found.document, service, None)
    if found.document is None or state.is_others:
        yield failed(codes.HOLDER, name, state.text)
        yield from (skipped(code, name, f"{codes.HOLDER.name} failed") for code in (codes.AUTHORITY, codes.REACHED))
        return
    yield passed(codes.HOLDER, name, f"Service {service.namespace}/{service.name}")
    is_certificate = "x509" in state.details
    bundle = api_service.bundle_fault(found.document, now)
    if is_certificate or bundle:
        yield failed(codes.AUTHORITY, name, state.details if is_certificate else bundle)
        yield skipped(codes.REACHED, name, f"{codes.AUTHORITY.name} failed")
    elif not state.is_registered:
        yield skipped(codes.AUTHORITY, name, f"{codes.REACHED.name} failed")
        yield failed(codes.REACHED, name, f"{state.text}: {state.details}")
    else:
        yield passed(codes.AUTHORITY, name)
        late = skipped(codes.REACHED, name, LATE.problem) if facts.discovery is LATE else None
        yield late or judged(codes.REACHED, name, facts.discovery.problem)


def _service(facts: ClusterFacts) -> api_service.Service:
    """A release of the chart has a name of its own, which contains the product's."""
    holder = ((facts.api_service.document or {}).get("spec") or {}).get("service") or {}
    if PRODUCT in holder.get("name", "") and facts.service.name == PRODUCT:
        return api_service.Service(holder["namespace"], holder["name"], holder.get("port", 443))
    return facts.service


def _front_proxy(facts: ClusterFacts) -> Check:
    found = facts.authentication
    if found.document is None and not found.is_absent:
        return skipped(codes.FRONT_PROXY, "", found.problem)
    try:
        AuthenticationFollower(lambda _: None).listed(iter([] if found.document is None else [found.document]))
    except AdapterError as error:
        return failed(codes.FRONT_PROXY, "", str(error))
    return passed(codes.FRONT_PROXY)


def _may_read(review: Answer) -> Check:
    if review.is_allowed is None:
        return skipped(codes.HPA_READS, "", review.problem)
    text = "" if review.is_allowed else "the ServiceAccount kube-system/horizontal-pod-autoscaler may not list them"
    return judged(codes.HPA_READS, "", text)


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
    if dry_run.status == 422:
        return warned(codes.GATE, "", "minReplicas 0 is refused: the feature gate HPAScaleToZero is off")
    return skipped(codes.GATE, "", dry_run.problem)
