"""What follows from answers of kube-apiserver that a real one does not give on request."""

from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from adapter.metrics.requirement import written
from apiservice.api_group import CUSTOM_V1BETA1, CUSTOM_V1BETA2, EXTERNAL, ApiGroup
from apiservice.autoscalers.autoscaler import selector_of
from apiservice.commands.cluster_facts import created
from apiservice.commands.doctor import checks_of as examined
from apiservice.doctor.check import Check, Outcome
from apiservice.doctor.facts import LATE, Answer, ClusterFacts, Replica, Way
from apiservice.doctor.kubernetes import checks_of
from apiservice.flags import DoctorFlags
from apiservice.registration.api_service import Service
from apiservice.tls.issuing import base64_of
from local.manifests.check import MANIFESTS, load
from tests.support.checks import broken, of, outcomes
from tests.support.kubernetes.authorities import Authority, config_map_data
from tests.support.kubernetes.hpas import expression

AUTHORITY, PROXIES = Authority("serving"), Authority("front-proxy-ca")
SERVICE = Service("kafka-lag-adapter", "kafka-lag-adapter", 443)
GOOD = Answer({"status": {"allowed": True}})
ALL_GOOD = "[+]ping ok\ninfo: values: Complete since 2026-11-28T10:00:00Z: all read\nreadyz check passed\n"
LIMITED = "[+]ping ok\nwarn: series: Limited since 2026-11-28T10:00:00Z: some are left out\nreadyz check passed\n"
UNREADY = (
    "[+]ping ok\n[-]values failed: reason withheld\n[+]shutdown ok\n"
    "warn: values: NotKnownYet since 2026-11-28T10:00:00Z: not known yet\nreadyz check failed\n"
)


def api_service(message: str = "", service: str = SERVICE.name, bundle: str | None = None) -> Answer:
    available = {"type": "Available", "status": "False" if message else "True", "message": message}
    place = {"namespace": SERVICE.namespace, "name": service, "port": 443}
    spec = {"service": place, "caBundle": base64_of(AUTHORITY.pem.encode()) if bundle is None else bundle}
    return Answer({"metadata": {}, "spec": spec, "status": {"conditions": [available]}})


def found(
    now: datetime | None = None,
    *,
    external: Answer | None = None,
    discovery: Answer | None = None,
    custom: Mapping[ApiGroup, Answer] | None = None,
    **parts: object,
) -> list[Check]:
    """`external` and `custom` are the answers for APIServices."""
    ways = {EXTERNAL: Way(external or api_service(), discovery or Answer({}))}
    ways |= {group: Way(answer, Answer({})) for group, answer in (custom or {}).items()}
    facts: dict[str, Any] = {
        "version": Answer({"gitVersion": "v1.37.0"}),
        "ways": ways,
        "authentication": Answer({"data": config_map_data(AUTHORITY, PROXIES)}),
        "reviews": {EXTERNAL: GOOD, CUSTOM_V1BETA2: GOOD},
        "dry_run": Answer({}),
        "replicas": (Replica("adapter-0", True, ALL_GOOD),),
        **parts,
    }
    return [*checks_of(ClusterFacts(SERVICE, **facts), now, before_install=False)]


def test_without_a_fault_all_checks_pass() -> None:
    assert {check.outcome for check in found()} == {Outcome.OK}


def test_a_cluster_without_a_ca_of_its_front_proxy_is_found() -> None:
    data = {key: text for key, text in config_map_data(AUTHORITY, PROXIES).items() if "requestheader-client" not in key}

    assert broken(found(authentication=Answer({"data": data}))) == {
        "KLA405": "requestheader-client-ca-file is missing, so no front proxy can be recognised"
    }


def test_a_cluster_without_settings_for_extension_servers_is_found() -> None:
    assert "there is no ConfigMap" in broken(found(authentication=Answer(None, "not found", 404)))["KLA405"]


