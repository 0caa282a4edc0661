"""Table: the requests that reach the brokers while the adapter only collects, for 1, 100 and 1,000 groups, and for one
with a Pods metric."""

import contextlib
import sys
from collections.abc import Iterator

from apiservice.autoscalers.annotations import BY_PARTITIONS, MAX_REPLICAS
from benchmarks.brokers.request_log import recording
from benchmarks.measuring.effort import Effort
from benchmarks.measuring.tables import Row, Table, row
from benchmarks.measuring.window import INTERVAL_SECONDS, Window, watch
from benchmarks.rig.cluster import (
    BROKERS,
    METRIC,
    NAMESPACE,
    Rig,
    groups,
    own_metric,
    say,
    topic_of,
    wait_for_cycles,
    wait_until_read,
)
from local.adapter import adapter
from local.kubernetes.control_plane import Manifest
from local.processes import start, wait_until

GROUPS = (1, 100, 1000)
OTHERS = 4 * BROKERS + 8
"""The goal for all requests but those of every cycle, in a minute."""
TIMEOUT_SECONDS = 90.0
HOW = (
    "Adapters with default settings (interval 10 s), one after another for each number of groups. Requests are those "
    "with the adapter's client id in the brokers' own request log, including the client library's own. Connections "
    "are the most that the process had to the brokers. The group with a Pods metric is a classic one with a member, "
    "and maxReplicas of its HPA follows its partitions; its description in every cycle comes on top of the goal."
)


def measure(rig: Rig, effort: Effort) -> Table:
    rows: list[Row] = []
    with recording(rig.kafka):
        for count in GROUPS:
            say(f"  {count:,} groups: {effort.cycles} cycles")
            rows += _rows("1 group" if count == 1 else f"{count:,} groups", _window(rig, effort, count), OTHERS)
        say(f"  1 group with a Pods metric: {effort.cycles} cycles")
        rows += _rows("1 group with a Pods metric", _window_of_pods(rig, effort), OTHERS + 60 / INTERVAL_SECONDS)
    return Table(f"Requests that reach {BROKERS} brokers", HOW, tuple(rows))


def _window(rig: Rig, effort: Effort, count: int) -> Window:
    home = rig.home / f"adapter-{count}"
    with adapter(rig.plane, home, rig.settings(count)) as running:
        wait_until_read(running, count)
        wait_for_cycles(running, effort.settle_cycles)
        return watch(rig, running, effort.cycles)


def _window_of_pods(rig: Rig, effort: Effort) -> Window:
    settings = {**rig.settings(1), "customMetrics": {"register": True}, "autoscalers": {"maxReplicas": True}}
    components = ("pods-metrics", "autoscalers")
    with (
        _member(rig, groups(1)[0]),
        adapter(rig.plane, rig.home / "adapter-pods", settings, components=components) as running,
    ):
        wait_until_read(running, 1)
        wait_until(
            lambda: own_metric(running, "kafka_lag_adapter_broker_requests_total", request="DescribeGroups") >= 2,
            "descriptions",
            TIMEOUT_SECONDS,
            alive=[running.process],
        )
        wait_for_cycles(running, effort.settle_cycles)
        return watch(rig, running, effort.cycles)


@contextlib.contextmanager
def _member(rig: Rig, group: str) -> Iterator[None]:
    """Runs a member of the group, and has an HPA with a Pods metric of it. What the HPA scales does not exist."""
    hpa = _autoscaler(group)
    rig.plane.apply([hpa])
    options = {"bootstrap-servers": rig.kafka.bootstrap_servers, "group": group, "topic": topic_of(group), "rate": "1"}
    own = (f"--{name}={value}" for name, value in options.items())
    with start("member", [sys.executable, "-m", "local.kafka.consumer", *own], log=rig.home / "member.log"):
        yield
    rig.plane.delete([hpa])


def _autoscaler(group: str) -> Manifest:
    metric = {"name": METRIC, "selector": {"matchLabels": {"group": group}}}
    target = {"type": "AverageValue", "averageValue": "10"}
    return {
        "apiVersion": "autoscaling/v2",
        "kind": "HorizontalPodAutoscaler",
        "metadata": {"name": "pods", "namespace": NAMESPACE, "annotations": {MAX_REPLICAS: BY_PARTITIONS}},
        "spec": {
            "scaleTargetRef": {"apiVersion": "apps/v1", "kind": "Deployment", "name": "pods"},
            "maxReplicas": 20,
            "metrics": [{"type": "Pods", "pods": {"metric": metric, "target": target}}],
        },
    }


def _rows(who: str, window: Window, goal: float) -> list[Row]:
    others = window.others_per_minute
    kinds = ", ".join(f"{kind} {count:.0f}" for kind, count in sorted(others.items()))
    return [
        row(f"{who}: offset requests per cycle", window.offset_requests_per_cycle, 2 * BROKERS, form=".1f"),
        row(f"{who}: all others per minute ({kinds})", sum(others.values()), goal, form=".1f"),
        row(f"{who}: connections", window.connections, BROKERS + 1, form=".0f"),
    ]
