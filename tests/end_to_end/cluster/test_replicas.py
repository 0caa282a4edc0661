"""Two replicas behind one Service of a real kube-apiserver, on one real broker, and what is left when one ends.

A forwarder stands for kube-proxy: it leads each new connection to one of the replicas. The Lease lasts 20 s."""

import base64
import re
import signal
import ssl
import sys
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any

import pytest
import urllib3
from pyarrow import dataset

from local.adapter import API_SERVICE, EXTERNAL_METRICS, Adapter, external_name, is_available, items, process
from local.certificates import Pair
from local.forwarder import Forwarder, forwarder
from local.kafka.broker import Kafka
from local.kafka.tools import commit, create_topic, produce
from local.kubernetes.control_plane import ControlPlane, Manifest
from local.manifests.check import MANIFESTS, load
from local.manifests.shipped import NAME
from local.processes import free_port, wait_until
from tests.end_to_end.cluster.test_registration import names_the_service
from tests.support.real.programs import MAIN, PATIENT_CALLS, PATIENT_LEASE

PLACE = "replicated"
GROUP = TOPIC = "replicated"
LEASE = f"/apis/coordination.k8s.io/v1/namespaces/{PLACE}/leases/{NAME}-leader"
READ = f"{EXTERNAL_METRICS}/namespaces/default/kafka_consumergroup_lag?labelSelector=group%3D{GROUP}"
METRICS = ("lag", "records_lag_max", "lead_min", "uncommitted_partitions")
DRAIN_SECONDS, UNTOLD_SECONDS, GAP_SECONDS = 20.0, 1.5, 30.0
HASTY = f"{PATIENT_CALLS}{PATIENT_LEASE}from adapter.history import writer; writer.STANDBY_SECONDS = 0.2; {MAIN}"
WAIT_SECONDS = 180.0
STRANGER = "a replica of before"
"""Holds the Lease until both replicas have samples, so that whichever takes it writes a file at once."""


@dataclass
class Replicas:
    plane: ControlPlane
    service: Forwarder
    kubeconfig: Path
    settings: dict[str, Any]
    home: Path
    stack: ExitStack
    running: list[Adapter] = field(default_factory=list)
    started: int = 0

    def start(self) -> Adapter:
        self.started += 1
        port = free_port()
        if not self.running:
            # It registers itself at once, and kube-apiserver waits long before it tries again whom it found absent.
            self.service.lead_to(port)
        one = self.stack.enter_context(
            process(
                self.home / f"replica-{self.started}",
                self.settings,
                self.kubeconfig,
                port=port,
                service=f"{PLACE}/{NAME}:{self.service.port}",
                program=(sys.executable, "-c", HASTY),
                more_flags={"shutdown-delay-duration": f"{DRAIN_SECONDS:g}s"},
            )
        )
        self.running.append(one)
        return one

    def complete(self) -> tuple[Adapter, Adapter]:
        """The writer of the history and the other replica, both behind the Service."""
        while len(self.running) < 2:
            self.start()
        for one in self.running:
            wait_until(one.is_ready, "a replica to be ready", WAIT_SECONDS, alive=[one.process])
        shown = self.plane.issue("replicas-administrator", ["system:masters"])
        for one in self.running:
            wait_until(partial(has_lag, one, self.plane, shown), "a replica to have read", WAIT_SECONDS)
        self.service.lead_to(*(one.port for one in self.running))
        wait_until(lambda: is_available(self.plane), "the APIService to be available", WAIT_SECONDS)
        if self.holder == STRANGER:
            for one in self.running:
                wait_until(partial(has_samples, one), "samples in its memory", WAIT_SECONDS, alive=[one.process])
            self.plane.apply([lease_of("")])
        writers: list[Adapter] = []

        def is_one() -> bool:
            writers[:] = [one for one in self.running if writes(one)]
            return len(writers) == 1

        wait_until(is_one, "one writer", WAIT_SECONDS)
        (writer,) = writers
        (other,) = (one for one in self.running if one is not writer)
        return writer, other

    def wait_for_writer(self, one: Adapter) -> None:
        wait_until(lambda: writes(one), "this replica to write the history", WAIT_SECONDS, alive=[one.process])

    @property
    def holder(self) -> str:
        return str(self.plane.get(LEASE)["spec"]["holderIdentity"])

    def kept(self) -> dict[str, list[dict[str, Any]]]:
        """The rows of each writer, by time."""
        root = Path(self.settings["history"]["location"]) / "samples"
        found: dict[str, list[dict[str, Any]]] = {}
        for file in sorted(root.rglob("*.parquet")):
            name = re.sub(r"-\d{8}T[\d.]+Z$", "", file.stem)
            found.setdefault(name, []).extend(dataset.dataset(file).to_table().to_pylist())
        return found

    def reads_until(self, seconds: float, most: int) -> list[int]:
        end, codes = time.monotonic() + seconds, list[int]()
        while len(codes) < most and time.monotonic() < end:
            codes.append(self.plane.raw(READ)[0])
        return codes