@pytest.mark.parametrize(
    "words",
    [
        'Get "https://10.0.0.1:443/apis": remote error: tls: unknown certificate authority',
        'Get "https://10.0.0.1:443/apis": EOF',
        "bad status from https://10.0.0.1:443/apis: 401",
    ],
)
def test_a_front_proxy_that_the_adapter_refuses_is_found(words: str) -> None:
    checks = found(external=api_service(words))

    assert broken(checks) == {"KLA405": f"the adapter does not accept the front proxy's certificate: {words}"}
    assert outcomes(checks, Outcome.SKIPPED) == {"KLA404": "KLA405 failed"}


@pytest.mark.parametrize(
    ("replica", "outcome", "detail"),
    [
        (Replica("a", True, ALL_GOOD), Outcome.OK, ""),
        (
            Replica("a", True, LIMITED),
            Outcome.WARNING,
            "series: Limited since 2026-11-28T10:00:00Z: some are left out",
        ),
        (
            Replica("a", False, UNREADY),
            Outcome.FAILED,
            "it is not ready (values): values: NotKnownYet since 2026-11-28T10:00:00Z: not known yet",
        ),
        (Replica("a", False, "[-]\nreadyz check failed\n"), Outcome.FAILED, "it is not ready (): "),
        (Replica("a", True, problem="forbidden"), Outcome.SKIPPED, "forbidden"),
        (
            Replica("a", False, problem="forbidden"),
            Outcome.FAILED,
            "it is not ready, and it could not be asked why: forbidden",
        ),
    ],
)
def test_a_pod_is_judged_by_what_it_says_of_itself(replica: Replica, outcome: Outcome, detail: str) -> None:
    (check,) = of(found(replicas=(replica,)), "KLA409")

    assert (check.subject, check.outcome, check.detail) == ("pod a", outcome, detail)


def test_a_service_that_selects_no_pod_is_found() -> None:
    assert broken(found(replicas=())) == {"KLA409": "there is no pod that it selects"}


@pytest.mark.parametrize(
    ("problem", "outcome"),
    [
        ("spec.minReplicas: Invalid value: 0: must be greater than or equal to 1", Outcome.WARNING),
        ("spec.maxReplicas: Invalid value: 1: the policy of this cluster asks for more", Outcome.SKIPPED),
    ],
)
def test_only_a_refusal_of_zero_replicas_shows_that_the_gate_is_off(problem: str, outcome: Outcome) -> None:
    assert [check.outcome for check in of(found(dry_run=Answer(None, problem, 422)), "KLA408")] == [outcome]


def test_what_the_user_may_not_read_is_skipped_with_the_reason() -> None:
    forbidden = Answer(None, "the Kubernetes API server answered 403: forbidden", 403)
    checks = found(authentication=forbidden, external=forbidden, reviews={EXTERNAL: forbidden}, dry_run=forbidden)

    assert broken(checks) == {}
    assert set(outcomes(checks, Outcome.SKIPPED)) == {"KLA402", "KLA403", "KLA404", "KLA405", "KLA406", "KLA408"}


def test_discovery_that_there_was_no_time_for_is_skipped() -> None:
    checks = found(discovery=LATE)

    assert broken(checks) == {}
    assert outcomes(checks, Outcome.SKIPPED) == {"KLA404": LATE.problem}


@pytest.mark.parametrize(
    ("bundle", "after", "words"),
    [("bm90IFBFTQ==", timedelta(), ""), (None, timedelta(days=10_000), "every CA in its caBundle has expired")],
)
def test_a_bundle_that_can_verify_nothing_is_found(bundle: str | None, after: timedelta, words: str) -> None:
    checks = found(datetime.now(UTC) + after, external=api_service(bundle=bundle))

    assert words in broken(checks).get("KLA403", "")
    assert list(broken(checks)) == ["KLA403"]


def test_a_release_of_another_name_is_recognised_by_its_service() -> None:
    checks = found(external=api_service(service="lag-kafka-lag-adapter"))

    assert [check.detail for check in of(checks, "KLA402")] == ["Service kafka-lag-adapter/lag-kafka-lag-adapter"]


