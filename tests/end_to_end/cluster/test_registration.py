"""Two replicas with the shipped permissions register themselves with a real kube-apiserver, renew their certificates,
and leave alone what others hold.
"""

import base64
import datetime
import re
import ssl
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any

import pytest
import urllib3
import yaml
from cryptography import x509
from cryptography.hazmat.primitives import hashes

from apiservice.api_group import API_GROUPS, CUSTOM, CUSTOM_V1BETA1, CUSTOM_V1BETA2, EXTERNAL
from apiservice.tls import issuing
from apiservice.tls.managed import Managed, managed_of
from local.adapter import API_SERVICE, API_SERVICES, EXTERNAL_METRICS, FILES, Adapter, external_name, items, process
from local.certificates import new_authority
from local.kafka.broker import Kafka
from local.kafka.tools import create_topic
from local.kubernetes.control_plane import ControlPlane, Manifest
from local.manifests.check import MANIFESTS, load, read
from local.manifests.shipped import NAME
from local.processes import free_port, wait_until
from tests.support.real.applied import HASTY, hand_over, remark_of

PLACE = "lagging"
SECRET = f"/api/v1/namespaces/{PLACE}/secrets/{NAME}-serving"
OWNER = f"/apis/rbac.authorization.k8s.io/v1/clusterroles/{NAME}-registration"
CUSTOM_READ = "namespaces/default/services/any/kafka_consumergroup_lag?metricLabelSelector=group%3Dregistered"
READ = f"{EXTERNAL_METRICS}/namespaces/default/kafka_consumergroup_lag?labelSelector=group%3Dregistered"
MERGE = "application/merge-patch+json"
KEDA = {"namespace": "keda", "name": "keda-operator-metrics-apiserver", "port": 443}
AS_ADMIN = {"X-Remote-User": "admin", "X-Remote-Group": "system:masters"}
DAY = datetime.timedelta(days=1)


@dataclass(frozen=True)
class Cluster:
    """`first` is the replica to which the Service leads."""

    plane: ControlPlane
    first: Adapter
    second: Adapter

    @property
    def api_service(self) -> Any:  # noqa: ANN401 - JSON
        return self.plane.get(API_SERVICE)

    @property
    def managed(self) -> Managed | None:
        return managed_of(self.plane.get(SECRET).get("data") or {})

    def write(self, managed: Managed) -> None:
        self.plane.ask("PATCH", SECRET, {"data": managed.data()}, content_type=MERGE)

    def patch(self, change: Manifest, manager: str) -> None:
        self.plane.ask("PATCH", f"{API_SERVICE}?fieldManager={manager}", change, content_type=MERGE)

    def wait_for_remark(self, words: str) -> None:
        def is_there() -> bool:
            remarks = [remark_of(replica) for replica in (self.first, self.second)]
            return all(words in remark and bool(words) == bool(remark) for remark in remarks)

        wait_until(is_there, f"the remark {words!r}", 180, alive=[self.first.process, self.second.process])

    def wait_until_registered(self) -> None:
        wait_until(lambda: self.plane.raw(READ)[0] == 200, "a read", 180, alive=[self.first.process])


@pytest.fixture(scope="module")
def cluster(plane: ControlPlane, guarded: Kafka, rig_home: Path) -> Iterator[Cluster]:
    create_topic(guarded, "registered", 1)
    settings = {
        "clusters": [{"name": "main", "bootstrapServers": guarded.bootstrap_servers.split(",")}],
        "collection": {"interval": "1s", "groups": {"include": ["registered"]}},
        "rules": [{"group": "registered", "topics": ["registered"]}],
    }
    port = free_port()
    documents = [{"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": PLACE}}, *installed(port)]
    plane.apply(documents)
    kubeconfig = plane.kubeconfig_for_service_account(PLACE, NAME)
    program = (sys.executable, "-c", HASTY)
    with ExitStack() as stack:

        def start(name: str, own_port: int) -> Adapter:
            home, service = rig_home / name, f"{PLACE}/{NAME}:{port}"
            running = process(home, settings, kubeconfig, port=own_port, service=service, program=program)
            return stack.enter_context(running)

        running = Cluster(plane, start("registered-1", port), start("registered-2", free_port()))
        running.wait_until_registered()
        wait_until(running.second.is_ready, "the second replica to be ready", 180, alive=[running.second.process])
        yield running
    plane.delete(documents)
    for group in API_GROUPS:
        plane.request("DELETE", f"{API_SERVICES}/{group.api_service}")