@pytest.fixture(scope="module")
def replicas(plane: ControlPlane, one_broker: Kafka, rig_home: Path) -> Iterator[Replicas]:
    create_topic(one_broker, TOPIC, 2)
    produce(one_broker, TOPIC, 30)
    commit(one_broker, GROUP, {(TOPIC, 0): 10})
    home = rig_home / "replicas"
    settings = {
        "clusters": [{"name": "main", "bootstrapServers": one_broker.bootstrap_servers.split(",")}],
        "collection": {"interval": "1s", "groups": {"include": [GROUP]}},
        "rules": [{"group": GROUP, "topics": [TOPIC]}],
        "history": {"location": f"{home}/history", "flushInterval": "1h"},
    }
    with forwarder(free_port()) as service, ExitStack() as stack:
        service.release()
        documents = [{"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": PLACE}}, *installed(service.port)]
        plane.apply(documents)
        kubeconfig = plane.kubeconfig_for_service_account(PLACE, NAME)
        made = Replicas(plane, service, kubeconfig, settings, home, stack)
        yield made
        for one in made.running:
            one.process.send(signal.SIGKILL)
    plane.delete(documents)
    plane.request("DELETE", API_SERVICE)


def installed(port: int) -> list[Manifest]:
    """The shipped objects without pods, with a Service that leads to this port, and a Lease that somebody holds."""
    base = [each for each in load(MANIFESTS / "base", PLACE) if each["kind"] != "Deployment"]
    services = [{**each, "spec": external_name(port)} if names_the_service(each) else each for each in base]
    return [*services, lease_of(STRANGER)]


def lease_of(holder: str) -> Manifest:
    spec = {"holderIdentity": holder, "leaseDurationSeconds": 3600}
    metadata = {"name": f"{NAME}-leader", "namespace": PLACE}
    return {"apiVersion": "coordination.k8s.io/v1", "kind": "Lease", "metadata": metadata, "spec": spec}


def state(one: Adapter) -> str:
    found = re.search(
        r"^info: leader: Elected since \S+: (.*)$", one.get_plain("/readyz?verbose")[1].decode(), re.MULTILINE
    )
    return found[1] if found else "it cannot read the Lease"


def writes(one: Adapter) -> bool:
    return counted(one, "history_writer") == 1


def has_samples(one: Adapter) -> bool:
    return counted(one, "history_buffered_rows") > 0


def counted(one: Adapter, metric: str) -> float:
    """A metric of the adapter itself, without labels."""
    found = re.search(rf"^kafka_lag_adapter_{metric} (\S+)$", one.get_plain("/metrics")[1].decode(), re.MULTILINE)
    assert found is not None
    return float(found[1])


def answers(one: Adapter, plane: ControlPlane, shown: Pair) -> list[object]:
    """Every metric of the group, asked of this replica itself; without the times."""
    authority = base64.b64decode(plane.get(API_SERVICE)["spec"]["caBundle"]).decode()
    context = ssl.create_default_context(cadata=authority)
    context.load_cert_chain(shown.certificate, shown.key)
    name = f"{NAME}.{PLACE}.svc"
    found: list[object] = []
    with urllib3.HTTPSConnectionPool(
        "127.0.0.1", one.port, ssl_context=context, server_hostname=name, assert_hostname=name
    ) as pool:
        for metric in METRICS:
            path = READ.replace("kafka_consumergroup_lag", f"kafka_consumergroup_{metric}")
            response = pool.request("GET", path, timeout=30.0, retries=False)
            found += [{**item, "timestamp": ""} for item in items(response.data)] if response.status == 200 else [0]
    return found


def has_lag(one: Adapter, plane: ControlPlane, shown: Pair) -> bool:
    """It is ready before it has read anything."""
    return plane.raw(API_SERVICE)[0] == 200 and answers(one, plane, shown)[0] != 0


def span(rows: list[dict[str, Any]]) -> tuple[float, float]:
    times = [row["sampled_at"].timestamp() for row in rows]
    return min(times), max(times)


def test_two_that_start_at_once_share_a_certificate_and_agree_on_every_change(
    replicas: Replicas, one_broker: Kafka
) -> None:
    writer, other = replicas.complete()
    shown = replicas.plane.issue("replicas-administrator", ["system:masters"])

    def agree_on(lag: str) -> bool:
        both = [answers(one, replicas.plane, shown) for one in (writer, other)]
        return both[0] == both[1] and f"'value': '{lag}'" in str(both[0][0])

    wait_until(lambda: agree_on("20"), "the same answers", WAIT_SECONDS)
    produce(one_broker, TOPIC, 7, 1)
    commit(one_broker, GROUP, {(TOPIC, 0): 12, (TOPIC, 1): 3})
    wait_until(lambda: agree_on("22"), "the same answers", WAIT_SECONDS)

    def agree_on_the_leader() -> bool:
        """Also where it changes on a busy machine."""
        return sorted(map(state, (writer, other))) == sorted(("held by this replica", f"held by {replicas.holder}"))

    wait_until(agree_on_the_leader, "one leader of which both know", WAIT_SECONDS)