def test_each_version_of_custom_metrics_is_checked_beside_the_other_one() -> None:
    theirs = api_service(service="prometheus-adapter")
    checks = found(custom={CUSTOM_V1BETA2: api_service(), CUSTOM_V1BETA1: theirs})

    assert [check.subject for check in of(checks, "KLA404") if check.outcome is Outcome.OK] == [
        EXTERNAL.api_service,
        CUSTOM_V1BETA2.api_service,
    ]
    assert f"{CUSTOM_V1BETA2.api_service}, which HPAs prefer, leads to this adapter" in broken(checks)["KLA402"]


def test_a_release_beside_another_server_is_recognised_by_its_custom_metrics() -> None:
    ours = api_service(service="lag-kafka-lag-adapter")
    checks = found(external=api_service(service="keda"), custom={CUSTOM_V1BETA2: ours})

    assert [check.outcome for check in of(checks, "KLA402")] == [Outcome.WARNING, Outcome.OK]


def test_external_metrics_of_another_server_are_no_fault_where_the_settings_register_custom_ones() -> None:
    checks = found(external=api_service(service="keda"), custom={CUSTOM_V1BETA2: api_service()})
    holder = f"KEDA (Service {SERVICE.namespace}/keda)"

    assert broken(checks) == {}
    assert outcomes(checks, Outcome.WARNING)["KLA402"].startswith(f"{EXTERNAL.api_service} belongs to {holder}")
    assert outcomes(checks, Outcome.SKIPPED) == dict.fromkeys(("KLA403", "KLA404"), f"it belongs to {holder}")


def test_external_metrics_that_nobody_serves_are_a_fault_beside_custom_ones_too() -> None:
    checks = found(external=Answer(None, "not found", 404), custom={CUSTOM_V1BETA2: api_service()})

    assert "kube-apiserver serves no external metrics" in broken(checks)["KLA402"]


@pytest.mark.parametrize(
    ("group", "words"), [(EXTERNAL, "may not list external metrics"), (CUSTOM_V1BETA2, "may not get custom metrics")]
)
def test_an_hpa_controller_that_may_not_read_one_api_group_is_found(group: ApiGroup, words: str) -> None:
    reviews = {EXTERNAL: GOOD, CUSTOM_V1BETA2: GOOD, group: Answer({"status": {"allowed": False}})}
    checks = of(found(reviews=reviews), "KLA406")

    assert {check.subject: check.detail for check in checks if check.outcome is Outcome.FAILED} == {
        group.name: f"the ServiceAccount kube-system/horizontal-pod-autoscaler {words}"
    }


def test_the_rights_that_are_asked_for_are_those_that_the_manifests_need() -> None:
    documents = [each for each in load(MANIFESTS / "base") if "resources" not in each]
    needed = {(each["apiVersion"].rpartition("/")[0], each["kind"].lower()) for each in documents}
    singular = {(group, resource.removesuffix("s")) for group, resource, _ in created(SERVICE)}

    assert {(group, kind.removesuffix("y")) for group, kind in needed} == {
        (group, resource.removesuffix("ie")) for group, resource in singular
    }


def test_a_kubeconfig_that_does_not_exist_is_found(tmp_path: Path) -> None:
    checks = examined(DoctorFlags(kubeconfig=tmp_path / "absent", category=["kubernetes"]))

    assert broken(checks) == {"KLA401": f"kubeconfig {tmp_path / 'absent'} does not exist"}


def test_an_hpa_may_have_a_long_name_with_dots(tmp_path: Path) -> None:
    flags = DoctorFlags(kubeconfig=tmp_path / "absent", category=["kubernetes"], hpa=f"keda-hpa-{'x' * 60}.of-shop")

    assert list(broken(examined(flags))) == ["KLA401"]


def test_a_selector_is_sent_as_the_hpa_controller_sends_it() -> None:
    selector = {
        "matchLabels": {"group": "billing"},
        "matchExpressions": [
            expression("topic", "In", "orders", "mail"),
            expression("cluster", "NotIn", "test"),
            expression("partition", "Exists"),
            expression("bound", "DoesNotExist"),
        ],
    }

    text = written(selector_of(selector) or ())

    assert text == "group=billing,topic in (mail,orders),cluster notin (test),partition,!bound"