def installed(port: int) -> list[Manifest]:
    """The shipped objects without pods, with a Service that leads to this port."""
    found = [each for each in load(MANIFESTS / "base", PLACE) if each["kind"] != "Deployment"]
    return [{**each, "spec": external_name(port)} if names_the_service(each) else each for each in found]


def names_the_service(document: Manifest) -> bool:
    return bool(document["kind"] == "Service" and document["metadata"]["name"] == NAME)


def served(replica: Adapter) -> bytes:
    return ssl.get_server_certificate(("127.0.0.1", replica.port)).encode()


def connections(replica: Adapter, context: ssl.SSLContext) -> urllib3.HTTPSConnectionPool:
    name = f"{NAME}.{PLACE}.svc"
    return urllib3.HTTPSConnectionPool(
        "127.0.0.1", replica.port, ssl_context=context, server_hostname=name, assert_hostname=name
    )


def bundle(api_service: dict[str, Any]) -> str:
    return base64.b64decode(api_service["spec"]["caBundle"]).decode()


OURS = frozenset({("ours", "1.0"), ("available", "1.0")})


def states_of(replica: Adapter) -> frozenset[tuple[str, str]]:
    """What its metrics say of the APIService of external metrics."""
    name = f'kafka_lag_adapter_api_service{{api_service="{EXTERNAL.api_service}",state='
    return frozenset(re.findall(rf'^{re.escape(name)}"(\w+)"}} (\S+)$', metrics(replica), re.MULTILINE))


def test_the_replicas_register_themselves_with_one_certificate(cluster: Cluster) -> None:
    managed, found = cluster.managed, cluster.api_service
    assert managed is not None

    assert [item["value"] for item in items(cluster.plane.raw(READ)[1])] == ["0"]
    assert served(cluster.first) == served(cluster.second) == managed.serving.certificate
    wait_until(lambda: {states_of(each) for each in (cluster.first, cluster.second)} == {OURS}, "both to say so", 180)
    assert bundle(found).encode() == managed.bundle
    (owner,) = found["metadata"]["ownerReferences"]
    assert (owner["kind"], owner["name"]) == ("ClusterRole", f"{NAME}-registration")
    labels = cluster.plane.get(OWNER)["metadata"]["labels"]
    assert found["metadata"]["labels"] == labels | {"app.kubernetes.io/managed-by": NAME}
    cluster.wait_for_remark("")
    ends = dict(re.findall(r'_expiration_timestamp_seconds\{certificate="(\w+)"\} (\S+)', metrics(cluster.first)))
    assert float(ends["serving"]) == managed.certificate.not_valid_after_utc.timestamp()
    assert float(ends["authority"]) == managed.authorities[0].not_valid_after_utc.timestamp()


def metrics(replica: Adapter) -> str:
    return replica.get_plain("/metrics")[1].decode()


def aged(managed: Managed) -> Managed:
    """With a CA that has lived for nine tenths of its time: the same key and name, other dates."""
    authority = replace_dates(managed)
    return replace(managed, authorities=(authority,))


