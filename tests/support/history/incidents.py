"""What every finding of a report must say of its beginning and its end."""

from collections.abc import Iterator
from zoneinfo import ZoneInfo

from spark.advice.assessment import Report
from spark.advice.finding import OF_THE_RANGE, Finding
from spark.figures import formatting


def without_times(report: Report) -> Iterator[str]:
    """Yields what is wrong with an incident that has no beginning, or whose sentences lack its beginning or its end.

    What `OF_THE_RANGE` has is no incident, for the reasons that are stated there.
    """
    for standing in report.standings:
        for finding in standing.advice.findings:
            for problem in _problems(finding, report.data.zone):
                yield f"{standing.group.name}, {finding.code}: {problem}: {finding.words}"


def _problems(finding: Finding, zone: ZoneInfo) -> Iterator[str]:
    if finding.code in OF_THE_RANGE:
        if finding.until is not None:
            yield "is no incident, and has an end"
        return
    if finding.since is None:
        yield "no beginning"
    elif formatting.moment(finding.since, zone) not in finding.words:
        yield f"{finding.since} is not said"
    if finding.until is not None and formatting.moment(finding.until, zone) not in finding.words:
        yield f"{finding.until} is not said"
