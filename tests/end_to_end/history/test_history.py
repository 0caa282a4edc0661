"""A serving process that keeps a history: from a real broker to files, and how it ends."""

import datetime
import signal
import sys
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
from pyarrow import dataset

from local import adapter
from local.kafka.broker import Kafka
from local.kafka.tools import commit, create_topic, produce
from local.processes import wait_until
from tests.support.history.fake_store import fake_store
from tests.support.kubernetes.fake_cluster import kubeconfig_text

END_SECONDS = 20.0 + 30.0
"""When the kubelet would kill it, and what a busy machine may add. A store that is waited for costs minutes."""
NOBODY = {"clusters": [{"name": "main", "bootstrapServers": ["127.0.0.1:1"]}]}


@pytest.fixture
def kubeconfig(tmp_path: Path) -> Path:
    """Of an API server that does not answer: nobody asks for a metric here."""
    path = tmp_path / "kubeconfig"
    path.write_text(kubeconfig_text(port=1))
    return path


def kept(location: Path) -> list[dict[str, Any]]:
    """Every row in the location, by time."""
    found = dataset.dataset(location / "samples", partitioning=None)
    return sorted(found.to_table().to_pylist(), key=lambda row: (row["sampled_at"], row["partition"]))


def counted(running: adapter.Adapter, metric: str) -> float:
    """A metric of the history, without labels."""
    text = running.get_plain("/metrics")[1].decode()
    values = [line.split()[1] for line in text.splitlines() if line.startswith(f"kafka_lag_adapter_history_{metric} ")]
    return float(values[0])


def shown_lag(running: adapter.Adapter) -> float | None:
    """The sum of the series of lag; None: there is none yet."""
    lines = running.get_plain("/metrics/groups")[1].decode().splitlines()
    lags = [float(line.split()[-1]) for line in lines if line.startswith("kafka_consumergroup_lag{")]
    return sum(lags) if lags else None


def wait_for_sample(running: adapter.Adapter, lag: int) -> None:
    """Until this lag is in a sample. Rows of cycles in which a busy machine held the process up are unknown."""
    wait_until(lambda: shown_lag(running) == lag, f"a lag of {lag}", 180)
    seen = counted(running, "buffered_rows")
    wait_until(lambda: counted(running, "buffered_rows") > seen, "the next sample", 180)


def test_sigterm_leaves_the_very_offsets_in_a_file(one_broker: Kafka, kubeconfig: Path, tmp_path: Path) -> None:
    create_topic(one_broker, "kept-orders", 2)
    produce(one_broker, "kept-orders", 120, 0)
    commit(one_broker, "keeper", {("kept-orders", 0): 50})
    settings = {
        "clusters": [{"name": "main", "bootstrapServers": one_broker.bootstrap_servers.split(",")}],
        "collection": {"interval": "1s", "maxAge": "10s", "groups": {"include": ["keeper"]}},
        "history": {"location": f"{tmp_path}/history", "flushInterval": "1h"},
        "series": {"by": "topic"},
    }
    before = datetime.datetime.now(datetime.UTC)
    with adapter.process(tmp_path / "adapter", settings, kubeconfig) as running:
        wait_for_sample(running, 120 - 50)
        produce(one_broker, "kept-orders", 30, 0)
        commit(one_broker, "keeper", {("kept-orders", 0): 150})
        wait_for_sample(running, 0)
        running.process.send(signal.SIGTERM)
        assert running.process.wait(180) == 0

    every_row = kept(tmp_path / "history")
    after = datetime.datetime.now(datetime.UTC)
    assert [row["partition"] for row in every_row] == [0, 1] * (len(every_row) // 2)
    rows = [row for row in every_row if row["state"] != "unknown"]  # as where the process was held up in a cycle
    (first, *_, last), (other, *_) = ([row for row in rows if row["partition"] == number] for number in (0, 1))
    assert (first["group"], first["topic"], first["committed"], first["log_end"]) == ("keeper", "kept-orders", 50, 120)
    assert (last["committed"], last["log_end"], last["log_start"], last["state"]) == (150, 150, 0, "ok")
    assert (other["committed"], other["log_end"], other["state"]) == (None, 0, "no_commit")
    assert first["topic_id"] == last["topic_id"] is not None
    assert all(before <= row["sampled_at"] <= row["received_at"] <= after for row in rows)


def with_history(location: str) -> Mapping[str, object]:
    return {**NOBODY, "history": {"location": location}}


def test_without_a_history_pyarrow_is_not_even_loaded(kubeconfig: Path, tmp_path: Path) -> None:
    if not sys.platform.startswith("linux"):
        pytest.skip("looks at Linux' list of loaded libraries")

    def is_loaded(running: adapter.Adapter) -> bool:
        return "libarrow" in Path(f"/proc/{running.process.pid}/maps").read_text()

    with adapter.process(tmp_path / "without", NOBODY, kubeconfig) as without:
        assert not is_loaded(without)
    with adapter.process(tmp_path / "with", with_history(f"{tmp_path}/history"), kubeconfig) as running:
        wait_until(lambda: is_loaded(running), "the library to be loaded", 180)


def test_a_store_that_hangs_does_not_hold_up_the_end(
    kubeconfig: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with fake_store("lag") as store:
        store.is_silent = True
        monkeypatch.setenv("AWS_ENDPOINT_URL", store.url)
        monkeypatch.setenv("AWS_REGION", "eu-central-1")
        monkeypatch.setenv("AWS_ACCESS_KEY_ID", "alice")
        monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "wonderland")
        with adapter.process(tmp_path / "adapter", with_history("s3://lag/history"), kubeconfig) as running:
            wait_until(lambda: bool(store.requests), "the adapter to ask the store", 180)
            started = time.monotonic()
            running.process.send(signal.SIGTERM)
            assert running.process.wait(2 * END_SECONDS) == 0

        assert time.monotonic() - started < END_SECONDS
