"""What doctor finds between a real kube-apiserver, the adapter and HPAs: every fault by its own code."""

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Any

import pytest
import yaml

from apiservice.commands.doctor import checks_of
from apiservice.doctor.check import Category, Check, Outcome
from apiservice.doctor.hpas import NOT_IN_SETTINGS, UNNAMED
from apiservice.flags import DoctorFlags
from local.certificates import new_authority
from local.kafka.broker import Kafka
from local.kafka.tools import commit, create_topic, produce
from local.kubernetes.control_plane import ControlPlane, Manifest
from local.processes import wait_until
from tests.end_to_end.cluster.conftest import definition, serves
from tests.support.checks import broken, examined, of
from tests.support.real.groups_to_read import LAG, UNLABELLED_METRIC

GROUP, TOPIC = "mail", "read-orders"
"""At rest; the topic has 3 partitions."""
LAGGING = "ledger"
"""By more than its HPA's target."""
RARE = "examined-rarely"
KEDA = ("keda.sh/v1alpha1", "ScaledObject")
MESSAGES = 1000
BOTH = (Category.KUBERNETES, Category.HPA)
AVERAGE = {"type": "AverageValue", "averageValue": "4k"}
SECONDS = 120.0
pytestmark = pytest.mark.usefixtures("adapter")


def hpa(
    namespace: str,
    name: str,
    *,
    scales: str = "",
    group: str = GROUP,
    metric: str = LAG,
    target: Manifest = AVERAGE,
    most: int = 3,
    **annotations: str,
) -> Manifest:
    source = {"metric": {"name": metric, "selector": {"matchLabels": {"group": group}}}, "target": target}
    marks = {f"kafka-lag-adapter/{key.replace('_', '-')}": value for key, value in annotations.items()}
    return {
        "apiVersion": "autoscaling/v2",
        "kind": "HorizontalPodAutoscaler",
        "metadata": {"name": name, "namespace": namespace, "annotations": marks},
        "spec": {
            "scaleTargetRef": {"apiVersion": "apps/v1", "kind": "Deployment", "name": scales or name},
            "minReplicas": 1,
            "maxReplicas": most,
            "metrics": [{"type": "External", "external": source}],
        },
    }


def deployment(namespace: str, name: str, max_surge: int | str = "25%") -> Manifest:
    labels = {"app": name}
    containers = [{"name": "c", "image": "c"}]
    return {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": {"name": name, "namespace": namespace},
        "spec": {
            "replicas": 1,
            "selector": {"matchLabels": labels},
            "strategy": {"type": "RollingUpdate", "rollingUpdate": {"maxSurge": max_surge}},
            "template": {"metadata": {"labels": labels}, "spec": {"containers": containers}},
        },
    }


def found(
    plane: ControlPlane,
    kafka: Kafka,
    folder: Path,
    namespace: str,
    *categories: Category,
    **flags: Any,  # noqa: ANN401
) -> list[Check]:
    settings = {
        "clusters": [{"name": "main", "bootstrapServers": kafka.bootstrap_servers.split(",")}],
        "collection": {"groups": {"include": [GROUP, RARE]}},
    }
    flags = {"kubeconfig": plane.admin_kubeconfig, "namespace": namespace, **flags}
    return examined(folder, settings, *(categories or BOTH), **flags)


def of_hpa(checks: list[Check], code: str, place: str) -> Check:
    (check,) = (check for check in of(checks, code) if check.subject == f"HPA {place}")
    return check


def has_condition(plane: ControlPlane, namespace: str, name: str, kind: str, status: str) -> bool:
    path = f"/apis/autoscaling/v2/namespaces/{namespace}/horizontalpodautoscalers/{name}"
    conditions = plane.get(path).get("status", {}).get("conditions") or ()
    return any((each["type"], each["status"]) == (kind, status) for each in conditions)


