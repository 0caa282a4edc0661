"""What must be true of every HPA that a report recommends, whatever the history."""

from collections.abc import Iterator

from spark.advice.advised import Advice
from spark.advice.assessment import Report

KEPT, CHANGES, NEARLY = 0.95, 48, 1.02
A_FIFTH = 0.01
"""Of the minutes in which the wait need not be kept: a replay does not know that messages were read again."""
COMPARED_WITH = ("all the time", "as the preset known peaks", "as the preset initial load")
"""Ends of the names of what is never recommended: replicas without an HPA, and schedules that people set."""


def assert_recommended_hpas_are_proven(*reports: Report) -> None:
    """Each reproduces what happened where it recommends an HPA, and what it recommends keeps the wait most cheaply."""
    faults = [fault for report in reports for fault in faults_in(report)]
    assert not faults, faults


def faults_in(report: Report) -> Iterator[str]:
    """Yields `group: what is wrong` with what is recommended, or recommended although the past is not reproduced."""
    for standing in report.standings:
        yield from (f"{standing.group.name}: {fault}" for fault in faults_of(standing.advice))


def recommended(report: Report) -> dict[str, Advice]:
    return {it.group.name: it.advice for it in report.standings if it.advice.hpa.target.value is not None}


def faults_of(advice: Advice) -> Iterator[str]:
    """By the rule of docs/report.md, from the figures of the page."""
    if advice.hpa.target.value is None:
        return
    expected, replayed = advice.expected, advice.replayed
    if expected is None or replayed is None:
        yield "was not replayed"
        return
    was, again = replayed.calibration.observed, replayed.calibration.replayed
    if abs(again.wait_p95 - was.wait_p95) > 0.25 * was.wait_p95:
        yield f"the past is not reproduced: a wait p95 of {again.wait_p95} s, observed {was.wait_p95} s"
    if abs(again.minutes_above - was.minutes_above) > max(0.1 * was.minutes_above, A_FIFTH * was.minutes):
        yield f"the past is not reproduced: {again.minutes_above} minutes above, observed {was.minutes_above}"
    if expected.kept_share < KEPT:
        yield f"the wait is kept in {expected.kept_share} of the minutes"
    hpas = [line.figures for line in replayed.others if not line.name.endswith(COMPARED_WITH)]
    cheaper = [it for it in hpas if NEARLY * it.replica_hours < expected.replica_hours and it.kept_share >= KEPT]
    if any(it.changes_a_day <= CHANGES for it in cheaper):
        yield "another one is cheaper"
