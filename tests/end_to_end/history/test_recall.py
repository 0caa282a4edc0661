"""An adapter with a history is killed and started again: ages go on. Without a history, they are refused."""

import contextlib
import datetime
import json
import signal
import threading
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path

import pytest
from kafka import KafkaProducer
from kubernetes.utils.quantity import parse_quantity
from pyarrow import parquet

from local.adapter import Adapter, items, own_kubeconfig, process
from local.certificates import Pair
from local.kafka.broker import Kafka
from local.kafka.tools import commit, create_topic
from local.kubernetes.control_plane import ControlPlane
from local.processes import RigError, wait_until
from tests.support.real.groups_to_read import path

GROUP = TOPIC = "recalled"
AGE = path("default", "kafka_consumergroup_lag_seconds", f"group%3D{GROUP}")
WAIT_SECONDS = 120.0
INTERVAL, PER_SECOND, CONSUMED = 2, 4, 60

Start = Callable[[str, bool], contextlib.AbstractContextManager[Adapter]]


@pytest.fixture
def start(control_plane: ControlPlane, one_broker: Kafka, tmp_path: Path) -> Start:
    """Starts an adapter by its name, with the history or without one, and waits until it has read the group."""
    kubeconfig = own_kubeconfig(control_plane)

    @contextlib.contextmanager
    def started(name: str, has_history: bool) -> Iterator[Adapter]:  # noqa: FBT001 - as told by the only caller
        settings: dict[str, object] = {
            "clusters": [{"name": "main", "bootstrapServers": one_broker.bootstrap_servers.split(",")}],
            "collection": {"interval": f"{INTERVAL}s", "groups": {"include": [GROUP]}},
            "rules": [{"group": GROUP, "topics": [TOPIC]}],
        }
        if has_history:
            settings["history"] = {"location": f"{tmp_path}/history", "flushInterval": "10s"}
        with process(tmp_path / name, settings, kubeconfig) as running:
            wait_until(running.is_ready, "the adapter to be ready", WAIT_SECONDS, alive=[running.process])
            yield running

    return started


@contextlib.contextmanager
def steady_messages(cluster: Kafka) -> Iterator[list[float]]:
    """Writes messages evenly in a thread; yields the growing list of their times by the broker, in epoch seconds."""
    times: list[float] = []
    is_over = threading.Event()

    def write() -> None:
        with closing(KafkaProducer(bootstrap_servers=cluster.bootstrap_servers.split(","))) as producer:
            while not is_over.wait(1 / PER_SECOND):
                sent = producer.send(TOPIC, value=b"message", partition=0)
                times.append(sent.get(timeout=WAIT_SECONDS).timestamp / 1000)

    thread = threading.Thread(target=write, name="steady-messages")
    thread.start()
    try:
        yield times
    finally:
        is_over.set()
        thread.join(WAIT_SECONDS)


def first_served(running: Adapter, caller: Pair) -> tuple[int, bytes]:
    """The first reply with a value, or the last one without."""
    replies = [running.get(AGE, shown=caller)]

    def is_served() -> bool:
        replies.append(running.get(AGE, shown=caller))
        return replies[-1][0] == 200

    with contextlib.suppress(RigError):
        wait_until(is_served, "the past to be read", WAIT_SECONDS)
    return replies[-1]


def seconds_of(quantity: str) -> float:
    return float(parse_quantity(quantity))  # type: ignore[no-untyped-call]  # the client has no types here


def is_commit_kept(location: Path) -> bool:
    """Whether a file of the history has the last commit, and with it a log end beyond that commit."""
    files = (location / "samples").rglob("*.parquet")
    columns = (parquet.read_table(file, columns=["committed"], partitioning=None)["committed"] for file in files)
    return any(CONSUMED in column.to_pylist() for column in columns)


def held_up(times: list[float]) -> float:
    """How many seconds longer the messages took than evenly written ones: an age is interpolated between log ends."""
    return times[-1] - times[0] - (len(times) - 1) / PER_SECOND


def is_only_a_bound(running: Adapter, caller: Pair) -> bool:
    code, body = running.get(AGE, shown=caller)
    assert code != 200, body
    return code == 503 and [cause["reason"] for cause in json.loads(body)["details"]["causes"]] == ["LowerBound"]


def test_after_a_kill_the_age_of_what_waits_is_exact_with_a_history_and_refused_without_one(
    start: Start, one_broker: Kafka, administrator: Pair, tmp_path: Path
) -> None:
    create_topic(one_broker, TOPIC)
    commit(one_broker, GROUP, {(TOPIC, 0): 0})
    with contextlib.ExitStack() as stack:
        with start("first", True) as running:
            # It has read the empty log before the first message comes.
            assert first_served(running, administrator)[0] == 200
            times = stack.enter_context(steady_messages(one_broker))
            wait_until(lambda: len(times) > CONSUMED, "messages to be consumed", WAIT_SECONDS)
            commit(one_broker, GROUP, {(TOPIC, 0): CONSUMED})
            wait_until(lambda: is_commit_kept(tmp_path / "history"), "the commit to be kept", WAIT_SECONDS)
            running.process.send(signal.SIGKILL)
            running.process.wait(WAIT_SECONDS)

        with start("second", True) as running:
            code, body = first_served(running, administrator)
            assert code == 200, body
            (item,) = items(body)
            measured_at = datetime.datetime.fromisoformat(item["timestamp"]).timestamp()
            assert item["metricLabels"]["bound"] == "exact"
            # A timestamp has whole seconds.
            tolerance = INTERVAL + 1 + held_up(times)
            assert seconds_of(item["value"]) == pytest.approx(measured_at - times[CONSUMED], abs=tolerance)

        with start("without", False) as running:
            wait_until(lambda: is_only_a_bound(running, administrator), "the group to be read", WAIT_SECONDS)