def test_an_hpa_and_a_cluster_without_a_fault_pass_every_check(
    control_plane: ControlPlane, one_broker: Kafka, namespace: str, tmp_path: Path
) -> None:
    control_plane.apply([deployment(namespace, "good"), hpa(namespace, "good")])
    wait_until(
        lambda: has_condition(control_plane, namespace, "good", "ScalingActive", "True"), "the controller", SECONDS
    )

    checks = found(control_plane, one_broker, tmp_path, namespace)

    assert {(check.code.name, check.detail) for check in checks if check.outcome is Outcome.FAILED} == set()
    passed = {check.code.name for check in checks if check.outcome is Outcome.OK}
    assert passed >= {f"KLA40{number}" for number in (1, 2, 3, 4, 5, 6, 8)}
    assert passed >= {f"KLA50{number}" for number in (1, 2, 4, 5, 6, 8, 9)}


def test_every_fault_of_an_hpa_is_found_by_its_code(
    control_plane: ControlPlane, one_broker: Kafka, namespace: str, tmp_path: Path
) -> None:
    """All in one namespace, and in one run."""
    control_plane.apply(
        [
            deployment(namespace, "shared"),
            deployment(namespace, "surging", 1),
            deployment(namespace, "at-most"),
            hpa(namespace, "first", scales="shared"),
            hpa(namespace, "second", scales="shared"),
            hpa(namespace, "surging", most=20),
            hpa(namespace, "by-value", target={"type": "Value", "value": "4k"}),
            hpa(namespace, "too-many", most=4),
            hpa(namespace, "at-most", group=LAGGING, most=1, target={**AVERAGE, "averageValue": "100"}),
            hpa(namespace, "unknown", group="nobody"),
            hpa(namespace, "asleep", scale_to_zero="true"),
        ]
    )
    wait_until(
        lambda: has_condition(control_plane, namespace, "by-value", "AbleToScale", "False"), "the controller", SECONDS
    )
    wait_until(
        lambda: has_condition(control_plane, namespace, "at-most", "ScalingLimited", "True"), "its limit", SECONDS
    )

    checks = found(control_plane, one_broker, tmp_path, namespace)

    def shown(code: str, name: str) -> tuple[Outcome, str]:
        check = of_hpa(checks, code, f"{namespace}/{name}")
        return check.outcome, check.detail

    outcome, why = shown("KLA502", "unknown")
    assert outcome is Outcome.FAILED
    assert "answered 404" in why
    assert "'nobody'" in why
    outcome, why = shown("KLA503", "by-value")
    assert outcome is Outcome.FAILED, "its Deployment does not exist"
    assert "AbleToScale is False: FailedGetScale" in why
    outcome, why = shown("KLA503", "at-most")
    assert outcome is Outcome.WARNING
    assert "ScalingLimited is True: TooManyReplicas" in why
    assert shown("KLA504", "by-value") == (Outcome.WARNING, f"{LAG} has a target of type Value")
    assert shown("KLA504", "first") == (Outcome.OK, "")
    assert shown("KLA505", "too-many") == (Outcome.WARNING, "maxReplicas is 4, and 3 can have a partition")
    assert shown("KLA505", "first") == (Outcome.OK, "")
    assert shown("KLA506", "first") == (Outcome.FAILED, "Deployment shared is also scaled by HPA second")
    assert shown("KLA506", "too-many") == (Outcome.OK, "")
    outcome, why = shown("KLA508", "surging")
    assert outcome is Outcome.WARNING
    assert "with maxSurge 1, an update at 9 replicas" in why
    assert shown("KLA509", "asleep") == (Outcome.FAILED, "the settings do not allow it")


