"""Table: the cost of a cycle when thousands of groups or topics are refused, each with a separate error."""

from pathlib import Path

from benchmarks.cycles.cost import WARM_UP, cpu_row, median_cpu, plain
from benchmarks.cycles.timed import Cost, CyclePlan, run
from benchmarks.measuring.effort import Effort
from benchmarks.measuring.tables import Row, Table, row
from benchmarks.rig.cluster import say
from benchmarks.rig.stored_brokers import stored_brokers
from benchmarks.rig.stored_cluster import Refusal, StoredGroup
from local.processes import RigError

NODES = 3
PARTITIONS = 10
MOST_TIMES_THE_QUIET_ONE = 2
CASES = {None: "all is well", Refusal.GROUPS: "every group is refused", Refusal.TOPICS: "every topic is refused"}
HOW = (
    f"Groups of {PARTITIONS} partitions, each with a separate topic, read from {NODES} fake brokers as in the table "
    "above. After a few good cycles the brokers answer that the client may not describe the groups (OffsetFetch, "
    "error 30), or the topics (ListOffsets, error 29). Every row keeps its last good values and has an error that "
    "names its group or topic, so there are as many different errors as groups or topics."
)


def measure(home: Path, effort: Effort) -> Table:
    rows: list[Row] = []
    quiet = 0.0
    for refusal, words in CASES.items():
        who = f"{effort.failing_groups:,} groups and topics, {words}"
        say(f"  {who}: {effort.timed_cycles} cycles")
        cycles = plain(_cycles(home / (refusal or "quiet"), effort, refusal))
        rows.append(cpu_row(f"{who}: CPU of a cycle", cycles))
        if refusal is None:
            quiet = median_cpu(cycles)
        else:
            times = median_cpu(cycles) / quiet
            rows.append(row(f"{who}: as a multiple of the quiet one", times, MOST_TIMES_THE_QUIET_ONE, "x"))
    return Table("CPU of a cycle in which everything fails", HOW, tuple(rows))


def _cycles(home: Path, effort: Effort, refusal: Refusal | None) -> list[Cost]:
    groups = tuple(StoredGroup(f"group-{number:05}", 1, PARTITIONS) for number in range(effort.failing_groups))
    with stored_brokers(home / "brokers", groups, NODES, refusal) as cluster:
        servers, rows = cluster.bootstrap_servers, len(groups) * PARTITIONS
        costs = run(CyclePlan(servers, WARM_UP, effort.timed_cycles, rows), home / "cycles")
    expected = "complete" if refusal is None else "failed"
    if set(costs.outcomes) != {expected}:
        raise RigError(f"cycles were {', '.join(sorted(set(costs.outcomes)))} instead of {expected}: see {home}")
    return costs.cycles