def replace_dates(managed: Managed) -> x509.Certificate:
    begin = datetime.datetime.now(datetime.UTC) - 900 * DAY
    old, key = managed.signer.certificate, managed.signer.key
    builder = x509.CertificateBuilder(old.issuer, old.subject, key.public_key(), x509.random_serial_number())
    builder = builder.not_valid_before(begin).not_valid_after(begin + 1000 * DAY)
    for extension in old.extensions:
        builder = builder.add_extension(extension.value, extension.critical)
    return builder.sign(key, hashes.SHA256())


@contextmanager
def reading(cluster: Cluster) -> Iterator[Callable[[], tuple[int, list[object]]]]:
    """Reads all the time through kube-apiserver, and from both replicas by new connections, which are verified with
    what the APIService says; yields a function that returns how many reads succeeded, and all that did not."""
    stopping, successes, failures = threading.Event(), list[object](), list[object]()

    def through_kube_apiserver() -> None:
        status, body = cluster.plane.raw(READ)
        assert status == 200, body

    def run(read: Callable[[], None]) -> None:
        while not stopping.is_set():
            try:
                read()
                successes.append(read)
            except Exception as error:  # noqa: BLE001 - each is a failed read
                failures.append(error)

    threads = [
        threading.Thread(target=run, args=(read,)) for read in (through_kube_apiserver, partial(directly, cluster))
    ]
    for thread in threads:
        thread.start()
    try:
        yield lambda: (len(successes), failures)
    finally:
        stopping.set()
        for thread in threads:
            thread.join()


def directly(cluster: Cluster) -> None:
    """Reads from both replicas. On a busy machine, the APIService may have another bundle by then."""
    trusted = bundle(cluster.api_service)
    context = ssl.create_default_context(cadata=trusted)
    for replica in (cluster.first, cluster.second):
        with connections(replica, context) as pool:
            try:
                assert pool.request("GET", "/livez", timeout=30.0, retries=False).status == 200
            except urllib3.exceptions.SSLError:
                if bundle(cluster.api_service) == trusted:
                    raise


def test_leaf_and_authority_are_renewed_under_load_without_a_failed_read(cluster: Cluster) -> None:
    before = cluster.managed
    assert before is not None
    with reading(cluster) as result:
        old_leaf = before.signer.issue(
            issuing.service_names(NAME, PLACE), datetime.datetime.now(datetime.UTC) - 70 * DAY, 90
        )
        cluster.write(replace(before, serving=old_leaf))
        wait_until(lambda: is_renewed(cluster, old_leaf), "the serving certificate to be renewed", 180)

        renewed = cluster.managed
        assert renewed is not None
        assert renewed.authorities == before.authorities
        cluster.write(aged(renewed))
        wait_until(lambda: len(authorities(cluster)) == 2, "both CAs in the APIService", 180)
        assert len(authorities(cluster)) == 2
        wait_until(lambda: is_renewed(cluster, renewed.serving), "a serving certificate of the new CA", 180)
        rotated = cluster.managed
        assert rotated is not None
        rotated.certificate.verify_directly_issued_by(rotated.authorities[0])
        assert rotated.authorities[0].public_key() != before.authorities[0].public_key()
        seen, _ = result()
        wait_until(lambda: result()[0] > seen + 50, "more reads", 180)
        count, failures = result()

    assert failures == []
    assert count > 100


def is_renewed(cluster: Cluster, old: issuing.Pair) -> bool:
    """Both replicas serve what is in the Secret, which is no longer `old`."""
    managed = cluster.managed
    served_now = {served(cluster.first), served(cluster.second)}
    return managed is not None and managed.serving != old and served_now == {managed.serving.certificate}


def authorities(cluster: Cluster) -> list[x509.Certificate]:
    return x509.load_pem_x509_certificates(bundle(cluster.api_service).encode())


