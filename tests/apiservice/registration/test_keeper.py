"""A new CA signs the serving certificate only once kube-apiserver has it; and what is reported of the APIService."""

import base64
import contextlib
import datetime
import math
from typing import Any, cast

import pytest
from cryptography import x509

from adapter.conditions import Condition, ConditionStatus
from adapter.telemetry import Telemetry
from apiservice.api_group import API_GROUPS, CUSTOM, EXTERNAL, ApiGroup
from apiservice.auth.cluster_settings import ClusterUnreachable
from apiservice.cluster_api.objects import ClusterObjects
from apiservice.registration import api_service
from apiservice.registration.api_service import Service
from apiservice.registration.keeper import Registration
from apiservice.tls.certificates import ServingTls
from apiservice.tls.issuing import Pair, authority_name, new_authority, service_names
from apiservice.tls.managed import AUTHORITY_DAYS, Managed, renewed
from tests.adapter.test_telemetry import samples_of

OURS = Service("lag", "kafka-lag-adapter", 443)
SECRET = "/api/v1/namespaces/lag/secrets/kafka-lag-adapter-serving"
OWNER = "/apis/rbac.authorization.k8s.io/v1/clusterroles/kafka-lag-adapter-registration"
API_SERVICES = "/apis/apiregistration.k8s.io/v1/apiservices"
NOW = datetime.datetime.now(datetime.UTC)
DAY = datetime.timedelta(days=1)


def after(current: Managed | None, when: datetime.datetime) -> Managed:
    return renewed(current, authority_name(OURS.name), service_names(OURS.name, "lag"), when, is_spread=False)


OLD = after(after(None, NOW - AUTHORITY_DAYS * 2 / 3 * DAY - DAY), NOW - 10 * DAY)
BOTH = after(OLD, NOW - datetime.timedelta(minutes=2))
"""Its new CA is two minutes old; the old one has signed the serving certificate."""
FRESH = after(None, NOW)


class Objects:
    """The API server's objects by path; None: it refuses to read that one."""

    def __init__(self) -> None:
        self.kept: dict[str, dict[str, Any] | None] = {}
        self.answered_at = NOW

    def become(self, managed: Managed, api_service_now: dict[str, Any] | None) -> None:
        self.kept = {SECRET: {"data": managed.data()}, api_service.path_of(EXTERNAL): api_service_now}

    def read(self, path: str) -> dict[str, Any]:
        found = self.kept[path]
        if found is None:
            raise ClusterUnreachable("refused")
        return found

    def replace(self, path: str, document: dict[str, Any]) -> bool:
        self.kept[path] = document
        return True


class Tls:
    pair: Pair
    served = "the pair"

    def serve(self, pair: Pair, _files: object) -> None:
        self.pair = pair


def with_bundle(*authorities: bytes) -> dict[str, Any]:
    bundle = base64.b64encode(b"".join(authorities)).decode()
    writer = {"manager": "argocd", "fieldsV1": {"f:spec": {"f:caBundle": {}}}}
    spec = {"service": {"namespace": OURS.namespace, "name": OURS.name}, "caBundle": bundle}
    owner = {"kind": "ClusterRole", "name": OURS.owner}
    return {"metadata": {"managedFields": [writer], "ownerReferences": [owner]}, "spec": spec}


def registration(objects: Objects, tls: Tls, telemetry: Telemetry | None = None) -> Registration:
    return Registration(
        cast("ClusterObjects", objects),
        OURS,
        cast("ServingTls", tls),
        telemetry or Telemetry(),
        may_register=True,
    )


def served_in_the_end(api_service_now: dict[str, Any] | None) -> Pair:
    """After a round in which all was well, and two with a new CA in the Secret."""
    objects, tls = Objects(), Tls()
    kept = registration(objects, tls)
    objects.become(OLD, with_bundle(OLD.bundle))
    kept.look()
    objects.become(BOTH, api_service_now)
    for _ in range(2):
        with contextlib.suppress(ClusterUnreachable):
            kept.look()
    return tls.pair


def test_the_old_certificate_is_served_while_the_api_service_cannot_be_read() -> None:
    assert served_in_the_end(None) == BOTH.serving


