"""Another server of external metrics behind the adapter, on a real kube-apiserver: from when it holds the
APIService until it is gone."""

import base64
import json
import signal
import ssl
import statistics
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest
import urllib3
import yaml

from apiservice.api_group import CUSTOM
from local.adapter import API_SERVICE, API_SERVICES, external_name, process
from local.kafka.broker import Kafka
from local.kafka.tools import create_topic
from local.kubernetes.control_plane import ControlPlane, Manifest
from local.kubernetes.other_adapter import CUSTOM_METRICS, OURS, PAGE, QUEUE, REQUESTS, OtherAdapter, other_adapter
from local.kubernetes.other_adapter import NAME as OTHER
from local.manifests.check import MANIFESTS, load, read
from local.manifests.shipped import NAME, placed
from local.processes import free_port, wait_until
from tests.support.real.beside_upstream import (
    BINDING,
    PLACE,
    PROGRAM,
    READ,
    THEIR_PLACE,
    THEIRS,
    WAIT_SECONDS,
    Cluster,
    autoscaler,
    commands,
    consumer,
    held_by,
    led_to,
    namespace_of,
    path,
    state,
    status_of,
    values,
)
from tests.support.real.repeated_reads import repeated, wait_for_more


@pytest.fixture(scope="module")
def theirs(plane: ControlPlane, rig_home: Path) -> Iterator[OtherAdapter]:
    """The other server, which holds the APIService."""
    plane.apply([namespace_of(THEIR_PLACE)])
    with other_adapter(plane, rig_home / "other-adapter", THEIR_PLACE) as other:
        metadata = {"name": OTHER, "namespace": THEIR_PLACE}
        service: Manifest = {
            "apiVersion": "v1",
            "kind": "Service",
            "metadata": metadata,
            "spec": external_name(other.port),
        }
        plane.apply([service, held_by(other)])
        wait_until(
            lambda: plane.raw(THEIRS)[0] == 200, "the other server's metric", WAIT_SECONDS, alive=[other.process]
        )
        yield other
        plane.request("DELETE", API_SERVICE)


@pytest.fixture(scope="module")
def installed(plane: ControlPlane, one_broker: Kafka, theirs: OtherAdapter, rig_home: Path) -> Iterator[Cluster]:
    create_topic(one_broker, "beside", 1)
    home = rig_home / "beside"
    home.mkdir()
    upstream = {"service": OTHER, "namespace": THEIR_PLACE, "port": theirs.port, "caFile": str(home / "ca.crt")}
    settings = {
        "clusters": [{"name": "main", "bootstrapServers": one_broker.bootstrap_servers.split(",")}],
        "collection": {"interval": "1s", "groups": {"include": ["beside"]}},
        "rules": [{"group": "beside", "topics": ["beside"]}],
        "upstream": upstream,
    }
    port = free_port()
    found = [each for each in load(MANIFESTS / "base", PLACE) if each["kind"] != "Deployment"]
    commands(plane, "kubectl create namespace", 0, home)
    documents = [namespace_of(PLACE), *(led_to(port, each) for each in found), placed(read(BINDING), PLACE)]
    plane.apply(documents)
    assert set(plane.get(f"/api/v1/namespaces/{PLACE}/secrets/{NAME}-upstream")["data"].values()) == {theirs.ca_bundle}
    kubeconfig = plane.kubeconfig_for_service_account(PLACE, NAME)
    with ExitStack() as stack:
        program, service = (sys.executable, "-c", PROGRAM), f"{PLACE}/{NAME}:{port}"
        running = process(home, settings, kubeconfig, port=port, service=service, program=program)
        yield Cluster(plane, theirs, stack.enter_context(running))
    plane.delete(documents)


