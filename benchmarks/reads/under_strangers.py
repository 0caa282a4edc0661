"""Table: reads of a known caller while clients without credentials cost the server as much as they can."""

import sys

from benchmarks.measuring.effort import Effort
from benchmarks.measuring.samples import memory, percentile
from benchmarks.measuring.tables import Row, Table, row
from benchmarks.reads.busy_cycles import refuse_bad
from benchmarks.rig.cluster import Rig, groups, read_path, say, wait_until_read
from benchmarks.rig.paced_reads import Read, Reader
from benchmarks.rig.rude_clients import DEAR, GREEDY, IDLE, SLOW
from local.adapter import adapter
from local.processes import start, wait_until

WATCHED = 100
EVERY_SECONDS = 0.02
MOST_P99_MILLISECONDS = 20
MOST_MEGABYTES = 60
CONNECT_SECONDS = 120.0
SPARE_SECONDS = 5.0
HOW = (
    f"A caller with a ServiceAccount's token reads the lag of {WATCHED} groups, {1 / EVERY_SECONDS:.0f} reads a second "
    f"on one kept connection; a read that waits for the previous one counts from when it was due. Strangers: {DEAR} "
    "connections send requests with 15 KB of query, path, `Accept`, escapes or headers, or an invalid token, each as "
    f"soon as the previous one is answered; {SLOW} send a request's head byte by byte; {IDLE:,} have connected and "
    f"send nothing; {GREEDY:,}, half of them to the port without TLS, send pipelines of eight requests of 15 or 56 KB, "
    "heads, bodies and trailers without end, or 50 reads of `/metrics`, and read nothing. They run in a separate "
    "process, on the same two cores as the server, brokers and control plane."
)


def measure(rig: Rig, effort: Effort) -> Table:
    home = rig.home / "reads-under-strangers"
    paths = [read_path(group) for group in groups(WATCHED)]
    with adapter(rig.plane, home / "adapter", rig.settings(WATCHED)) as running, Reader(running, rig.token) as reader:
        wait_until_read(running, WATCHED)
        say(f"  {effort.rude_seconds:.0f} s without strangers")
        quiet = reader.paced(paths, EVERY_SECONDS, effort.rude_seconds)
        resident, _ = memory(running.process.pid)
        ready, log = home / "ready", home / "rude-clients.log"
        seconds = effort.rude_seconds + SPARE_SECONDS
        command = [sys.executable, "-m", "benchmarks.rig.rude_clients"]
        command += [str(each) for each in (running.port, running.metrics_port, ready, seconds)]
        with start("rude clients", command, log=log) as rude:
            wait_until(ready.exists, "the strangers to connect", CONNECT_SECONDS, alive=[rude])
            say(f"  {effort.rude_seconds:.0f} s with them")
            beset = reader.paced(paths, EVERY_SECONDS, effort.rude_seconds)
            _, peak = memory(running.process.pid)
            rude.wait(seconds)
        say(f"  expensive requests answered: {log.read_text().strip()}")
    refuse_bad(quiet + beset)
    answered = int(log.read_text().split()[0]) / seconds
    return Table("Reads under strangers", HOW, _rows(quiet, beset, answered, (peak - resident) / 2**20))


def _rows(quiet: list[Read], beset: list[Read], answered: float, grown: float) -> tuple[Row, ...]:
    taken = {name: [1000 * read.seconds for read in reads] for name, reads in (("quiet", quiet), ("beset", beset))}
    return (
        Row(
            "no strangers: a read",
            f"p50 {percentile(taken['quiet'], 50):.1f} ms, p99 {percentile(taken['quiet'], 99):.1f} ms",
        ),
        row("strangers: a read, p50", percentile(taken["beset"], 50), unit=" ms", form=".1f"),
        row("strangers: a read, p99", percentile(taken["beset"], 99), MOST_P99_MILLISECONDS, " ms", ".1f"),
        row("strangers: the longest read", max(taken["beset"]), unit=" ms", form=".0f"),
        row("strangers: expensive requests answered or refused a second", answered, form=".0f"),
        row("additional peak memory with strangers", grown, MOST_MEGABYTES, " MB", ".0f"),
    )