def test_a_second_writer_of_the_bundle_is_reported_and_not_fought(cluster: Cluster) -> None:
    theirs = issuing.new_authority("theirs", datetime.datetime.now(datetime.UTC), 1).pair.certificate
    cluster.patch({"spec": {"caBundle": issuing.base64_of(theirs)}}, "keda-operator")

    cluster.wait_for_remark("keda-operator has written a caBundle with which kube-apiserver cannot verify it")
    assert bundle(cluster.api_service).encode() == theirs
    assert "keda-operator has written a caBundle" in cluster.first.process.log.read_text()

    cluster.patch({"spec": {"caBundle": None}}, "kubectl-patch")
    cluster.wait_for_remark("")
    managed = cluster.managed
    assert managed is not None
    assert bundle(cluster.api_service).encode() == managed.bundle
    cluster.wait_until_registered()


def test_an_api_service_of_others_is_left_alone_until_it_is_handed_over(cluster: Cluster) -> None:
    ours = cluster.api_service
    theirs = issuing.base64_of(issuing.new_authority("keda", datetime.datetime.now(datetime.UTC), 1).pair.certificate)
    cluster.patch({"spec": {"service": KEDA, "caBundle": theirs}}, "helm")
    cluster.wait_for_remark("belongs to KEDA (Service keda/keda-operator-metrics-apiserver)")

    assert "point the APIService to lagging/kafka-lag-adapter (docs/install.md, Taking over)" in remark_of(
        cluster.first
    )
    # Uninstalling this adapter no longer deletes it.
    wait_until(lambda: "ownerReferences" not in cluster.api_service["metadata"], "the owner to be removed", 180)
    assert cluster.api_service["spec"] == {**ours["spec"], "service": KEDA, "caBundle": theirs}

    hand_over(cluster.plane, PLACE, cluster.first.port)
    cluster.wait_for_remark("")
    cluster.wait_until_registered()
    assert cluster.api_service["metadata"]["ownerReferences"] == ours["metadata"]["ownerReferences"]


def test_a_changed_front_proxy_ca_is_taken_up_live(cluster: Cluster, tmp_path: Path) -> None:
    rotated = new_authority(tmp_path / "front-proxy", "rotated-front-proxy-ca")
    path = "/api/v1/namespaces/kube-system/configmaps/extension-apiserver-authentication"
    key = "requestheader-client-ca-file"
    present = cluster.plane.get(path)["data"][key]
    both = present + rotated.pair.certificate.read_text()
    proxy = rotated.issue("front-proxy-client")

    def is_believed() -> bool:
        context = ssl.create_default_context(cadata=bundle(cluster.api_service))
        context.load_cert_chain(proxy.certificate, proxy.key)
        with connections(cluster.first, context) as pool:
            try:
                return pool.request("GET", READ, headers=AS_ADMIN, timeout=30.0, retries=False).status == 200
            except urllib3.exceptions.HTTPError:
                return False

    assert not is_believed()
    cluster.plane.ask("PATCH", path, {"data": {key: both}}, content_type=MERGE)
    wait_until(is_believed, "the new front proxy to be believed", 180, alive=[cluster.first.process])
    assert cluster.plane.raw(READ)[0] == 200


def answers(cluster: Cluster, path: str, status: int) -> bool:
    return cluster.plane.raw(path)[0] == status


PROMETHEUS = {"name": "prometheus-adapter", "namespace": "monitoring", "port": 443}
FIRST, SECOND = CUSTOM_V1BETA1.api_service, CUSTOM_V1BETA2.api_service
BELONGS = f"{FIRST} belongs to prometheus-adapter (Service monitoring/prometheus-adapter)"