@pytest.fixture
def cluster(installed: Cluster) -> Cluster:
    """The adapter holds the APIService, and has the other server's metrics in its list."""
    if installed.plane.get(API_SERVICE)["spec"]["service"]["namespace"] != PLACE:
        wait_until(
            installed.adapter.is_ready, "the adapter to be ready", WAIT_SECONDS, alive=[installed.adapter.process]
        )
        commands(installed.plane, "CA=", installed.adapter.port, installed.plane.home)
    installed.wait_for(READ, 200)
    installed.wait_for(THEIRS, 200)
    wait_until(lambda: QUEUE in installed.listed(), "the other server's metrics in the list", WAIT_SECONDS)
    return installed


def test_the_api_service_moves_without_a_failed_read_of_the_other_servers_metric(installed: Cluster) -> None:
    cluster = installed

    def reads_there() -> bool:
        """Another test may have moved it before."""
        return cluster.plane.raw(THEIRS)[0] == 200 and cluster.other.seen[-1]["user"] == "admin"

    cluster.plane.apply([held_by(cluster.other)])
    wait_until(reads_there, "kube-apiserver to read from the other server", WAIT_SECONDS)
    since = len(cluster.other.seen)
    wait_until(cluster.adapter.is_ready, "the adapter to be ready", WAIT_SECONDS, alive=[cluster.adapter.process])
    cluster.wait_for_remark(f"belongs to the Service {THEIR_PLACE}/{OTHER}", "api-service")
    cluster.wait_for_remark("")
    with repeated(lambda: cluster.plane.raw(THEIRS)) as answers:
        wait_for_more(answers)
        commands(cluster.plane, "CA=", cluster.adapter.port, cluster.plane.home)
        cluster.wait_for(READ, 200)
        wait_for_more(answers)

    assert {values(answer) == [(QUEUE, "7500m")] for answer in answers} == {True}
    users = [read["user"] for read in cluster.other.seen[since:]]
    assert users[0] == "admin"
    assert users[-1] == f"system:serviceaccount:{PLACE}:{NAME}"


def test_a_token_for_the_other_server_alone_would_be_refused(cluster: Cluster) -> None:
    """Servers built on Kubernetes' library have tokens reviewed without naming an audience."""
    accounts = f"/api/v1/namespaces/{PLACE}/serviceaccounts/{NAME}/token"
    is_authenticated: list[bool] = []
    for audiences in ([], [OTHER]):
        token = cluster.plane.ask("POST", accounts, {"spec": {"audiences": audiences}})["status"]["token"]
        review = {"apiVersion": "authentication.k8s.io/v1", "kind": "TokenReview", "spec": {"token": token}}
        reviewed = cluster.plane.ask("POST", "/apis/authentication.k8s.io/v1/tokenreviews", review)
        is_authenticated.append(reviewed["status"].get("authenticated", False))

    assert is_authenticated == [True, False]


def test_hpas_on_the_other_servers_metric_scale_and_move_one_at_a_time(cluster: Cluster) -> None:
    for name in ("first", "second"):
        cluster.plane.apply([consumer(name), autoscaler(name, QUEUE, queue="jobs")])
    wait_until(
        lambda: [state(cluster, name)[:2] for name in ("first", "second")] == [(QUEUE, 4)] * 2,
        "both HPAs to scale by the other server's metric",
        WAIT_SECONDS,
    )
    before = state(cluster, "second")

    cluster.plane.apply([autoscaler("first", OURS, group="beside")])
    wait_until(lambda: state(cluster, "first")[:2] == (OURS, 1), "one HPA to scale by ours", WAIT_SECONDS)

    assert state(cluster, "first")[2][0] == "True"
    assert state(cluster, "second") == before
    assert before[2][0] == "True"
    cluster.plane.delete([*map(consumer, ("first", "second")), *(autoscaler(n, OURS) for n in ("first", "second"))])


def asked_for(cluster: Cluster, target: str) -> list[dict[str, Any]]:
    """What the other server has seen of reads of this target. HPAs that are being deleted may still read others."""
    return [read for read in cluster.other.seen if read["path"] == target]


def test_the_other_server_is_asked_for_the_same_in_the_adapters_name_alone(cluster: Cluster) -> None:
    (item,) = json.loads(cluster.plane.raw(THEIRS)[1])["items"]
    seen = asked_for(cluster, THEIRS)[-1]

    assert item["metricLabels"] == {"selector": "queue=jobs,kind in (a,b),!c,scaledobject.keda.sh/name=jobs"}
    assert seen["headers"] == ["accept", "accept-encoding", "authorization", "host", "user-agent"]


