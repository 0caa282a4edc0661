"""Table: ways to scale consumers, compared on a suite of loads. Draws docs/scaling.svg, too, unless it is quick."""

from collections.abc import Iterator, Sequence
from pathlib import Path

import numpy as np

from benchmarks.measuring.effort import Effort
from benchmarks.measuring.tables import Row, Table, Verdict, row
from benchmarks.rig.cluster import say
from benchmarks.scaling.picture import medians_of, picture
from benchmarks.scaling.policies import LAG, POLICIES, REQUIRED, STARTED
from benchmarks.scaling.suite import Figures, Result, run
from benchmarks.scaling.workloads import HOURS, PARTITIONS, USUAL_ASSIGNOR, USUAL_START

PICTURE = Path(__file__).parents[2] / "docs" / "scaling.svg"
WAVE, CONSTANT, HOT = "wave 20K to 120K", "constant 85K", "one hot partition"
LEAST_SAVED, MOST_WAIT, MOST_OF_ORACLE = 0.7, 0.1, 1.15
SHOWN = (LAG, "keda", "rate", "flink", "packed-lag", REQUIRED)
HOW = (
    "Each policy decides for the same simulated groups: 40 partitions and members that read 100 messages/s, unless the "
    "workload says otherwise, for six hours. Every workload runs with three assignors (`range`, with pauses of 6 s for "
    "all members; `cooperative-sticky`, 6 s for what moves; KIP-848's `uniform`, 3 s) and with pods that start in 10, "
    "30 and 120 s and join 10 s later. The controller syncs every 15 s, and the adapter samples every 10 s. Lag HPAs "
    "are the best of 21 (7 targets, 3 windows) for each run on its own: the cheapest that is late in at most 1 % of "
    "the minutes, otherwise the one that is late least. Nothing else is tuned. Noise has a fixed seed, so every run "
    "gives the same. A minute is late if, at its end, some message has waited longer than 30 s."
)


def measure(home: Path, effort: Effort) -> Table:  # noqa: ARG001 - nothing is written
    results = run(say, effort.scaling_hours)
    if effort.scaling_hours == HOURS:
        PICTURE.write_text(picture(results), encoding="utf-8")
    return Table(
        "Ways to scale, simulated",
        "\n".join([HOW, "", *_by_policy(results), "", *_by_workload(results)]),
        goals(results),
    )


def goals(results: Sequence[Result]) -> tuple[Row, ...]:
    lag, ours = _runs(results, WAVE, LAG), _runs(results, WAVE, REQUIRED)
    saved = [mine.figures.replica_hours / other.figures.replica_hours for mine, other in zip(ours, lag, strict=True)]
    waits, foreseen = (
        [it.figures.wait_p99 / other.figures.wait_p99 for it, other in zip(own, lag, strict=True)]
        for own in (ours, _runs(results, WAVE, STARTED))
    )
    usual = [_is_usual(it) for it in ours].index(True)
    above = [it.of_oracle for it in ours]
    changes = sum(it.figures.settled_changes for it in _runs(results, CONSTANT, REQUIRED))
    most = max(it.figures.most for it in _runs(results, HOT, REQUIRED))
    return (
        row(f"{WAVE}: replica-hours, as a share of the lag HPA's", saved[usual], LEAST_SAVED),
        row("the same, the worst of nine settings", max(saved), LEAST_SAVED),
        row(f"{WAVE}: wait p99, as a share of the lag HPA's", waits[usual], MOST_WAIT),
        row("the same, the worst of nine settings", max(waits), MOST_WAIT),
        row("the same of the oracle, if its pods start, too", max(foreseen)),
        row(f"{WAVE}: replica-hours, as a multiple of the oracle's", above[usual], MOST_OF_ORACLE),
        row("the same, the worst of nine settings", max(above), MOST_OF_ORACLE),
        row(f"{CONSTANT}: changes after ten minutes, in all nine settings", changes, 0, form=".0f"),
        row(f"{HOT}: most replicas, of {PARTITIONS}", most, PARTITIONS - 1, form=".0f"),
        _worse(results),
    )


def worse_in_both(results: Sequence[Result]) -> list[Result]:
    """Those of `required_replicas` that cost more than the lag HPA and make messages wait longer."""
    others = {_setting(it): it.figures for it in results if it.policy == LAG}
    return [it for it in results if it.policy == REQUIRED and _is_worse(it.figures, others[_setting(it)])]


def _is_worse(one: Figures, other: Figures) -> bool:
    return one.replica_hours > other.replica_hours and one.wait_p99 > other.wait_p99


def _worse(results: Sequence[Result]) -> Row:
    worse, number = worse_in_both(results), len({_setting(it) for it in results})
    names = "; ".join(sorted({f"{it.workload}, {it.assignor}, {it.start_seconds:g} s" for it in worse}))
    figure = f"{len(worse)} of {number}" + (f" ({names})" if names else "")
    verdict = Verdict.MISSED if worse else Verdict.MET
    return Row("settings in which it costs more and waits longer than the lag HPA", figure, "0", verdict)


def _setting(result: Result) -> tuple[str, str, float]:
    return result.workload, result.assignor, result.start_seconds


def _is_usual(result: Result) -> bool:
    return (result.assignor, result.start_seconds) == (USUAL_ASSIGNOR.value, USUAL_START)


def _runs(results: Sequence[Result], workload: str, policy: str) -> list[Result]:
    return [it for it in results if (it.workload, it.policy) == (workload, policy)]


def _by_policy(results: Sequence[Result]) -> Iterator[str]:
    """Over all settings. Figures of late minutes and costs are without the workloads on which every policy is late."""
    yield "All settings; costs and late minutes without hot partitions, for which every policy is late:"
    yield ""
    yield "| policy | replica-hours ÷ oracle, median | late minutes | wait p99, median | changes an hour | reversals |"
    yield "|---|---|---|---|---|---|"
    for policy in POLICIES:
        own = [it for it in results if it.policy == policy.key]
        hours = [_hours(it) for it in own]
        of_oracle, late = medians_of(policy.key, results)
        p99 = np.median([it.figures.wait_p99 for it in own])
        changes, reversals = (
            sum(getattr(it.figures, name) for it in own) / sum(hours) for name in ("changes", "reversals")
        )
        cells = f"{of_oracle:.2f} | {100 * late:.1f} % | {p99:,.0f} s | {changes:.1f} | {reversals:.1f}"
        yield f"| {policy.name} | {cells} |"


def _hours(result: Result) -> float:
    return result.figures.minutes / 60


def _by_workload(results: Sequence[Result]) -> Iterator[str]:
    """With the usual assignor and start time: replica-hours as a multiple of the oracle's, wait p99, late minutes."""
    names = {policy.key: policy.name for policy in POLICIES}
    usual = {(it.workload, it.policy): it for it in results if _is_usual(it)}
    setting = f"With `{USUAL_ASSIGNOR}` and pods that start in {USUAL_START:g} s"
    yield f"{setting}: replica-hours ÷ oracle, wait p99, late minutes"
    yield ""
    yield f"| workload | {' | '.join(names[key] for key in SHOWN)} |"
    yield f"|---{'|---' * len(SHOWN)}|"
    for workload in dict.fromkeys(it.workload for it in results):
        cells = [_cell(usual[workload, key]) for key in SHOWN]
        yield f"| {workload} | {' | '.join(cells)} |"


def _cell(result: Result) -> str:
    of = result.figures
    return f"{result.of_oracle:.2f}, {of.wait_p99:,.0f} s, {100 * of.late_share:.0f} %"
