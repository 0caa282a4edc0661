"""Table: an external read without kube-apiserver, with TLS, TokenReview and SubjectAccessReview, and a bare route."""

import os
import statistics
from pathlib import Path

from benchmarks.measuring.effort import Effort
from benchmarks.measuring.samples import median_ratio, run_on
from benchmarks.measuring.tables import Row, Table, row
from benchmarks.rig.cluster import Rig, groups, read_path, say, wait_for_cycles, wait_until_read
from benchmarks.rig.floor import BareRoute, bare_route
from benchmarks.rig.load import Plan, Slice, Target, run
from local.adapter import SERVER_NAME, Adapter, adapter

WATCHED = 100
CONNECTIONS = (1, 25)
MOST_TIMES_THE_FLOOR = 1.5
HOW = (
    "The lag of one group by the HPA's selector, read over TLS on kept connections with a ServiceAccount's token "
    "(TokenReview and SubjectAccessReview, cached for 30 s and 60 s as usual), in turn with a bare FastAPI route that "
    "returns the same bytes, without authentication, on uvicorn with the same settings (uvloop, httptools, TLS). The "
    "servers share one core, the load generator has the other. Medians over the rounds; ratios are computed for each "
    "round. A first read is one of 100 queries that are new since the latest cycle, so its reply is not cached."
)


def measure(rig: Rig, effort: Effort) -> Table:
    home = rig.home / "direct-reads"
    with adapter(rig.plane, home / "adapter", rig.settings(WATCHED)) as running:
        wait_until_read(running, WATCHED)
        with bare_route(home / "bare", _reply(running, rig.token)) as bare:
            cores = _apart(running, bare)
            rows: list[Row] = []
            for connections in CONNECTIONS:
                say(f"  {connections} connections: {effort.rounds} rounds")
                plan = _plan(running, bare, rig.token, effort, connections, cores)
                rows += _rows(connections, run(plan, home))
            rows += _first_reads(running, bare, rig.token, effort, home)
    return Table("One external read, direct", HOW, tuple(rows))


def _reply(running: Adapter, token: str) -> bytes:
    status, body = running.get(read_path(groups(1)[0]), headers={"Authorization": f"Bearer {token}"})
    assert status == 200, body
    return body


def _apart(running: Adapter, bare: BareRoute) -> int | None:
    """Puts both servers on one core; returns the load generator's core, None if there is only one."""
    first, *others = sorted(os.sched_getaffinity(0))
    if not others:
        return None
    for process in (running.process, bare.process):
        run_on(process.pid, {first})
    return others[0]


def _plan(running: Adapter, bare: BareRoute, token: str, effort: Effort, connections: int, core: int | None) -> Plan:
    path = read_path(groups(1)[0])
    targets = {"adapter": _target(running, token, (path,), path), "bare": bare.target}
    return Plan(targets, connections, effort.rounds, effort.slice_seconds, effort.warm_up_seconds, core=core)


def _target(running: Adapter, token: str, paths: tuple[str, ...], warm_up_path: str) -> Target:
    return Target(running.port, SERVER_NAME, str(running.serving.authority), paths, warm_up_path, token)


def _rows(connections: int, taken: dict[str, list[Slice]]) -> list[Row]:
    who = "1 connection" if connections == 1 else f"{connections} connections"
    ratio = median_ratio([each.p50 for each in taken["adapter"]], [each.p50 for each in taken["bare"]])
    client = statistics.median(each.client_cpu_seconds / each.seconds for each in taken["adapter"])
    return [
        Row(f"{who}: external read", _figure(taken["adapter"])),
        Row(f"{who}: bare route", _figure(taken["bare"])),
        row(f"{who}: p50 as a multiple of the bare route's", ratio, MOST_TIMES_THE_FLOOR, "x"),
        row(f"{who}: core used by the load generator", 100 * client, unit=" %", form=".0f"),
    ]


def _figure(slices: list[Slice]) -> str:
    rate = statistics.median(each.requests_per_second for each in slices)
    p50, p99 = (1000 * statistics.median(values) for values in zip(*((s.p50, s.p99) for s in slices), strict=True))
    return f"{rate:,.0f}/s, p50 {p50:.3f} ms, p99 {p99:.3f} ms"


def _first_reads(running: Adapter, bare: BareRoute, token: str, effort: Effort, home: Path) -> list[Row]:
    """Each round begins just after a cycle and ends long before the next."""
    say(f"  first reads after a cycle: {effort.first_read_rounds} rounds")
    other_metric = read_path(groups(1)[0], "kafka_consumergroup_records_lag_max")
    asked = tuple(read_path(group) for group in groups(WATCHED))
    targets = {"adapter": _target(running, token, asked, other_metric), "bare": bare.target}
    plan = Plan(targets, 1, 1, 5.0, 0.5, slice_requests=WATCHED)
    rounds = []
    for _ in range(effort.first_read_rounds):
        wait_for_cycles(running, 1)
        rounds.append(run(plan, home))
    adapter_slices, bare_slices = ([each[name][0] for each in rounds] for name in ("adapter", "bare"))
    ratio = median_ratio([each.p50 for each in adapter_slices], [each.p50 for each in bare_slices])
    return [
        Row("1 connection: first read after a cycle", _figure(adapter_slices)),
        row("1 connection: its p50 as a multiple of the bare route's", ratio, unit="x"),
    ]