def test_the_old_certificate_is_served_while_somebody_else_keeps_the_new_authority_out() -> None:
    assert served_in_the_end(with_bundle(OLD.bundle)) == BOTH.serving


def test_the_new_authority_signs_once_it_is_in_the_bundle() -> None:
    assert served_in_the_end(with_bundle(BOTH.bundle)) != BOTH.serving


def test_a_replica_whose_clock_is_months_ahead_renews_nothing_early() -> None:
    """The certificate is a day old by the clock of kube-apiserver, which checks it, and due by the machine's own."""
    managed = after(None, NOW - 70 * DAY)
    objects, tls = Objects(), Tls()
    objects.become(managed, with_bundle(managed.bundle))
    objects.answered_at = NOW - 69 * DAY

    registration(objects, tls).look()

    assert tls.pair == managed.serving


def test_a_certificate_that_is_not_valid_yet_is_renewed() -> None:
    managed = after(after(None, NOW - 30 * DAY), NOW + 40 * DAY)
    objects, tls = Objects(), Tls()
    objects.become(managed, with_bundle(managed.bundle))

    registration(objects, tls).look()

    assert x509.load_pem_x509_certificate(tls.pair.certificate).not_valid_before_utc < NOW


def reported(api_service_now: dict[str, Any] | None) -> Condition:
    objects, telemetry = Objects(), Telemetry()
    objects.become(FRESH, api_service_now)
    registration(objects, Tls(), telemetry).turn()
    return telemetry.conditions.current[-1]


def test_an_api_service_that_leads_here_is_registered_whoever_wrote_its_bundle() -> None:
    found = reported(with_bundle(FRESH.bundle, new_authority("another", NOW, 1).pair.certificate))

    assert (found.status, found.reason) == (ConditionStatus.TRUE, "Registered")
    assert found.message == "kube-apiserver reads metrics here; the APIService's caBundle was written by argocd"


def test_messages_of_the_api_server_are_for_the_log_alone() -> None:
    unreached = {"conditions": [{"type": "Available", "status": "False", "message": "no answer from 10.0.0.7"}]}
    found = reported(None), reported({**with_bundle(FRESH.bundle), "status": unreached})

    assert [(each.reason, each.message, each.details) for each in found] == [
        ("NotChecked", "v1beta1.external.metrics.k8s.io cannot be checked", "refused"),
        ("NotRegistered", "kube-apiserver does not reach this adapter", "no answer from 10.0.0.7"),
    ]


NAME = "v1beta1.external.metrics.k8s.io"
UNREACHED = {"conditions": [{"type": "Available", "status": "False"}]}
REACHED = {"conditions": [{"type": "Available", "status": "True"}]}
THEIRS = {"metadata": {}, "spec": {"service": {"namespace": "keda", "name": "keda"}}}


@pytest.mark.parametrize(
    ("found", "is_ours", "is_available"),
    [
        ({**with_bundle(FRESH.bundle), "status": REACHED}, 1, 1),
        ({**with_bundle(FRESH.bundle), "status": UNREACHED}, 1, 0),
        ({**THEIRS, "status": REACHED}, 0, 1),
        (None, math.nan, math.nan),
    ],
)
def test_a_metric_says_whether_the_api_service_is_ours_and_available(
    found: dict[str, Any] | None, is_ours: float, is_available: float
) -> None:
    """None: it cannot be read."""
    objects, telemetry = Objects(), Telemetry()
    objects.become(FRESH, found)
    registration(objects, Tls(), telemetry).turn()
    shown = samples_of(telemetry)

    values = [shown["kafka_lag_adapter_api_service", frozenset({NAME, state})] for state in ("ours", "available")]
    assert values == pytest.approx([is_ours, is_available], nan_ok=True)


