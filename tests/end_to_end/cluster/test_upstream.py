"""Another server of external metrics behind the adapter, on a real kube-apiserver: from when it holds the
APIService until it is gone."""

import base64
import json
import re
import signal
import ssl
import statistics
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
import urllib3
import yaml

from local.adapter import API_SERVICE, EXTERNAL_METRICS, Adapter, external_name, process
from local.downloads import command_line_tools
from local.kafka.broker import Kafka
from local.kafka.tools import create_topic
from local.kubernetes.control_plane import ControlPlane, Manifest
from local.kubernetes.other_adapter import NAME as OTHER
from local.kubernetes.other_adapter import OURS, PAGE, QUEUE, OtherAdapter, other_adapter
from local.manifests.check import MANIFESTS, load, read
from local.manifests.shipped import NAME, placed
from local.processes import free_port, wait_until
from tests.support.real.repeated_reads import repeated, wait_for_more

PLACE, THEIR_PLACE = "beside", "others"
WAIT_SECONDS = 60.0
ANSWER_SECONDS = 3.0
PROGRAM = f"""
import socket
from adapter.reload import settings_watch
from apiservice.registration import keeper
from apiservice.upstream import circuit, client, live

found = socket.getaddrinfo  # there is no DNS for Services here
socket.getaddrinfo = lambda host, *rest, **more: found(
    "127.0.0.1" if str(host).endswith(".svc") else host, *rest, **more
)
settings_watch.LOOK_SECONDS = 0.3
keeper.ROUND_SECONDS, live.LIST_SECONDS, circuit.PAUSE_SECONDS = 0.3, 0.5, 1.0
client.ANSWER_SECONDS = client.CONNECT_SECONDS = live.ANSWER_SECONDS = {ANSWER_SECONDS}
from apiservice.__main__ import main
main()
"""
BINDING = MANIFESTS / "upstream" / "cluster-role-binding-reads-upstream.yaml"


def path(metric: str, selector: str = "") -> str:
    return f"{EXTERNAL_METRICS}/namespaces/default/{metric}{f'?labelSelector={selector}' if selector else ''}"


SELECTED = "queue%3Djobs%2Ckind%20in%20%28a%2Cb%29%2C%21c%2Cscaledobject.keda.sh%2Fname%3Djobs"
THEIRS = path("queue-depth%40others%3Ajobs", SELECTED)
READ = path(OURS, "group%3Dbeside")


@dataclass(frozen=True)
class Cluster:
    plane: ControlPlane
    other: OtherAdapter
    adapter: Adapter

    def remark(self, check: str = "upstream") -> str:
        status, body = self.adapter.get_plain("/readyz?verbose")
        assert status == 200, body
        found = re.search(rf"^warn: {check}: (.*)$", body.decode(), re.MULTILINE)
        return found[1] if found else ""

    def wait_for_remark(self, words: str, check: str = "upstream") -> None:
        def is_there() -> bool:
            remark = self.remark(check)
            return words in remark if words else not remark

        wait_until(is_there, f"the remark {words!r}", WAIT_SECONDS, alive=[self.adapter.process])

    def listed(self) -> list[str]:
        """As kube-apiserver returns it."""
        return [resource["name"] for resource in self.plane.get(EXTERNAL_METRICS)["resources"]]

    def wait_for(self, target: str, code: int, words: str = "") -> None:
        def is_so() -> bool:
            status, body = self.plane.raw(target)
            return status == code and words in body.decode()

        wait_until(is_so, f"{code} with {words!r}", WAIT_SECONDS, alive=[self.adapter.process])

    def statuses(self) -> list[str]:
        """Of the condition `upstream`."""
        return re.findall(r'_condition{cluster="",condition="upstream",status="(\w+)"} 1.0', self.metrics())

    def metrics(self) -> str:
        return self.adapter.get_plain("/metrics")[1].decode()


def status_of(answer: tuple[int, bytes]) -> tuple[int, str]:
    return answer[0], str(json.loads(answer[1])["message"])


def values(answer: tuple[int, bytes]) -> list[tuple[str, str]]:
    assert answer[0] == 200, answer
    return [(item["metricName"], item["value"]) for item in json.loads(answer[1])["items"]]


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


def held_by(other: OtherAdapter) -> Manifest:
    """The APIService that leads to the other server."""
    shipped = read(MANIFESTS / "api-service" / "api-service-external.yaml")
    place = {"name": OTHER, "namespace": THEIR_PLACE, "port": other.port}
    spec = {**shipped["spec"], "service": place, "caBundle": other.ca_bundle}
    return {**shipped, "metadata": {"name": shipped["metadata"]["name"]}, "spec": spec}


