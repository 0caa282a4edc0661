"""Table: the cost of a cycle at 1,000, 10,000 and 100,000 partitions, compared with kafka-python's admin calls."""

import statistics
from collections.abc import Sequence
from itertools import pairwise
from pathlib import Path

from benchmarks.cycles.timed import Cost, CyclePlan, run
from benchmarks.measuring.effort import Effort
from benchmarks.measuring.tables import Row, Table, row
from benchmarks.rig.cluster import say
from benchmarks.rig.stored_brokers import stored_brokers
from benchmarks.rig.stored_cluster import PARTITIONS_PER_TOPIC, StoredGroup, groups_of
from local.processes import RigError

NODES = (3, 12)
LARGEST = 100_000
MOST_MILLISECONDS = {3: 120, 12: 200}
WARM_UP = 7
"""Cycles that are not counted. They include one of each kind, so that the fake brokers have seen every request."""
HOW = (
    "N group-partitions and as many topic-partitions (groups of 100 partitions in 5 topics of "
    f"{PARTITIONS_PER_TOPIC}), read from fake brokers on loopback that send stored responses with changing offsets. A "
    "cycle is everything from the requests to the store with its totals, by the adapter's own collector with default "
    "settings, in a process that serves nothing. CPU is that of the process with all its threads. Cycles run one "
    "after another, with the process's clock set forward to the next tick (10 s) between them; every third one also "
    "reads Metadata and the groups, and every sixth one log starts and members. Figures are medians. For comparison, "
    "the same process then runs kafka-python's list_group_offsets for all groups and list_partition_offsets for all "
    "partitions."
)


def measure(home: Path, effort: Effort) -> Table:
    rows: list[Row] = []
    for nodes in NODES:
        medians = []
        for partitions in effort.partitions:
            say(f"  {partitions:,} partitions, {nodes} brokers: {effort.timed_cycles} cycles")
            found, median = _rows(home / f"{partitions}-{nodes}", effort, partitions, nodes)
            rows += found
            medians.append(median)
        rows += _growth(effort.partitions, medians, nodes)
    rows += _one_by_one(home / "one-by-one", effort)
    rows += _from_the_start(home / "from-the-start", effort)
    return Table("CPU of a cycle", HOW, tuple(rows))


def _one_by_one(home: Path, effort: Effort) -> list[Row]:
    """Returns rows for brokers that take one group per request: a cycle's cost then grows with the groups."""
    nodes, groups = NODES[0], groups_of(effort.partitions[-1])
    who = f"{len(groups):,} groups, {nodes} brokers, OffsetFetch for one group at a time"
    say(f"  {who}: {effort.timed_cycles} cycles")
    with stored_brokers(home / "brokers", groups, nodes, takes_groups=False) as cluster:
        plan = CyclePlan(cluster.bootstrap_servers, WARM_UP, effort.timed_cycles, effort.partitions[-1])
        cycles = run(plan, home / "cycles").cycles
    wall = 1000 * statistics.median(cost.wall for cost in plain(cycles))
    return [
        cpu_row(f"{who}: CPU of a cycle", plain(cycles)),
        row(f"{who}: wall time of a cycle", wall, unit=" ms", form=".0f"),
    ]