class Registry(Objects):
    """APIServices that can be created, and who has them."""

    def __init__(self, **holders: str) -> None:
        super().__init__()
        self.kept = {SECRET: {"data": FRESH.data()}, OWNER: {"metadata": {"name": OURS.owner, "uid": "1"}}}
        self.refuses: set[str] = set()
        for version, namespace in holders.items():
            spec = {"service": {"namespace": namespace, "name": "prometheus-adapter"}}
            self.kept[f"{API_SERVICES}/{version}.custom.metrics.k8s.io"] = {"metadata": {}, "spec": spec}

    def read(self, path: str) -> dict[str, Any]:
        if path in self.refuses:
            raise ClusterUnreachable("refused")
        return cast("dict[str, Any]", self.kept.get(path))

    def apply(self, path: str, document: dict[str, Any], **_options: bool) -> bool:
        self.kept[path] = document
        return True

    def ours(self) -> set[str]:
        """The APIServices that lead to this adapter."""
        found = {path: each for path, each in self.kept.items() if path.startswith(API_SERVICES) and each}
        here = {path for path, each in found.items() if each["spec"]["service"]["namespace"] == OURS.namespace}
        return {path.rpartition("/")[2] for path in here}


def registered(registry: Registry, groups: tuple[ApiGroup, ...] = API_GROUPS) -> Condition:
    telemetry = Telemetry()
    kept = Registration(
        cast("ClusterObjects", registry),
        OURS,
        cast("ServingTls", Tls()),
        telemetry,
        may_register=True,
        groups=lambda: groups,
    )
    kept.turn()
    return telemetry.conditions.current[-1]


EVERY = {group.api_service for group in API_GROUPS}


def test_custom_metrics_are_registered_where_they_are_asked_for_and_nobody_has_them() -> None:
    plain, asked = Registry(), Registry()
    registered(plain, (EXTERNAL,))
    registered(asked)

    assert (plain.ours(), asked.ours()) == ({EXTERNAL.api_service}, EVERY)
    first, second = (asked.kept[api_service.path_of(group)] for group in CUSTOM)
    assert first is not None
    assert second is not None
    assert first["spec"]["versionPriority"] > second["spec"]["versionPriority"], "so v1beta2 is preferred"


@pytest.mark.parametrize("version", ["v1beta1", "v1beta2"])
def test_no_version_is_taken_from_a_server_that_holds_the_other_one(version: str) -> None:
    """HPAs would read the preferred version here, and miss that server's metrics."""
    registry = Registry(**{version: "monitoring"})
    found = registered(registry)
    other = "v1beta2" if version == "v1beta1" else "v1beta1"

    assert registry.ours() == {EXTERNAL.api_service}
    assert found.reason == "NotRegistered"
    assert f"{version}.custom.metrics.k8s.io belongs to prometheus-adapter" in found.message
    assert f"{other}.custom.metrics.k8s.io is not created while others hold {version}" in found.message


@pytest.mark.parametrize(
    ("version", "words"),
    [
        ("v1beta1", "v1beta2.custom.metrics.k8s.io, which HPAs prefer, leads to this adapter"),
        ("v1beta2", "HPAs read custom metrics there, not here"),
    ],
)
def test_where_others_take_a_version_later_it_is_said_where_hpas_read(version: str, words: str) -> None:
    registry = Registry()
    registered(registry)
    registry.kept |= Registry(**{version: "monitoring"}).kept
    found = registered(registry)

    assert registry.ours() == EVERY - {f"{version}.custom.metrics.k8s.io"}
    assert found.reason == "NotRegistered"
    assert f"{version}.custom.metrics.k8s.io belongs to prometheus-adapter" in found.message
    assert words in found.message


@pytest.mark.parametrize(("missing", "unknown"), [CUSTOM, CUSTOM[::-1]])
def test_no_version_is_created_until_it_is_known_who_holds_the_other_one(missing: ApiGroup, unknown: ApiGroup) -> None:
    registry = Registry()
    registry.refuses = {api_service.path_of(unknown)}
    found = registered(registry)

    assert registry.ours() == {EXTERNAL.api_service}
    assert found.reason == "NotChecked"
    assert f"{missing.api_service} is not created until it is known who holds {unknown.api_service}" in found.message


def test_a_missing_right_for_custom_metrics_keeps_external_ones_registered() -> None:
    registry = Registry()
    registry.refuses = {api_service.path_of(group) for group in CUSTOM}
    found = registered(registry)

    assert registry.ours() == {EXTERNAL.api_service}
    assert (found.reason, found.details) == ("NotChecked", "refused; refused")
    assert found.message.startswith("v1beta2.custom.metrics.k8s.io cannot be checked")