def namespace_of(name: str) -> Manifest:
    return {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}}


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


def led_to(port: int, document: Manifest) -> Manifest:
    is_service = document["kind"] == "Service" and document["metadata"]["name"] == NAME
    return {**document, "spec": external_name(port)} if is_service else document


def commands(plane: ControlPlane, begin: str, port: int, folder: Path) -> None:
    """Runs the block of docs/install.md that begins so, with the names of this test."""
    page = (MANIFESTS.parent / "docs" / "install.md").read_text()
    (block,) = re.findall(rf"^ *{begin}.*?(?=^ *```)", page, re.MULTILINE | re.DOTALL)
    block = re.sub(r"kubectl (-n|--namespace) kafka-lag-adapter", rf"kubectl \1 {PLACE}", block)
    block = block.replace("create namespace kafka-lag-adapter", f"create namespace {PLACE}")
    block = block.replace('"namespace":"kafka-lag-adapter"', f'"namespace":"{PLACE}"')
    block = block.replace('"port":443', f'"port":{port}')
    environment = {
        "PATH": f"{command_line_tools()}:/usr/bin:/bin",
        "KUBECONFIG": str(plane.admin_kubeconfig),
        "HOME": str(plane.home),
    }
    subprocess.run(["bash", "-o", "pipefail", "-ec", block], env=environment, cwd=folder, check=True)


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


def consumer(name: str) -> Manifest:
    labels = {"app": name}
    template = {"metadata": {"labels": labels}, "spec": {"containers": [{"name": "worker", "image": "none"}]}}
    return {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": {"name": name, "namespace": PLACE},
        "spec": {"selector": {"matchLabels": labels}, "template": template},
    }


def autoscaler(name: str, metric: str, **labels: str) -> Manifest:
    wanted = {"name": metric, "selector": {"matchLabels": labels}}
    external = {"metric": wanted, "target": {"type": "AverageValue", "averageValue": "2"}}
    return {
        "apiVersion": "autoscaling/v2",
        "kind": "HorizontalPodAutoscaler",
        "metadata": {"name": name, "namespace": PLACE},
        "spec": {
            "scaleTargetRef": {"apiVersion": "apps/v1", "kind": "Deployment", "name": name},
            "maxReplicas": 9,
            "metrics": [{"type": "External", "external": external}],
        },
    }


def state(cluster: Cluster, name: str) -> tuple[str, int, tuple[str, str]]:
    """Which metric the HPA has read, the replicas that follow, and whether and since when it can scale."""
    path = f"/apis/autoscaling/v2/namespaces/{PLACE}/horizontalpodautoscalers/{name}"
    status = cluster.plane.get(path).get("status", {})
    read = [each["external"]["metric"]["name"] for each in status.get("currentMetrics") or [] if "external" in each]
    active = [each for each in status.get("conditions") or [] if each["type"] == "ScalingActive"]
    since = next(((each["status"], each["lastTransitionTime"]) for each in active), ("", ""))
    return "".join(read), status.get("desiredReplicas", 0), since


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


def test_the_other_server_is_asked_for_the_same_in_the_adapters_name_alone(cluster: Cluster) -> None:
    (item,) = json.loads(cluster.plane.raw(THEIRS)[1])["items"]
    seen = cluster.other.seen[-1]

    assert item["metricLabels"] == {"selector": "queue=jobs,kind in (a,b),!c,scaledobject.keda.sh/name=jobs"}
    assert seen["path"] == THEIRS
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
    before = len(cluster.other.seen)
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
    assert len(cluster.other.seen) == before + 1
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
        cluster.wait_for_remark("does not answer in time")
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
    assert QUEUE not in cluster.listed()
    wait_until(lambda: not cluster.statuses(), "no condition of an upstream", WAIT_SECONDS)
    cluster.adapter.settings.write_text(yaml.safe_dump(whole))
    cluster.wait_for(THEIRS, 200)


def test_a_server_that_is_gone_takes_no_metric_of_ours_along(cluster: Cluster) -> None:
    cluster.other.process.stop()
    try:
        cluster.wait_for(THEIRS, 503, "cannot be reached: Connection refused")
        cluster.wait_for_remark("cannot be reached: Connection refused")
        assert QUEUE in cluster.listed()
        assert values(cluster.plane.raw(READ)) == [(OURS, "0")]
    finally:
        cluster.other.start()
    assert (
        f"upstream: Unavailable: the upstream {THEIR_PLACE}/{OTHER} cannot be reached: Connection refused"
        in cluster.adapter.process.log.read_text()
    )
    assert 'reads_total{code="503",metric="upstream"}' in cluster.metrics()
