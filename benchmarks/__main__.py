"""`python -m benchmarks [TABLE ...] [--quick]`: measure on real parts and print the tables as Markdown.

Exit status 0 also where a goal was missed: the table says so. Progress goes to stderr.
"""

import argparse
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

from benchmarks.brokers import frozen, late, requests
from benchmarks.cycles import cost, cost_on_brokers, demand, failing
from benchmarks.history import compact, minutes, report, scale, writer
from benchmarks.measuring.effort import FULL, QUICK, Effort
from benchmarks.measuring.machine import description
from benchmarks.measuring.tables import Table, markdown, with_figures
from benchmarks.reads import (
    busy_cycles,
    direct,
    hundred_groups,
    many_hpas,
    series,
    single,
    status_pages,
    through_kube_apiserver,
    under_strangers,
)
from benchmarks.rig.cluster import rig, say
from benchmarks.scaling import speed
from benchmarks.scaling import table as scaling
from local.processes import RigError, exit_on_sigterm, scratch

# Measured before brokers and control plane are started, which would take part of the machine.
ALONE: dict[str, Callable[[Path, Effort], Table]] = {
    "cycle-cost": cost.measure,
    "cycle-cost-on-brokers": cost_on_brokers.measure,
    "failing-cycles": failing.measure,
    "demand-cost": demand.measure,
    "late-broker": late.measure,
    "many-hpas": many_hpas.measure,
    "history-writer": writer.measure,
    "spark-compact": compact.measure,
    "spark-minutes": minutes.measure,
    "spark-report": report.measure,
    "spark-scale": scale.measure,
    "scaling": scaling.measure,
    "scaling-speed": speed.measure,
}
# The HPAs of the last one stay, and would add their reads to every other.
ON_RIG = {
    "broker-requests": requests.measure,
    "direct-reads": direct.measure,
    "reads-through-kube-apiserver": through_kube_apiserver.measure,
    "reads-under-strangers": under_strangers.measure,
    "busy-cycles": busy_cycles.measure,
    "series": series.measure,
    "status-pages": status_pages.measure,
    "single-reads": single.measure,
    "frozen-broker": frozen.measure,
    "hundred-groups": hundred_groups.measure,
}
TABLES = (*ALONE, *ON_RIG)


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="python -m benchmarks", description="Measure the adapter on real parts.")
    parser.add_argument("tables", nargs="*", metavar="TABLE", help=f"{', '.join(TABLES)}; default: all")
    parser.add_argument("--quick", action="store_true", help="only see that it works: the figures mean little")
    parser.add_argument("--into", type=Path, metavar="PAGE", help="put the figures between the marks of this page, too")
    flags = parser.parse_args(arguments)
    unknown = set(flags.tables) - set(TABLES)
    if unknown:
        parser.error(f"no table {', '.join(sorted(unknown))}; there are {', '.join(TABLES)}")
    names = [name for name in TABLES if name in flags.tables or not flags.tables]
    try:
        with exit_on_sigterm():
            figures = "\n".join(_measured(names, is_quick=flags.quick))
        if flags.into:
            flags.into.write_text(with_figures(flags.into.read_text(), figures))
    except RigError as error:
        print(error, file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        return 130
    return 0


def _measured(names: Sequence[str], *, is_quick: bool) -> list[str]:
    """Yields the machine's description and the tables, each as soon as it is complete."""
    effort = QUICK if is_quick else FULL
    parts = [_printed(description())]
    if is_quick:
        parts.append(_printed("Measured with --quick: short, so that the figures mean little.\n"))
    began = time.monotonic()
    for name, table in _tables(names, effort):
        parts.append(_printed(markdown(table)))
        say(f"{name} done {time.monotonic() - began:.0f} s after the start")
    return parts


def _tables(names: Sequence[str], effort: Effort) -> Iterator[tuple[str, Table]]:
    """Yields each table as soon as it is complete; starts brokers and a control plane only if a table needs them."""
    for name in (name for name in names if name in ALONE):
        say(name)
        with scratch("benchmarks") as home:
            yield name, ALONE[name](home, effort)
    on_rig = [name for name in names if name in ON_RIG]
    if on_rig:
        with rig() as running:
            for name in on_rig:
                say(name)
                yield name, ON_RIG[name](running, effort)


def _printed(text: str) -> str:
    print(text, flush=True)
    return text


if __name__ == "__main__":
    sys.exit(main())