def test_custom_metrics_are_registered_once_they_are_asked_for_and_nobody_else_has_a_version(cluster: Cluster) -> None:
    patch = yaml.safe_load((MANIFESTS / "custom-metrics" / "patch-cluster-role-registration.yaml").read_text())
    cluster.plane.ask("PATCH", OWNER, patch, content_type="application/json-patch+json")
    shipped = read(MANIFESTS / FILES[CUSTOM_V1BETA1])
    theirs = {"service": PROMETHEUS, "insecureSkipTLSVerify": True}
    held = {**shipped, "metadata": {"name": FIRST}, "spec": {**shipped["spec"], **theirs}}
    cluster.plane.apply([held])
    before = cluster.plane.get(f"{API_SERVICES}/{FIRST}")["spec"]
    for replica in (cluster.first, cluster.second):
        with replica.settings.open("a") as file:
            file.write("customMetrics: {register: true}\n")

    cluster.wait_for_remark(f"{SECOND} is not created while others hold {FIRST}")
    cluster.wait_for_remark(BELONGS)
    assert cluster.plane.raw(f"{API_SERVICES}/{SECOND}")[0] == 404
    assert cluster.plane.get(f"{API_SERVICES}/{FIRST}")["spec"] == before
    assert cluster.plane.raw(READ)[0] == 200
    cluster.plane.delete([held])
    cluster.wait_for_remark("")
    for group in CUSTOM:
        wait_until(partial(answers, cluster, f"{group.path}/{CUSTOM_READ}", 200), group.version, 180)
        found = cluster.plane.get(f"{API_SERVICES}/{group.api_service}")
        assert found["metadata"]["ownerReferences"] == cluster.api_service["metadata"]["ownerReferences"]
        assert found["spec"]["caBundle"] == cluster.api_service["spec"]["caBundle"]
    assert cluster.plane.get("/apis/custom.metrics.k8s.io")["preferredVersion"]["version"] == "v1beta2"
    _leave_to_others(cluster, f"{API_SERVICES}/{FIRST}")


def _leave_to_others(cluster: Cluster, path: str) -> None:
    """Somebody takes the first version. HPAs still read custom metrics here, because they prefer the second one."""
    ours = cluster.plane.get(path)["spec"]
    change = {"service": PROMETHEUS, "insecureSkipTLSVerify": True, "caBundle": None}
    cluster.plane.ask("PATCH", f"{path}?fieldManager=helm", {"spec": change}, content_type=MERGE)

    cluster.wait_for_remark(f"{BELONGS}, but {SECOND}, which HPAs prefer, leads to this adapter")
    wait_until(lambda: "ownerReferences" not in cluster.plane.get(path)["metadata"], "the owner to be removed", 180)
    assert cluster.plane.get(path)["spec"]["service"] == PROMETHEUS
    assert cluster.plane.raw(f"{CUSTOM_V1BETA2.path}/{CUSTOM_READ}")[0] == 200

    back = {"service": ours["service"], "insecureSkipTLSVerify": None, "caBundle": ours["caBundle"]}
    cluster.plane.ask("PATCH", f"{path}?fieldManager=helm", {"spec": back}, content_type=MERGE)
    cluster.wait_for_remark("")
    wait_until(partial(answers, cluster, f"{CUSTOM_V1BETA1.path}/{CUSTOM_READ}", 200), "the first version", 180)


def test_uninstalling_removes_the_api_services_and_no_namespace_is_stuck(cluster: Cluster) -> None:
    owner = cluster.plane.get(OWNER)
    cluster.plane.ask("DELETE", OWNER)
    paths = [f"{API_SERVICES}/{group.api_service}" for group in API_GROUPS]
    for path in paths:
        wait_until(partial(answers, cluster, path, 404), f"{path} to be deleted", 180)
    cluster.wait_for_remark("NotChecked")
    namespace = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "goes-away"}}
    cluster.plane.apply([namespace])
    cluster.plane.delete([namespace])
    wait_until(lambda: cluster.plane.raw("/api/v1/namespaces/goes-away")[0] == 404, "a namespace to be deleted", 180)

    metadata = {key: owner["metadata"][key] for key in ("name", "labels")}
    cluster.plane.apply([{**owner, "metadata": metadata}])
    cluster.wait_until_registered()
    (reference,) = cluster.api_service["metadata"]["ownerReferences"]
    assert reference["uid"] == cluster.plane.get(OWNER)["metadata"]["uid"] != owner["metadata"]["uid"]
