"""Table: a hundred groups and a hundred HPAs that the real controller reconciles every 15 s; then memory with 500."""

from benchmarks.brokers.request_log import recording
from benchmarks.measuring.effort import Effort
from benchmarks.measuring.samples import memory
from benchmarks.measuring.tables import Row, Table, row
from benchmarks.measuring.window import Window, watch
from benchmarks.rig.cluster import (
    BROKERS,
    HPA_SYNC_SECONDS,
    METRIC,
    NAMESPACE,
    PARTITIONS,
    Rig,
    groups,
    say,
    selector_of,
    wait_for_cycles,
    wait_until_read,
)
from local.adapter import Adapter, adapter
from local.kubernetes.control_plane import Manifest
from local.processes import wait_until

HPAS = 100
MORE_GROUPS = 500
MEGABYTE = 1_000_000
MOST_REQUESTS, MOST_CPU_PERCENT, MOST_MEGABYTES = 60, 1, 110
HOW = (
    f"{HPAS} groups of {PARTITIONS} partitions each on {BROKERS} brokers, with an interval of 10 s, while the real HPA "
    f"controller reconciles {HPAS} HPAs every {HPA_SYNC_SECONDS} s, one for each group. CPU is the process's user and "
    "system time while the brokers log no requests. Memory is its resident set afterwards (in brackets its peak), "
    "without a history."
)


def measure(rig: Rig, effort: Effort) -> Table:
    home = rig.home / "hundred-groups"
    with adapter(rig.plane, home / "adapter", rig.settings(HPAS)) as running:
        wait_until_read(running, HPAS)
        say(f"  making {HPAS} HPAs and waiting until each has a value")
        rig.plane.apply([document for group in groups(HPAS) for document in _scaled(group)])
        wait_until(lambda: _are_active(rig), "all HPAs to have a value", 10 * HPA_SYNC_SECONDS)
        wait_for_cycles(running, effort.settle_cycles)
        say(f"  requests: {effort.cycles} cycles")
        with recording(rig.kafka):
            rows = _request_rows(watch(rig, running, effort.cycles))
        rows += _cost_rows(rig, effort, HPAS, running)
    with adapter(rig.plane, home / "adapter-more", rig.settings(MORE_GROUPS)) as running:
        wait_until_read(running, MORE_GROUPS)
        rows += _cost_rows(rig, effort, MORE_GROUPS, running)
    return Table(f"{HPAS} groups and {HPAS} HPAs", HOW, tuple(rows))


def _cost_rows(rig: Rig, effort: Effort, watched: int, running: Adapter) -> list[Row]:
    """Measured in a separate window, because brokers that log every request use the cores that the adapter shares."""
    say(f"  CPU and memory with {watched} groups: {effort.long_cycles} cycles")
    window = watch(rig, running, effort.long_cycles)
    return [_cpu_row(watched, window), _memory_row(watched, running)]


def _scaled(group: str) -> list[Manifest]:
    """Returns a Deployment whose pod nothing runs, and its HPA, which can scale no further."""
    labels = {"app": group}
    metadata = {"name": group, "namespace": NAMESPACE}
    container = {"name": "worker", "image": "none"}
    target = {"type": "AverageValue", "averageValue": "1000"}
    metric = {"name": METRIC, "selector": {"matchLabels": selector_of(group)}}
    return [
        {
            "apiVersion": "apps/v1",
            "kind": "Deployment",
            "metadata": metadata,
            "spec": {
                "selector": {"matchLabels": labels},
                "template": {"metadata": {"labels": labels}, "spec": {"containers": [container]}},
            },
        },
        {
            "apiVersion": "autoscaling/v2",
            "kind": "HorizontalPodAutoscaler",
            "metadata": metadata,
            "spec": {
                "scaleTargetRef": {"apiVersion": "apps/v1", "kind": "Deployment", "name": group},
                "minReplicas": 1,
                "maxReplicas": 1,
                "metrics": [{"type": "External", "external": {"metric": metric, "target": target}}],
            },
        },
    ]


def _are_active(rig: Rig) -> bool:
    found = rig.plane.get(f"/apis/autoscaling/v2/namespaces/{NAMESPACE}/horizontalpodautoscalers")["items"]
    return sum(_is_active(each) for each in found) == HPAS


def _is_active(autoscaler: Manifest) -> bool:
    conditions = autoscaler.get("status", {}).get("conditions", [])
    return any(each["type"] == "ScalingActive" and each["status"] == "True" for each in conditions)


def _request_rows(window: Window) -> list[Row]:
    kinds = ", ".join(f"{kind} {window.per_minute(count):.0f}" for kind, count in sorted(window.requests.items()))
    return [
        Row(f"{HPAS} groups: reads by the HPA controller per minute", f"{window.per_minute(window.reads):.0f}"),
        row(
            f"{HPAS} groups: Kafka requests per minute ({kinds})", window.requests_per_minute, MOST_REQUESTS, form=".1f"
        ),
    ]


def _cpu_row(watched: int, window: Window) -> Row:
    most = MOST_CPU_PERCENT if watched == HPAS else None
    return row(f"{watched} groups: CPU", 100 * window.cpu_seconds / window.seconds, most, " % of a core")


def _memory_row(watched: int, running: Adapter) -> Row:
    now, peak = (size / MEGABYTE for size in memory(running.process.pid))
    most = MOST_MEGABYTES if watched == HPAS else None
    measured = row(f"{watched} groups: resident memory", now, most, " MB", ".0f")
    return Row(measured.what, f"{measured.figure} ({peak:.0f} MB)", measured.goal, measured.verdict)