def test_an_hpa_that_is_not_there_and_one_on_other_metrics_are_found(
    control_plane: ControlPlane, one_broker: Kafka, namespace: str, tmp_path: Path
) -> None:
    control_plane.apply([hpa(namespace, "misspelt", metric="kafka_consumergroup_lags")])

    absent = found(control_plane, one_broker, tmp_path, namespace, Category.HPA, hpa="absent")
    misspelt = found(control_plane, one_broker, tmp_path, namespace, Category.HPA, hpa="misspelt")

    assert of_hpa(absent, "KLA501", f"{namespace}/absent").outcome is Outcome.FAILED
    assert "not found" in of_hpa(absent, "KLA501", f"{namespace}/absent").detail
    check = of_hpa(misspelt, "KLA501", f"{namespace}/misspelt")
    assert (check.outcome, check.detail) == (
        Outcome.FAILED,
        f"it reads kafka_consumergroup_lags; did you mean '{LAG}'?",
    )


def test_a_named_metric_of_the_running_adapter_is_known_also_without_the_settings(
    control_plane: ControlPlane, namespace: str
) -> None:
    by_value = {"type": "Value", "value": "4k"}
    control_plane.apply([hpa(namespace, "named", metric=UNLABELLED_METRIC, target=by_value)])

    flags = DoctorFlags(kubeconfig=control_plane.admin_kubeconfig, namespace=namespace, category=["hpa"])
    checks = checks_of(flags)

    assert of_hpa(checks, "KLA501", f"{namespace}/named").outcome is Outcome.OK
    unknown = of_hpa(checks, "KLA504", f"{namespace}/named")
    assert (unknown.outcome, unknown.detail) == (Outcome.SKIPPED, f"it reads {UNLABELLED_METRIC}; {UNNAMED}")


def test_a_metric_of_the_running_adapter_that_the_settings_lack_may_be_the_upstreams(
    control_plane: ControlPlane, one_broker: Kafka, namespace: str, tmp_path: Path
) -> None:
    by_value = {"type": "Value", "value": "4k"}
    control_plane.apply([hpa(namespace, "named", metric=UNLABELLED_METRIC, target=by_value)])

    checks = found(control_plane, one_broker, tmp_path, namespace, Category.HPA, hpa="named")

    unknown = of_hpa(checks, "KLA504", f"{namespace}/named")
    assert (unknown.outcome, unknown.detail) == (Outcome.SKIPPED, f"it reads {UNLABELLED_METRIC}; {NOT_IN_SETTINGS}")


def test_a_scaled_object_of_keda_on_the_same_target_is_found(
    control_plane: ControlPlane, one_broker: Kafka, namespace: str, tmp_path: Path
) -> None:
    """The object and the HPA that KEDA makes of it, without KEDA. kube-controller-manager would delete the HPA if the
    object that owns it did not exist."""
    control_plane.apply([definition(*KEDA)])
    wait_until(partial(serves, control_plane, KEDA[0], (KEDA[1],)), "KEDA's kind", SECONDS)
    metadata = {"name": "consumer-scaler", "namespace": namespace}
    spec = {"scaleTargetRef": {"name": "shared"}, "triggers": [{"type": "kafka", "metadata": {"topic": TOPIC}}]}
    scaled_object = {"apiVersion": KEDA[0], "kind": KEDA[1], "metadata": metadata, "spec": spec}
    control_plane.apply([scaled_object])
    uid = control_plane.get(control_plane.path_of(scaled_object))["metadata"]["uid"]
    owner = {"apiVersion": KEDA[0], "kind": KEDA[1], "name": "consumer-scaler", "uid": uid, "controller": True}
    theirs = hpa(namespace, "keda-hpa-consumer-scaler", scales="shared", metric="s0-kafka-read-orders")
    theirs = {**theirs, "metadata": {**theirs["metadata"], "ownerReferences": [owner]}}
    control_plane.apply([deployment(namespace, "shared"), theirs, hpa(namespace, "ours", scales="shared")])

    check = of_hpa(found(control_plane, one_broker, tmp_path, namespace), "KLA506", f"{namespace}/ours")

    assert (check.outcome, check.detail) == (
        Outcome.FAILED,
        "Deployment shared is also scaled by KEDA's ScaledObject consumer-scaler",
    )


