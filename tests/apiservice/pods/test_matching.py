"""In which pod a member of a group runs."""

from typing import Any

import pytest

from adapter.cluster.groups import Client
from apiservice.pods.matching import pods_of
from apiservice.pods.pod import Pod, address_of, pod_of


def pod(name: str, *addresses: str) -> Pod:
    return Pod(name, {}, addresses)


def client(instance: str = "", client_id: str = "consumer-billing-1", host: str = "") -> Client:
    return Client("member", instance, client_id, host)


def pod_with(client: Client, *pods: Pod) -> str | None:
    return pods_of([client], pods).get(client)


WEB = (pod("web-1", "10.0.0.1"), pod("web-10", "10.0.0.10"), pod("web-1-0", "10.0.1.0"))


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("web-1", "web-1"),
        ("web-10", "web-10"),
        ("web-1-StreamThread-1-consumer", "web-1"),
        ("web-10_2", "web-10"),
        ("web-1-0-consumer", "web-1-0"),
        ("web-1.orders", "web-1"),
        ("web-100", None),
        ("web-1x", None),
        ("my-web-1", None),
        ("web", None),
        ("", None),
    ],
)
def test_an_id_is_a_pods_that_is_or_begins_with_its_name(text: str, found: str | None) -> None:
    assert pod_with(client(instance=text), *WEB) == found
    assert pod_with(client(client_id=text), *WEB) == found


def test_the_instance_id_comes_before_the_client_id_and_both_before_the_address() -> None:
    assert pod_with(client("web-10", "web-1", "/10.0.1.0"), *WEB) == "web-10"
    assert pod_with(client("", "web-1", "/10.0.1.0"), *WEB) == "web-1"
    assert pod_with(client("other", "another", "/10.0.1.0"), *WEB) == "web-1-0"


@pytest.mark.parametrize("host", ["/10.0.0.1", "10.0.0.1"])
def test_a_member_without_a_name_is_in_the_pod_with_its_address(host: str) -> None:
    assert pod_with(client(host=host), *WEB) == "web-1"
    assert pod_with(client(host=host), pod("web-1", "10.0.0.2")) is None


def test_two_pods_of_one_address_own_no_member() -> None:
    twins = pod("web-1", "10.0.0.1"), pod("web-2", "10.0.0.1", "fd00::2")

    assert pod_with(client(host="/10.0.0.1"), *twins) is None
    assert pod_with(client(host="/fd00:0:0:0:0:0:0:2"), *twins) == "web-2"


def test_an_address_that_a_pod_lists_twice_is_still_its_own() -> None:
    assert pod_with(client(host="/10.0.0.1"), pod("web-1", "10.0.0.1", "10.0.0.1")) == "web-1"


@pytest.mark.parametrize("host", ["", "/", "localhost/", "kafka-0"])
def test_what_is_no_address_matches_nothing(host: str) -> None:
    assert address_of(host) == ""
    assert pod_with(client(host=host), *WEB) is None


def manifest(**status: object) -> dict[str, Any]:
    metadata = {"name": "web-1", "labels": {"app": "web"}, "managedFields": [{"manager": "kubelet"}]}
    return {"metadata": metadata, "spec": {"nodeName": "node"}, "status": {"phase": "Running", **status}}


def test_a_pod_is_kept_with_its_labels_and_all_its_addresses() -> None:
    both = {"podIP": "10.0.0.1", "podIPs": [{"ip": "10.0.0.1"}, {"ip": "FD00:0::1"}]}

    assert pod_of(manifest(**both)) == Pod("web-1", {"app": "web"}, ("10.0.0.1", "fd00::1"))
    assert pod_of(manifest(podIP="10.0.0.1")).addresses == ("10.0.0.1",)
    assert pod_of({"metadata": {"name": "web-1"}}) == Pod("web-1", {}, ())


@pytest.mark.parametrize("phase", ["Succeeded", "Failed"])
def test_an_ended_pod_has_no_address_because_another_one_may_have_it_now(phase: str) -> None:
    assert pod_of(manifest(podIP="10.0.0.1", phase=phase)).addresses == ()


def test_a_pod_in_the_hosts_network_has_no_address_of_its_own() -> None:
    shared = manifest(podIP="10.0.0.1")
    shared["spec"]["hostNetwork"] = True

    assert pod_of(shared).addresses == ()
