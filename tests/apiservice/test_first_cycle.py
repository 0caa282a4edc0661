"""What the first cycle of a process reads."""

import threading
import time
from collections.abc import Mapping
from pathlib import Path

import pytest

from adapter.collector import threads as collector_module
from adapter.reload.live_metrics import LiveMetrics
from apiservice import serving
from apiservice.cluster_api.connection import Json
from apiservice.flags import Flags
from apiservice.http.server import Listener, Stages
from local.processes import wait_until
from tests.support.kafka.fake_brokers import FakeBrokers
from tests.support.kafka.remembering import kafka
from tests.support.kubernetes.fake_cluster import FakeCluster, Objects
from tests.support.kubernetes.hpas import external, hpa
from tests.support.samples import SteppedClock, wants

LATE_SECONDS = 1.0
LAG = "kafka_consumergroup_lag"


class LateObjects(Objects):
    def page(self, query: Mapping[str, list[str]]) -> Json:
        time.sleep(LATE_SECONDS)
        return super().page(query)


def test_the_first_view_has_what_hpas_ask_for_although_the_api_server_lists_them_late(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    made: list[LiveMetrics] = []
    lags: list[int] = []

    class Kept(LiveMetrics):
        def start(self) -> None:
            made.append(self)
            super().start()

    def read_instead(_: tuple[Listener, ...], stages: Stages) -> None:
        metrics = made[0].current
        wait_until(lambda: metrics.version > 0, "the first view", 60)
        lags.extend(item.milli // 1000 for item in metrics.read(LAG, wants(group="audit", topic="other")).values)
        stages.on_drained()

    monkeypatch.setattr(serving, "FIRST_LIST_SECONDS", 60.0)  # a busy machine takes longer than the product waits
    monkeypatch.setattr(serving, "LiveMetrics", Kept)
    monkeypatch.setattr(serving, "serve", read_instead)
    monkeypatch.setattr(collector_module, "Brokers", lambda *_: FakeBrokers(kafka(), SteppedClock(time.monotonic())))
    settings = tmp_path / "settings.yaml"
    settings.write_text(
        "{clusters: [{name: main, bootstrapServers: ['x:1']}], collection: {interval: 10m, maxAge: 1h}}"
    )
    with FakeCluster({}, tokens={}, allowed=set()) as cluster:
        cluster.hpas = LateObjects([hpa("consumer", external(LAG, group="audit", topic="other"))])
        flags = Flags(
            config=settings,
            kubeconfig=cluster.kubeconfig(tmp_path),
            cert_dir=tmp_path,
            bind_address="127.0.0.1",
            secure_port=0,
            metrics_bind_address="127.0.0.1",
            metrics_port=0,
        )
        serving.run(flags, "x", threading.Event())

    assert lags == [8]
