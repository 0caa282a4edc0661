"""Table: memory for thousands of HPAs, and how long listing and following them keeps the server from answering."""

import statistics
import sys
import time
from pathlib import Path

from benchmarks.measuring.effort import Effort
from benchmarks.measuring.heartbeat import Watched, longest_stretch
from benchmarks.measuring.samples import memory
from benchmarks.measuring.tables import Row, Table, row
from benchmarks.rig.cluster import say
from benchmarks.rig.measured_server import WRITE_SECONDS
from benchmarks.rig.stored_hpas import UPDATES_PER_SECOND, StoredHpas, hpa, stored_hpas
from local.adapter import process
from local.processes import free_port, wait_until

HPAS = 5_000
OURS = (500, HPAS)
LAG, OTHER = "kafka_consumergroup_lag", "s0-kafka-orders"
MEGABYTE = 1_000_000
MOST_MEGABYTES, MOST_MILLISECONDS = 10, 20
TIMEOUT_SECONDS = 60.0
HOW = (
    f"The real server beside a fake kube-apiserver, which first has no HPA and then {HPAS:,} of about 3.6 KB: it "
    "reports that the watched version is gone, so that the server lists all of them while it serves. Some use a metric "
    f"of the adapter. Then {UPDATES_PER_SECOND} of them change a second. Memory is the resident set of the server "
    "beyond the one without HPAs. A task in the event loop that should wake up every millisecond shows how long the "
    "loop was blocked: the median of the longest times in each of several rounds, with the worst in brackets, because "
    "such a task is sometimes late by more than 20 ms on a machine that does nothing else. A round is a list, or a few "
    "seconds."
)


def measure(home: Path, effort: Effort) -> Table:
    rows = [line for ours in OURS for line in _rows(home / f"hpas-{ours}", effort, ours)]
    return Table(f"{HPAS:,} HPAs", HOW, tuple(rows))


def _rows(home: Path, effort: Effort, ours: int) -> list[Row]:
    who = f"{ours:,} with a metric of the adapter"
    say(f"  {who}")
    home.mkdir(parents=True, exist_ok=True)
    kubeconfig, heartbeats = home / "kubeconfig", home / "heartbeats"
    settings = {"clusters": [{"name": "main", "bootstrapServers": [f"127.0.0.1:{free_port()}"]}]}
    program = [sys.executable, "-m", "benchmarks.rig.measured_server", str(heartbeats)]
    with stored_hpas() as (stored, text):
        kubeconfig.write_text(text)
        with process(home, settings, kubeconfig, program=program) as adapter:
            server = Watched(adapter, heartbeats)
            wait_until(lambda: stored.watches == 1, "the watch of no HPAs", TIMEOUT_SECONDS)
            time.sleep(effort.slice_seconds)
            before, idle = memory(adapter.process.pid)[0], _blocking(server, time.monotonic() - effort.slice_seconds)
            hpas = [hpa(number, LAG if number < ours else OTHER) for number in range(HPAS)]
            listed = [_list(stored, server, hpas)]
            followed = _follow(stored, server, effort.busy_seconds, effort.rounds)
            after, peak = memory(adapter.process.pid)
            listed += [_list(stored, server, hpas) for _ in range(1, effort.rounds)]
    grown = row(f"{who}: memory more", (after - before) / MEGABYTE, MOST_MEGABYTES, " MB", ".1f")
    return [
        Row(grown.what, f"{grown.figure} (peak {(peak - before) / MEGABYTE:.1f} MB)", grown.goal, grown.verdict),
        row(f"{who}: longest blocking of the loop before the list", idle, unit=" ms", form=".1f"),
        _blocking_row(f"{who}: longest blocking of the loop by the list", listed),
        _blocking_row(f"{who}: longest blocking of the loop by the changes", followed),
    ]


def _blocking_row(what: str, rounds: list[float]) -> Row:
    """The goal applies to the median; the worst value is added in brackets."""
    median = row(what, statistics.median(rounds), MOST_MILLISECONDS, " ms", ".1f")
    return Row(median.what, f"{median.figure} (worst {max(rounds):.1f} ms)", median.goal, median.verdict)


def _list(stored: StoredHpas, server: Watched, hpas: list[bytes]) -> float:
    """Returns the longest blocking in milliseconds."""
    began, watches = time.monotonic(), stored.watches
    stored.replace(hpas)
    wait_until(lambda: stored.watches > watches, "the watch of all HPAs", TIMEOUT_SECONDS)
    return _blocking(server, began)


def _follow(stored: StoredHpas, server: Watched, seconds: float, rounds: int) -> list[float]:
    """Returns the longest blocking of each round in milliseconds."""
    stored.is_updating = True
    longest = []
    for _ in range(rounds):
        began = time.monotonic()
        time.sleep(seconds / rounds)
        longest.append(_blocking(server, began))
    stored.is_updating = False
    return longest


def _blocking(server: Watched, began: float) -> float:
    ended = time.monotonic()
    time.sleep(2 * WRITE_SECONDS)  # until the last beats are in the file
    return 1000 * longest_stretch(server.late_beats(), began, ended)
