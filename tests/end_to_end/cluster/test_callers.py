"""Who gets numbers, with the identities that a real cluster gives out; failures first."""

import json
from collections.abc import Mapping
from typing import Any

import urllib3
import yaml

from local.adapter import EXTERNAL_METRICS, Adapter
from local.certificates import Pair
from local.kubernetes.control_plane import ControlPlane, Manifest
from local.processes import wait_until
from tests.support.real.groups_to_read import LAG, path

AS_ADMIN = {"X-Remote-User": "admin", "X-Remote-Group": "system:masters"}
READ = path("default", LAG, "group%3Dmail")


def refused(answer: tuple[int, bytes]) -> dict[str, Any]:
    """The Status of an answer that gives nothing away."""
    status, body = answer
    document: dict[str, Any] = json.loads(body)
    assert status in {401, 403}
    assert document["kind"] == "Status"
    assert "items" not in document
    return document


def new_reader(plane: ControlPlane, namespace: str) -> str:
    """The token of a new ServiceAccount that may do nothing."""
    plane.apply(
        [{"apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"name": "reader", "namespace": namespace}}]
    )
    kubeconfig = yaml.safe_load(plane.kubeconfig_for_service_account(namespace, "reader").read_text())
    return str(kubeconfig["users"][0]["user"]["token"])


def binding_to_shipped_role(namespace: str) -> Manifest:
    """Lets `new_reader` read metrics in its namespace."""
    return {
        "apiVersion": "rbac.authorization.k8s.io/v1",
        "kind": "RoleBinding",
        "metadata": {"name": "reads-metrics", "namespace": namespace},
        "roleRef": {
            "apiGroup": "rbac.authorization.k8s.io",
            "kind": "ClusterRole",
            "name": "kafka-lag-adapter-metrics-reader",
        },
        "subjects": [{"kind": "ServiceAccount", "name": "reader", "namespace": namespace}],
    }


def through_kube_apiserver(plane: ControlPlane, where: str, headers: Mapping[str, str]) -> tuple[int, bytes]:
    with urllib3.PoolManager(ca_certs=str(plane.cluster_ca)) as pool:
        response = pool.request("GET", plane.url + where, headers=headers, retries=False, timeout=30.0)
        return response.status, response.data


def test_identity_headers_without_the_front_proxys_certificate_are_worth_nothing(adapter: Adapter) -> None:
    document = refused(adapter.get(READ, headers=AS_ADMIN))

    assert 'User "system:anonymous"' in document["message"]


def test_a_users_certificate_makes_nobody_an_administrator_by_headers(
    control_plane: ControlPlane, adapter: Adapter
) -> None:
    user = control_plane.issue("somebody")

    assert 'User "somebody"' in refused(adapter.get(READ, shown=user, headers=AS_ADMIN))["message"]


def test_the_proxys_name_on_a_certificate_of_the_clusters_authority_does_not_make_a_proxy(
    control_plane: ControlPlane, adapter: Adapter
) -> None:
    impostor = control_plane.issue("front-proxy-client")

    assert 'User "front-proxy-client"' in refused(adapter.get(READ, shown=impostor, headers=AS_ADMIN))["message"]


def test_another_name_on_a_certificate_of_the_proxys_authority_does_not_make_a_proxy(
    control_plane: ControlPlane, adapter: Adapter
) -> None:
    stranger = control_plane.front_proxy_authority.issue("somebody")

    refused(adapter.get(READ, shown=stranger, headers=AS_ADMIN))


def test_the_front_proxy_is_believed(control_plane: ControlPlane, adapter: Adapter) -> None:
    """Shows that what the tests above send would be enough."""
    status, body = adapter.get(READ, shown=control_plane.front_proxy, headers=AS_ADMIN)

    assert status == 200, body
    assert [item["value"] for item in json.loads(body)["items"]] == ["2"]


def test_an_administrators_certificate_needs_no_proxy(adapter: Adapter, administrator: Pair) -> None:
    assert adapter.get(READ, shown=administrator)[0] == 200


def test_a_made_up_token_is_unauthorized(adapter: Adapter) -> None:
    document = refused(adapter.get(READ, headers={"Authorization": "Bearer made.up.token"}))

    assert (document["code"], document["message"]) == (401, "Unauthorized")


def test_a_service_account_without_the_right_is_told_what_kube_apiserver_tells_it(
    control_plane: ControlPlane, adapter: Adapter, namespace: str
) -> None:
    headers = {"Authorization": f"Bearer {new_reader(control_plane, namespace)}", "Accept": "application/json"}
    for where in (path(namespace, LAG, "group%3Dmail"), path(namespace, "no-such-metric"), EXTERNAL_METRICS + "/x"):
        theirs = refused(through_kube_apiserver(control_plane, where, headers))
        ours = refused(adapter.get(where, headers=headers))

        assert ours == theirs


def test_a_service_account_bound_to_the_shipped_role_reads(
    control_plane: ControlPlane, adapter: Adapter, namespace: str
) -> None:
    headers = {"Authorization": f"Bearer {new_reader(control_plane, namespace)}"}
    where = path(namespace, LAG, "group%3Dmail")
    refused(adapter.get(where, headers=headers))

    control_plane.apply([binding_to_shipped_role(namespace)])

    wait_until(lambda: through_kube_apiserver(control_plane, where, headers)[0] == 200, "the right to count", 180)
    # A refusal is kept for 10 s.
    wait_until(lambda: adapter.get(where, headers=headers)[0] == 200, "the adapter to ask again", 180)
    refused(adapter.get(path("default", LAG, "group%3Dmail"), headers=headers))


def test_the_autoscaler_reads_and_nobody_does_in_its_name(control_plane: ControlPlane, adapter: Adapter) -> None:
    headers = {"X-Remote-User": "system:serviceaccount:kube-system:horizontal-pod-autoscaler"}

    assert adapter.get(READ, shown=control_plane.front_proxy, headers=headers)[0] == 200
    refused(adapter.get(READ, shown=control_plane.issue("somebody"), headers=headers))