def test_a_failure_of_the_other_server_passes_as_it_is(cluster: Cluster) -> None:
    assert status_of(cluster.plane.raw(path("no-such-metric"))) == (404, "other: there is no no-such-metric")


def test_a_reply_of_another_kind_is_a_503_that_names_the_other_server(cluster: Cluster) -> None:
    code, message = status_of(cluster.plane.raw(path(PAGE)))

    assert code == 503
    assert message == f"the upstream {THEIR_PLACE}/{OTHER} sent no reply of the metrics API (status 200)"


def test_our_metrics_win_and_each_name_is_listed_once(cluster: Cluster) -> None:
    cluster.wait_for_remark("")
    listed = cluster.listed()

    assert listed.count(OURS) == 1
    assert {QUEUE, PAGE} < set(listed)
    assert values(cluster.plane.raw(READ)) == [(OURS, "0")]
    assert OURS not in {read["path"].partition("?")[0].rpartition("/")[2] for read in cluster.other.seen}


def test_who_may_not_read_is_refused_before_the_other_server_is_asked(cluster: Cluster) -> None:
    """Asked as kube-apiserver would ask, if it had not refused this user itself."""
    before = len(asked_for(cluster, THEIRS))
    context = ssl.create_default_context(
        cadata=base64.b64decode(cluster.plane.get(API_SERVICE)["spec"]["caBundle"]).decode()
    )
    context.load_cert_chain(*cluster.plane.front_proxy)
    name = f"{NAME}.{PLACE}.svc"
    with urllib3.HTTPSConnectionPool(
        "127.0.0.1", cluster.adapter.port, ssl_context=context, server_hostname=name, assert_hostname=name
    ) as pool:
        answers = {
            user: pool.request("GET", THEIRS, headers={"X-Remote-User": user, "X-Remote-Group": group})
            for user, group in (("somebody", "people"), ("admin", "system:masters"))
        }

    assert answers["admin"].status == 200
    assert len(asked_for(cluster, THEIRS)) == before + 1
    code, message = status_of((answers["somebody"].status, answers["somebody"].data))
    assert code == 403
    assert 'User "somebody" cannot list resource' in message


def test_without_its_right_the_adapter_gets_a_403_that_names_its_service_account(cluster: Cluster) -> None:
    binding = [placed(read(BINDING), PLACE)]
    cluster.plane.delete(binding)
    cluster.wait_for(THEIRS, 403, f"other: system:serviceaccount:{PLACE}:{NAME} may not list {QUEUE} in default")
    cluster.plane.apply(binding)
    cluster.wait_for(THEIRS, 200)


def test_a_frozen_server_delays_none_of_our_reads(cluster: Cluster) -> None:
    durations: list[float] = []
    refusals: list[tuple[int, str]] = []

    def read_theirs() -> None:
        begun = time.monotonic()
        refusals.append(status_of(cluster.plane.raw(THEIRS)))
        durations.append(time.monotonic() - begun)

    readers = [threading.Thread(target=read_theirs) for _ in range(20)]
    cluster.other.process.send(signal.SIGSTOP)
    try:
        for reader in readers:
            reader.start()
        ours: list[float] = []
        while any(reader.is_alive() for reader in readers):
            begun = time.monotonic()
            assert values(cluster.plane.raw(READ)) == [(OURS, "0")]
            ours.append(time.monotonic() - begun)
        for reader in readers:
            reader.join()
        words = f"the upstream {THEIR_PLACE}/{OTHER} does not answer in time"
        assert {(code, message.startswith(words)) for code, message in refusals} == {(503, True)}
        # Ours did not wait for theirs, or one or two would have been answered meanwhile.
        assert len(ours) > 5
        assert statistics.median(ours) < max(durations) / 5
        # Now it is asked once a second, and others are refused at once.
        cluster.wait_for(THEIRS, 503, "does not answer in time; it is asked again every")
        cluster.wait_for_remark("requests to it fail; the log has details")
        assert cluster.statuses() == ["false"]
    finally:
        cluster.other.process.send(signal.SIGCONT)
    cluster.wait_for(THEIRS, 200)
    cluster.wait_for_remark("")
    assert cluster.statuses() == ["true"]