@pytest.mark.parametrize(
    ("changed", "words"),
    [
        ({"server": "https://127.0.0.1:1"}, "Connection refused"),
        ({"certificate-authority": "another"}, "the CA in its kubeconfig"),
        ({"user": {"token": "a-wrong-one"}}, "answered 401"),
    ],
    ids=["port", "ca", "token"],
)
def test_a_kube_apiserver_that_cannot_be_asked_is_found(
    control_plane: ControlPlane, tmp_path: Path, changed: dict[str, Any], words: str
) -> None:
    document = yaml.safe_load(control_plane.admin_kubeconfig.read_text())
    other = new_authority(tmp_path / "other", "another cluster").pair.certificate
    changed = {key: str(other) if value == "another" else value for key, value in changed.items()}
    document["users"][0]["user"] = changed.pop("user", document["users"][0]["user"])
    document["clusters"][0]["cluster"] |= changed
    file = tmp_path / "kubeconfig"
    file.write_text(yaml.safe_dump(document))

    lacking = broken(checks_of(DoctorFlags(kubeconfig=file)))

    assert list(lacking) == ["KLA401"]
    assert words in lacking["KLA401"]


@contextmanager
def committing(kafka: Kafka, group: str, topic: str, step: int, seconds: float) -> Iterator[None]:
    """Commits so many messages more each time, with so long a pause before the next one."""
    ended = threading.Event()

    def commit_on() -> None:
        offset = 0
        while not ended.wait(seconds):
            offset = min(offset + step, MESSAGES)
            commit(kafka, group, {(topic, 0): offset})

    thread = threading.Thread(target=commit_on)
    thread.start()
    try:
        yield
    finally:
        ended.set()
        thread.join()


def test_commits_that_are_rarer_than_a_targets_worth_of_work_are_found(
    control_plane: ControlPlane, one_broker: Kafka, namespace: str, tmp_path: Path
) -> None:
    group = topic = RARE
    create_topic(one_broker, topic)
    produce(one_broker, topic, MESSAGES)
    commit(one_broker, group, {(topic, 0): 0})
    control_plane.apply([hpa(namespace, "rarely", group=group, target={**AVERAGE, "averageValue": "1"})])

    def check() -> Check:
        checks = found(control_plane, one_broker, tmp_path, namespace, Category.HPA, after=10.0)
        return of_hpa(checks, "KLA507", f"{namespace}/rarely")

    outcome = [Outcome.SKIPPED]
    with committing(one_broker, group, topic, 10, 1.5):

        def is_watched() -> bool:
            # On a busy machine, fewer than three commits may be seen.
            outcome.append(check().outcome)
            return outcome[-1] is not Outcome.SKIPPED

        wait_until(is_watched, "three commits to be seen", SECONDS)

    assert outcome[-1] is Outcome.WARNING


def test_a_user_without_rights_learns_which_are_missing_and_one_with_them_that_none_is(
    control_plane: ControlPlane, one_broker: Kafka, namespace: str, tmp_path: Path
) -> None:
    powerless = control_plane.kubeconfig_for_service_account(namespace, "default")

    lacking = found(control_plane, one_broker, tmp_path, namespace, pre=True, kubeconfig=powerless)
    having = found(control_plane, one_broker, tmp_path, namespace, pre=True)

    (check,) = of(lacking, "KLA407")
    assert check.outcome is Outcome.FAILED
    assert check.detail.startswith("may not create clusterroles, clusterrolebindings, rolebindings in kube-system")
    (check,) = of(lacking, "KLA402")
    assert check.outcome is Outcome.SKIPPED, "it may not read it"
    assert [each.outcome for each in of(having, "KLA407")] == [Outcome.OK]
    assert {each.outcome for each in having if each.code.category is Category.HPA} == {Outcome.SKIPPED}