def _from_the_start(home: Path, effort: Effort) -> list[Row]:
    """Returns rows for the same with more groups, from the first cycle on, in which everything is new."""
    nodes, size = NODES[0], 12
    groups = tuple(StoredGroup(f"group-{number:04}", 1, size) for number in range(effort.partitions[-1] // 20))
    who = f"{len(groups):,} groups of {size} partitions, {nodes} brokers, OffsetFetch for one group at a time"
    say(f"  {who}: {WARM_UP} cycles")
    with stored_brokers(home / "brokers", groups, nodes, takes_groups=False) as cluster:
        costs = run(CyclePlan(cluster.bootstrap_servers, 0, WARM_UP, size * len(groups)), home / "cycles")
    first = costs.cycles[0]
    return [
        row(f"{who}: cycles of the first {WARM_UP} that read everything", costs.outcomes.count("complete"), form=".0f"),
        row(f"{who}: CPU of the first cycle", 1000 * first.cpu, unit=" ms", form=".0f"),
        row(f"{who}: wall time of the first cycle", 1000 * first.wall, unit=" ms", form=".0f"),
        cpu_row(f"{who}: CPU of a cycle", plain(costs.cycles[1:])),
    ]


def _rows(home: Path, effort: Effort, partitions: int, nodes: int) -> tuple[list[Row], float]:
    """Returns the rows, and the median CPU time in seconds."""
    who = f"{partitions:,} partitions, {nodes} brokers"
    most = MOST_MILLISECONDS[nodes] if partitions == LARGEST else None
    with stored_brokers(home / "brokers", groups_of(partitions), nodes) as cluster:
        plan = CyclePlan(
            cluster.bootstrap_servers, WARM_UP, effort.timed_cycles, partitions,
            admin_rounds=effort.admin_rounds,
        )  # fmt: skip
        costs = run(plan, home / "cycles")
        if set(costs.outcomes) != {"complete"}:
            raise RigError(f"{who}: cycles were {', '.join(sorted(set(costs.outcomes)))}: see {home}")
        rows = cost_rows(who, costs.cycles, costs.admin, most)
    return rows, median_cpu(plain(costs.cycles))


def cost_rows(who: str, cycles: Sequence[Cost], calls: Sequence[Cost], most_milliseconds: float | None) -> list[Row]:
    """Returns rows for both kinds of cycles, the admin calls, and the ratio."""
    ratio = median_cpu(plain(cycles)) / median_cpu(calls)
    return [
        *cycle_rows(who, cycles, most_milliseconds),
        cpu_row(f"{who}: CPU of the admin calls", calls),
        row(f"{who}: CPU of a cycle as a multiple of the admin calls'", ratio, unit="x"),
    ]


def cycle_rows(who: str, cycles: Sequence[Cost], most_milliseconds: float | None = None) -> list[Row]:
    """Returns rows for cycles that read only offsets, for those that also read Metadata, and the wall time of the
    first."""
    wall = 1000 * statistics.median(cost.wall for cost in plain(cycles))
    mean = 1000 * statistics.mean(cost.cpu for cost in cycles)
    looking = [cost for cost in cycles if cost.is_looking]
    return [
        cpu_row(f"{who}: CPU of a cycle", plain(cycles), most_milliseconds),
        cpu_row(f"{who}: CPU of every third cycle, which also reads Metadata", looking, most_milliseconds),
        row(f"{who}: mean CPU of all cycles", mean, unit=" ms", form=".0f"),
        row(f"{who}: wall time of a cycle", wall, unit=" ms", form=".0f"),
    ]


def plain(cycles: Sequence[Cost]) -> list[Cost]:
    """Returns the cycles that read only offsets, which most do."""
    return [cost for cost in cycles if not cost.is_looking]


def cpu_row(what: str, costs: Sequence[Cost], most_milliseconds: float | None = None) -> Row:
    """The goal applies to the median; the worst value is added in brackets."""
    taken = [1000 * cost.cpu for cost in costs]
    measured = row(what, statistics.median(taken), most_milliseconds, " ms", ".0f")
    return Row(measured.what, f"{measured.figure} (worst {max(taken):.0f} ms)", measured.goal, measured.verdict)


def median_cpu(costs: Sequence[Cost]) -> float:
    return statistics.median(cost.cpu for cost in costs)


def _growth(partitions: Sequence[int], medians: Sequence[float], nodes: int) -> list[Row]:
    """Returns the ratio between each size and the next."""
    steps = zip(pairwise(partitions), pairwise(medians), strict=True)
    return [
        row(
            f"{nodes} brokers: CPU at {more:,} as a multiple of that at {fewer:,}",
            after / before,
            more / fewer,
            "x",
            ".1f",
        )
        for (fewer, more), (before, after) in steps
    ]
