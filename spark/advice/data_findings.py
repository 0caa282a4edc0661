"""Pure: what a person should know about a group, worst first: trouble in the group, and what the data does not support.

One rule a function; each gives a `Finding` or nothing. Those for trouble are in `spark.advice.group_findings`.
"""

import math
from dataclasses import replace
from functools import partial
from typing import Protocol
from zoneinfo import ZoneInfo

import numpy as np

from adapter.verdicts.capacity import ENOUGH_WINDOWS
from adapter.verdicts.causes import Verdict, explained_by
from spark.advice import group_findings
from spark.advice.demand import Load
from spark.advice.finding import LITTLE_DATA, Finding, Severity
from spark.advice.group_findings import Rule
from spark.advice.incidents import above, growth, hot, late, members, partitions
from spark.figures import formatting
from spark.figures.model import Group, Times

DAY = 86400.0


class RuleWithTimes(Protocol):
    def __call__(self, group: Group, load: Load, /, *, zone: ZoneInfo) -> Finding | None: ...


def findings_of(group: Group, load: Load, zone: ZoneInfo) -> tuple[Finding, ...]:
    """One for each incident: the consequences of a cause are left out."""
    rules: tuple[Rule, ...] = (*(partial(rule, zone=zone) for rule in RULES_WITH_TIMES), *RULES)
    findings = [finding for rule in rules if (finding := rule(group, load)) is not None]
    explained = explained_by([Verdict(finding.code) for finding in findings if finding.is_cause])
    if any(finding.code == Verdict.FALLING_BEHIND for finding in findings):
        findings = [_urgent(finding) for finding in findings]
    return tuple(sorted((it for it in findings if it.code not in explained), key=_urgency))


def _urgent(finding: Finding) -> Finding:
    """Why a group falls behind is as urgent as that it does."""
    explains = finding.is_cause and Verdict.FALLING_BEHIND in explained_by([Verdict(finding.code)])
    return replace(finding, severity=Severity.URGENT) if explains and not finding.is_over else finding


def _urgency(finding: Finding) -> tuple[int, bool]:
    """Of what is worth watching, what goes on comes before what is over, since many people read only the first."""
    return -finding.severity, finding.severity > Severity.NOTE and finding.is_hindsight


def nothing_known(group: Group, _: Load) -> Finding | None:
    if any(len(topic.hours_known) for topic in group.topics):
        return None
    return Finding(
        Verdict.NO_LAG,
        Severity.URGENT,
        "Lag not known",
        "The lag was not known in a single sample of this range.",
        is_cause=True,
    )


def barely_saturated(_: Group, load: Load) -> Finding | None:
    if load.capacity is None or load.capacity.is_firm:
        return None
    return Finding(
        "barely_saturated",
        Severity.NOTE,
        "Hardly ever saturated",
        f"The capacity per member was seen in {formatting.plural(load.capacity.windows, 'window')} only; it is "
        f"reliable from {ENOUGH_WINDOWS} on.",
    )


def little_data(group: Group, load: Load) -> Finding | None:
    """A history's first sample covers no time, so that a whole day is covered but for an interval."""
    if load.covered_seconds >= DAY - 2 * group.interval_seconds:
        return None
    return Finding(
        LITTLE_DATA,
        Severity.NOTE,
        "Less than a day of data",
        f"Less than a day of data ({formatting.duration(load.covered_seconds)}): daily peaks may not have been seen.",
    )


def incomplete(group: Group, _: Load) -> Finding | None:
    seen, due = np.nansum(group.hours.samples), group.expected_samples
    if not due or seen >= 0.95 * due:
        return None
    return Finding(
        Verdict.INCOMPLETE,
        Severity.WATCH if seen < 0.5 * due else Severity.NOTE,
        f"Only {formatting.share(seen / due)} of the samples are there",
        f"Incomplete: {formatting.share(seen / due)} of the expected samples are there.",
    )


def samples_gone(group: Group, _: Load) -> Finding | None:
    """Retention takes samples sooner than hours, and of a long range only the newest samples are read."""
    hours = _number_of([topic.hours_known for topic in group.topics])
    left = _number_of([topic.hours_left for topic in group.topics])
    if left == hours:
        return None
    covered = (
        f"only {formatting.count(left)} of the {formatting.plural(hours, 'hour')}" if left else "none of the hours"
    )
    return Finding(
        "samples_gone",
        Severity.NOTE,
        "Percentiles cover a part of the range",
        f"Percentiles, time above the threshold and capacity cover {covered} with a known lag: those whose samples are "
        "left, of the newest 31 days. The figures of each hour and day are whole.",
    )


def _number_of(hours: list[Times]) -> int:
    return len(np.unique(np.concatenate(hours)))


def nothing_produced(_: Group, load: Load) -> Finding | None:
    if load.peak > 0 or math.isnan(load.peak):
        return None
    return Finding(
        "nothing_produced",
        Severity.NOTE,
        "Nothing was produced",
        "Nothing was produced in this range: there is no load to size for.",
    )


RULES: tuple[Rule, ...] = (
    nothing_known,
    incomplete,
    samples_gone,
    barely_saturated,
    late.rare_commits,
    late.reads_late,
    little_data,
    nothing_produced,
)
RULES_WITH_TIMES: tuple[RuleWithTimes, ...] = (
    partitions.unread_topic,
    group_findings.stuck,
    members.lag_without_members,
    members.unsteady_members,
    partitions.uncommitted,
    partitions.slow_partition,
    hot.hot_partition,
    above.above_threshold,
    growth.growth,
    group_findings.rewinds,
    group_findings.skips,
    group_findings.recreations,
    group_findings.resets,
    group_findings.falling_behind,
    members.idle_members,
)
"""Rules whose text contains times, in the zone of the report."""
