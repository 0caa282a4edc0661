"""What may be done with an APIService."""

import base64
import datetime
from typing import Any

import pytest

from adapter.conditions import API_SERVICE
from adapter.errors import SettingsInvalid
from apiservice.api_group import EXTERNAL
from apiservice.registration.api_service import ApiServiceState, Service, service_of, state_of
from apiservice.tls.issuing import new_authority

NOW = datetime.datetime(2026, 11, 22, tzinfo=datetime.UTC)
OURS = Service("lag", "kafka-lag-adapter", 443)
AUTHORITY, OTHER = (new_authority(name, NOW, 1) for name in ("ours", "other"))
OWNED: dict[str, Any] = {"ownerReferences": [{"kind": "ClusterRole", "name": "kafka-lag-adapter-registration"}]}


def found(
    *,
    namespace: str = "lag",
    name: str = "kafka-lag-adapter",
    bundle: bytes = b"",
    **metadata: Any,  # noqa: ANN401 - JSON
) -> dict[str, Any]:
    spec = {"service": {"namespace": namespace, "name": name}, "caBundle": base64.b64encode(bundle).decode()}
    return {"metadata": metadata, "spec": spec}


def writers(*managers: str) -> list[dict[str, Any]]:
    return [{"manager": each, "fieldsV1": {"f:spec": {"f:caBundle": {}}}} for each in managers]


def looked_at(api_service: dict[str, Any] | None) -> ApiServiceState:
    return state_of(EXTERNAL, api_service, OURS, (AUTHORITY.certificate,))


@pytest.mark.parametrize(
    ("namespace", "name", "who"),
    [
        ("keda", "keda-operator-metrics-apiserver", "KEDA (Service keda/keda-operator-metrics-apiserver)"),
        ("monitoring", "prometheus-adapter", "prometheus-adapter (Service monitoring/prometheus-adapter)"),
        ("other", "kafka-lag-adapter", "the Service other/kafka-lag-adapter"),
    ],
)
def test_an_api_service_of_others_is_never_written(namespace: str, name: str, who: str) -> None:
    state = looked_at(found(namespace=namespace, name=name))

    assert f"belongs to {who}" in state.text
    assert not state.is_writable


def test_a_lost_one_must_not_be_deleted_with_us() -> None:
    assert looked_at(found(namespace="keda", **OWNED)).is_lost
    assert not looked_at(found(namespace="keda")).is_lost


def test_with_a_certificate_of_others_a_lost_one_is_reported_because_there_is_no_right_to_write_it() -> None:
    state = state_of(EXTERNAL, found(namespace="keda", **OWNED), OURS, None)

    assert not state.is_lost
    assert "first remove its ownerReferences" in state.text
    assert "ownerReferences" not in state_of(EXTERNAL, found(namespace="keda"), OURS, None).text


def test_one_without_a_service_belongs_to_kube_apiserver() -> None:
    assert "belongs to kube-apiserver itself" in looked_at({"metadata": {}, "spec": {}}).text


def test_none_at_all_is_created() -> None:
    assert looked_at(None).is_writable


def test_one_that_leads_to_us_is_adopted_with_an_empty_or_our_own_bundle() -> None:
    assert looked_at(found()).is_writable
    assert looked_at(found(bundle=AUTHORITY.pair.certificate)).is_writable
    assert not looked_at(found(bundle=OTHER.pair.certificate, managedFields=writers("helm"))).is_writable


def test_our_own_bundle_is_replaced_and_others_is_not() -> None:
    ours = found(bundle=OTHER.pair.certificate, managedFields=writers("kafka-lag-adapter"), **OWNED)
    theirs = found(bundle=OTHER.pair.certificate, managedFields=writers("keda"), **OWNED)

    assert looked_at(ours).is_writable
    assert not looked_at(theirs).is_writable
    assert "keda has written a caBundle" in looked_at(theirs).text


def test_with_files_the_bundle_is_others_work() -> None:
    assert state_of(EXTERNAL, found(bundle=b"any"), OURS, None) == ApiServiceState(
        API_SERVICE.message, is_registered=True
    )


def test_the_service_is_named_with_namespace_and_port_or_in_a_pod_by_default() -> None:
    assert service_of(None, None) is None
    assert service_of(None, "lag") == OURS
    assert service_of("other/mine:6443", "lag") == Service("other", "mine", 6443)
    for text in ("mine", "no_name", "a/b/c"):
        with pytest.raises(SettingsInvalid, match="--service"):
            service_of(text, None)