def test_the_upstream_can_be_taken_out_of_the_settings_and_back_in_while_the_adapter_runs(cluster: Cluster) -> None:
    whole: dict[str, Any] = yaml.safe_load(cluster.adapter.settings.read_text())
    without = {key: value for key, value in whole.items() if key != "upstream"}
    cluster.adapter.settings.write_text(yaml.safe_dump(without))
    cluster.wait_for(THEIRS, 404, f"no metric '{QUEUE}' is served")
    wait_until(lambda: QUEUE not in cluster.listed(), "a list without the other server's metrics", WAIT_SECONDS)
    wait_until(lambda: not cluster.statuses(), "no condition of an upstream", WAIT_SECONDS)
    cluster.adapter.settings.write_text(yaml.safe_dump(whole))
    cluster.wait_for(THEIRS, 200)


def test_custom_metrics_of_another_server_are_read_through_the_adapter_beside_ours(cluster: Cluster) -> None:
    for role in ("registration", "metrics-reader"):
        patch = yaml.safe_load((MANIFESTS / "custom-metrics" / f"patch-cluster-role-{role}.yaml").read_text())
        path = f"/apis/rbac.authorization.k8s.io/v1/clusterroles/{NAME}-{role}"
        cluster.plane.ask("PATCH", path, patch, content_type="application/json-patch+json")
    before = cluster.adapter.settings.read_text()
    settings = yaml.safe_load(before)
    custom = {"register": True, "upstream": settings["upstream"]}
    theirs = f"{CUSTOM_METRICS}/namespaces/default/pods/*/{REQUESTS}?labelSelector=app%3Dany"
    cluster.adapter.settings.write_text(yaml.safe_dump({**settings, "customMetrics": custom}))
    try:
        cluster.wait_for(theirs, 200, '"7500m"')
        selected = "metricLabelSelector=group%3Dbeside"
        cluster.wait_for(f"{CUSTOM_METRICS}/namespaces/default/services/any/{OURS}?{selected}", 200, '"value":"0"')
        users = {read["user"] for read in asked_for(cluster, theirs.replace("*", "%2A"))}
        assert users == {f"system:serviceaccount:{PLACE}:{NAME}"}

        def is_listed() -> bool:
            names = {each["name"] for each in cluster.plane.get(CUSTOM_METRICS)["resources"]}
            return {f"pods/{REQUESTS}", f"services/{OURS}"} < names

        wait_until(is_listed, "the other server's metric in the list", WAIT_SECONDS)
    finally:
        cluster.adapter.settings.write_text(before)
        cluster.wait_for(theirs, 404, f"no metric '{REQUESTS}' is served")  # so nobody creates them again
        for group in CUSTOM:
            cluster.plane.request("DELETE", f"{API_SERVICES}/{group.api_service}")


def test_a_server_that_is_gone_takes_no_metric_of_ours_along(cluster: Cluster) -> None:
    words = f"requests to it fail: the upstream {THEIR_PLACE}/{OTHER} cannot be reached: Connection refused"
    cluster.other.process.stop()
    try:
        cluster.wait_for(THEIRS, 503, "cannot be reached: Connection refused")
        cluster.wait_for_remark("requests to it fail; the log has details")
        wait_until(
            lambda: f"upstream: Unavailable: {words}" in cluster.adapter.process.log.read_text(), words, WAIT_SECONDS
        )
        assert OTHER not in cluster.remark()
        assert QUEUE in cluster.listed()
        assert values(cluster.plane.raw(READ)) == [(OURS, "0")]
    finally:
        cluster.other.start()
    assert 'reads_total{code="503",metric="upstream"}' in cluster.metrics()