def test_a_replica_that_receives_sigterm_fails_no_read_and_hands_the_history_over_at_once(replicas: Replicas) -> None:
    writer, other = replicas.complete()
    name = replicas.holder
    assert set(replicas.reads_until(WAIT_SECONDS, 10)) == {200}

    writer.process.send(signal.SIGTERM)
    codes = replicas.reads_until(UNTOLD_SECONDS, 40)  # and the Service still leads to it
    wait_until(lambda: writer.get_plain("/readyz")[0] == 500, "it to be unready", DRAIN_SECONDS)
    replicas.service.lead_to(other.port)
    while writer.process.is_running():
        codes += replicas.reads_until(WAIT_SECONDS, 10)
    codes += replicas.reads_until(WAIT_SECONDS, 10)
    assert writer.process.status == 0, writer.process.log_tail()
    replicas.running.remove(writer)
    replicas.wait_for_writer(other)

    assert len(codes) > 20
    assert set(codes) == {200}
    assert replicas.holder != name
    wait_until(lambda: replicas.holder in replicas.kept(), "the other's first file", WAIT_SECONDS)
    (_, ended), (began, _) = span(replicas.kept()[name]), span(replicas.kept()[replicas.holder])
    # A busy machine leaves cycles out.
    assert ended // 60 * 60 <= began <= ended + GAP_SECONDS


def test_a_replica_that_vanishes_leaves_no_gap_and_fails_no_read_once_the_service_knows(replicas: Replicas) -> None:
    writer, other = replicas.complete()
    name = replicas.holder
    wait_until(lambda: name in replicas.kept(), "the first file", WAIT_SECONDS)
    wait_until(lambda: has_samples(other), "samples in the other's memory", WAIT_SECONDS)
    since = time.time()
    _, written = span(replicas.kept()[name])
    assert set(replicas.reads_until(WAIT_SECONDS, 10)) == {200}

    writer.process.send(signal.SIGKILL)
    writer.process.wait(WAIT_SECONDS)
    replicas.running.remove(writer)
    unknowing = Counter(replicas.reads_until(UNTOLD_SECONDS, 40))
    replicas.service.lead_to(other.port)
    knowing = replicas.reads_until(WAIT_SECONDS, 20)
    print("reads before the Service knows:", dict(unknowing))
    replicas.wait_for_writer(other)
    wait_until(lambda: replicas.holder in replicas.kept(), "the other's first file", WAIT_SECONDS)
    began, _ = span(replicas.kept()[replicas.holder])

    assert set(knowing) == {200}
    assert set(unknowing) <= {200, 503}
    # What the writer had in its memory is lost; the other had it in its own, since it started.
    assert written // 60 * 60 <= began <= max(written, since)


def test_a_frozen_replica_that_wakes_up_writes_nothing_that_another_has_written(replicas: Replicas) -> None:
    writer, other = replicas.complete()
    name = replicas.holder
    wait_until(lambda: name in replicas.kept(), "the first file", WAIT_SECONDS)
    wait_until(lambda: has_samples(other), "samples in the other's memory", WAIT_SECONDS)
    # Rows that have just been written are buffered until the file is counted.
    wait_until(lambda: counted(writer, "history_files_total") > 0, "the first file to be counted", WAIT_SECONDS)
    wait_until(lambda: has_samples(writer), "samples that it has not written", WAIT_SECONDS)

    writer.process.send(signal.SIGSTOP)
    frozen = replicas.kept()[name]
    replicas.wait_for_writer(other)
    taker = replicas.holder
    wait_until(lambda: taker in replicas.kept(), "the other's first file", WAIT_SECONDS)
    _, covered = span(replicas.kept()[taker])
    writer.process.send(signal.SIGCONT)
    # The Lease may come back to it where the other is held up, so only its log shows what it saw first.
    news = f"leader: Elected: held by {taker}"
    wait_until(lambda: news in writer.process.log.read_text(), "the news of the other", WAIT_SECONDS)
    assert replicas.kept()[name] == frozen
    writer.process.send(signal.SIGTERM)
    assert writer.process.wait(WAIT_SECONDS) == 0, writer.process.log_tail()
    replicas.running.remove(writer)

    later = replicas.kept()[name][len(frozen) :]
    assert [row for row in later if row["sampled_at"].timestamp() <= covered] == []
