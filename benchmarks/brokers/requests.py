"""Table: the requests that reach the brokers while the adapter only collects, for 1, 100 and 1,000 groups."""

from benchmarks.brokers.request_log import recording
from benchmarks.measuring.effort import Effort
from benchmarks.measuring.tables import Row, Table, row
from benchmarks.measuring.window import Window, watch
from benchmarks.rig.cluster import BROKERS, Rig, say, wait_for_cycles, wait_until_read
from local.adapter import adapter

GROUPS = (1, 100, 1000)
HOW = (
    "Adapters with default settings (interval 10 s), one after another for each number of groups. Requests are those "
    "with the adapter's client id in the brokers' own request log, including the client library's own. Connections "
    "are the most that the process had to the brokers."
)


def measure(rig: Rig, effort: Effort) -> Table:
    rows: list[Row] = []
    with recording(rig.kafka):
        for groups in GROUPS:
            say(f"  {groups:,} groups: {effort.cycles} cycles")
            rows += _rows(groups, _window(rig, effort, groups))
    return Table(f"Requests that reach {BROKERS} brokers", HOW, tuple(rows))


def _window(rig: Rig, effort: Effort, groups: int) -> Window:
    home = rig.home / f"adapter-{groups}"
    with adapter(rig.plane, home, rig.settings(groups)) as running:
        wait_until_read(running, groups)
        wait_for_cycles(running, effort.settle_cycles)
        return watch(rig, running, effort.cycles)


def _rows(groups: int, window: Window) -> list[Row]:
    who = "1 group" if groups == 1 else f"{groups:,} groups"
    others = window.others_per_minute
    kinds = ", ".join(f"{kind} {count:.0f}" for kind, count in sorted(others.items()))
    return [
        row(f"{who}: offset requests per cycle", window.offset_requests_per_cycle, 2 * BROKERS, form=".1f"),
        row(f"{who}: all others per minute ({kinds})", sum(others.values()), 4 * BROKERS + 8, form=".1f"),
        row(f"{who}: connections", window.connections, BROKERS + 1, form=".0f"),
    ]
