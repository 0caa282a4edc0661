"""Table: the HPA's read through kube-apiserver, compared with a Namespace read and a bare route."""

import statistics

from benchmarks.measuring.effort import Effort
from benchmarks.measuring.samples import median_ratio
from benchmarks.measuring.tables import Row, Table, row
from benchmarks.rig.bare_route import PATH
from benchmarks.rig.cluster import Rig, groups, read_path, say, wait_until_read
from benchmarks.rig.floor import bare_route, register, unregister
from benchmarks.rig.load import Plan, Slice, Target, run
from local.adapter import adapter

WATCHED = 100
CLIENTS = (1, 5)
MOST_TIMES_A_NAMESPACE_READ = {"p50": 1.0, "p99": 1.15}
HOW = (
    "The same read through a real kube-apiserver with a ServiceAccount's token, in turn with reading a Namespace "
    "through it (the cost of kube-apiserver itself) and with a bare FastAPI route behind its own APIService (the cost "
    "of forwarding to any Python server). Medians over the rounds; ratios are computed for each round."
)
NAMESPACE_READ = "/api/v1/namespaces/default"


def measure(rig: Rig, effort: Effort) -> Table:
    home = rig.home / "reads-through-kube-apiserver"
    path = read_path(groups(1)[0])
    rows: list[Row] = []
    with adapter(rig.plane, home / "adapter", rig.settings(WATCHED)) as running:
        wait_until_read(running, WATCHED)
        status, body = rig.plane.raw(path)
        assert status == 200, body
        with bare_route(home / "bare", body) as bare:
            register(rig.plane, bare)
            for clients in CLIENTS:
                say(f"  {clients} clients: {effort.rounds} rounds")
                rows += _rows(clients, run(_plan(rig, effort, clients, path), home))
            unregister(rig.plane, bare)
    return Table("The same read through kube-apiserver", HOW, tuple(rows))


def _plan(rig: Rig, effort: Effort, clients: int, path: str) -> Plan:
    asked = {"external": path, "namespace": NAMESPACE_READ, "bare": PATH}
    targets = {
        name: Target(rig.plane.port, "localhost", str(rig.plane.cluster_ca), (each,), each, rig.token)
        for name, each in asked.items()
    }
    return Plan(targets, clients, effort.rounds, effort.slice_seconds, effort.warm_up_seconds)


def _rows(clients: int, taken: dict[str, list[Slice]]) -> list[Row]:
    who = "1 client" if clients == 1 else f"{clients} clients"
    rows = [
        Row(f"{who}: external read", _figure(taken["external"])),
        Row(f"{who}: Namespace read", _figure(taken["namespace"])),
        Row(f"{who}: bare route", _figure(taken["bare"])),
    ]
    for name, shown, goals in (("external", "external read", MOST_TIMES_A_NAMESPACE_READ), ("bare", "bare route", {})):
        p50 = median_ratio([s.p50 for s in taken[name]], [s.p50 for s in taken["namespace"]])
        p99 = median_ratio([s.p99 for s in taken[name]], [s.p99 for s in taken["namespace"]])
        rows.append(row(f"{who}: {shown}, p50 as a multiple of the Namespace read's", p50, goals.get("p50"), "x"))
        rows.append(row(f"{who}: {shown}, p99 as a multiple of the Namespace read's", p99, goals.get("p99"), "x"))
    return rows


def _figure(slices: list[Slice]) -> str:
    rate = statistics.median(each.requests_per_second for each in slices)
    p50, p99 = (1000 * statistics.median(values) for values in zip(*((s.p50, s.p99) for s in slices), strict=True))
    return f"{rate:,.0f}/s, p50 {p50:.2f} ms, p99 {p99:.2f} ms"
