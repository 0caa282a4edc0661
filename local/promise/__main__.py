"""`make demo-demand`: two groups with the same load on real parts, one HPA on their lag and one on a promise.

Prints a table of what was measured and of what the simulator says of the same run, and writes a picture of it.
Everything runs on 127.0.0.1 and ends with this process."""

import contextlib
import signal
import sys
import threading
import time
from collections.abc import Iterator, Sequence
from contextlib import closing
from datetime import datetime
from pathlib import Path

import numpy as np
import urllib3
from kafka import KafkaProducer
from kafka.errors import KafkaError

from local import downloads
from local.adapter import adapter
from local.kafka.broker import Kafka, kafka
from local.kafka.tools import create_topic
from local.kubernetes.control_plane import ControlPlane, control_plane
from local.kubernetes.node import node
from local.processes import RigError, exit_on_sigterm, scratch, stop_all, wait_until
from local.promise import environment, scenario
from local.promise.environment import Environment
from local.promise.figures import FIGURES, Run, measured, median, table
from local.promise.picture import picture
from local.promise.predicted import predicted

FOLDER = Path(__file__).resolve().parents[2] / "demand-demo"
PARTS = ("kafka", "control-plane")
READY_SECONDS = 60.0
DRAIN_SECONDS = 40.0
"""After the load, for what still waits."""
COMPARED = ("replica-seconds", "wait p99")
INTERRUPTED = 128 + signal.SIGINT


def main() -> int:
    """Returns the exit status; prints each problem on stderr as one sentence."""
    try:
        missing = downloads.main(PARTS)
        if missing:
            return missing
        with exit_on_sigterm():
            _show()
    except (RigError, KafkaError, urllib3.exceptions.HTTPError) as error:
        print(f"The demo failed: {error}", file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        return INTERRUPTED
    return 0


def _show() -> None:
    print(f"{_now()}  Starting a broker, a control plane and the adapter", flush=True)
    with scratch("promise") as home, contextlib.ExitStack() as running:
        running.callback(stop_all)
        brokers = running.enter_context(kafka(home / "kafka"))
        create_topic(brokers, scenario.TOPIC, scenario.PARTITIONS)
        plane = running.enter_context(control_plane(home / "kubernetes", hpa_sync_seconds=scenario.SYNC_SECONDS))
        running.enter_context(node(plane, home))
        running.enter_context(adapter(plane, home / "adapter", scenario.settings(brokers)))
        runs, environment = run(brokers, plane, home / "waits")
    _report(runs, environment)


def run(brokers: Kafka, plane: ControlPlane, records: Path) -> tuple[dict[str, Run], Environment]:
    """Returns what the consumers and replicas of each group did while the load came, and what the machine was like."""
    plane.apply(scenario.deployments(brokers, records))
    wait_until(lambda: all(_ready(plane, group) for group in scenario.GROUPS), "the first consumers", READY_SECONDS)
    threading.Event().wait(scenario.START_SECONDS)
    plane.apply(scenario.hpas())
    hpas_at = time.time()
    replicas: dict[str, list[int]] = {group: [] for group in scenario.GROUPS}
    pods: dict[str, float] = {}
    begin = time.time()
    for second, rate in _load(brokers):
        pods |= _pods(plane)
        for group, counts in replicas.items():
            counts.append(_replicas(plane, group))
        if second % 20 == 0:
            counted = ", ".join(f"{group} {counts[-1]} replicas" for group, counts in replicas.items())
            print(f"{_now()}  {rate:3.0f} messages/s: {counted}", flush=True)
    written = int(scenario.rates().sum())
    with contextlib.suppress(RigError):
        # What still waits then has waited for longer than the table says.
        wait_until(lambda: all(_read(records / g) >= written for g in scenario.GROUPS), "the rest", DRAIN_SECONDS)
    runs = {group: measured(records / group, begin, counts) for group, counts in replicas.items()}
    # The controller looks at a new HPA after one period.
    first_sync = hpas_at + scenario.SYNC_SECONDS - begin
    return runs, environment.measured([records / group for group in replicas], pods, first_sync)


def _load(brokers: Kafka) -> Iterator[tuple[int, float]]:
    """Writes the messages of one second after another, in turns to all partitions, and yields each second."""
    written, begin = 0, time.monotonic()
    servers = brokers.bootstrap_servers.split(",")
    with closing(KafkaProducer(bootstrap_servers=servers, linger_ms=5)) as producer:
        due = 0.0
        for second, rate in enumerate(scenario.rates().tolist()):
            for tenth in range(10):
                due += rate / 10
                while written < int(due):
                    producer.send(scenario.TOPIC, b"message", partition=written % scenario.PARTITIONS)
                    written += 1
                threading.Event().wait(max(0.0, begin + second + (tenth + 1) / 10 - time.monotonic()))
            yield second, rate
        producer.flush(timeout=READY_SECONDS)


def _report(runs: dict[str, Run], measured_of: Environment) -> None:
    begin = float(scenario.LEVEL_SECONDS)
    foreseen = {group: [run.since(begin) for run in predicted(group, measured_of)] for group in scenario.GROUPS}
    real = {group: [run.since(begin)] for group, run in runs.items()}
    columns = [
        (group, how, found[group])
        for group in scenario.GROUPS
        for how, found in (("measured", real), ("simulated", foreseen))
    ]
    print()
    for line in table([(f"{group}, {how}", found) for group, how, found in columns]):
        print(line)
    print()
    for group in scenario.GROUPS:
        for name in COMPARED:
            print(_difference(group, name, real[group], foreseen[group]))
    FOLDER.mkdir(exist_ok=True)
    file = FOLDER / "replicas-and-waits.svg"
    file.write_text(picture(*(runs[group] for group in scenario.GROUPS)))
    print(f"The picture: {file}")


def _difference(group: str, name: str, real: Sequence[Run], foreseen: Sequence[Run]) -> str:
    figure, form = FIGURES[name]
    least, most = (form.format(float(np.quantile([figure(run) for run in foreseen], at))) for at in (0.1, 0.9))
    share = median(foreseen, figure) / median(real, figure) - 1
    return (
        f"{group}: {name} as simulated differs by {share:+.0%} from the measured one ({least} to {most} in most runs)."
    )


def _ready(plane: ControlPlane, group: str) -> bool:
    status = plane.get(f"/apis/apps/v1/namespaces/{scenario.NAMESPACE}/deployments/{group}").get("status", {})
    return int(status.get("readyReplicas", 0)) == scenario.REPLICAS


def _replicas(plane: ControlPlane, group: str) -> int:
    deployment = plane.get(f"/apis/apps/v1/namespaces/{scenario.NAMESPACE}/deployments/{group}")
    return int(deployment["spec"]["replicas"])


def _pods(plane: ControlPlane) -> dict[str, float]:
    """Returns when each was created, in seconds since the epoch."""
    pods = (pod["metadata"] for pod in plane.get(f"/api/v1/namespaces/{scenario.NAMESPACE}/pods")["items"])
    return {pod["name"]: datetime.fromisoformat(pod["creationTimestamp"]).timestamp() for pod in pods}


def _read(folder: Path) -> int:
    return len({tuple(line.split()[:2]) for file in folder.glob("*.waits") for line in file.read_text().splitlines()})


def _now() -> str:
    return time.strftime("%H:%M:%S")


if __name__ == "__main__":
    sys.exit(main())
