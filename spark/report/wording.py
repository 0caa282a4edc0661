"""Pure: the sentences that the page, Markdown and the command's output have in common."""

from spark.advice.assessment import Report
from spark.advice.finding import Severity
from spark.figures import formatting

MOST_SKIPPED = 50
"""Skipped files and gaps that are listed; all are in the JSON."""


def range_in_words(report: Report) -> str:
    data, zone = report.data, report.data.zone
    age = data.age_seconds
    since, until = (formatting.moment(at, zone) for at in (data.since, data.until))
    of_data = "" if age is None else f" The newest data is {formatting.duration(age)} old."
    return f"{since} to {until}, times in {zone.key}.{of_data}"


def at_a_glance(report: Report) -> str:
    """A few sentences: how old the data is, and which groups need attention."""
    age = report.data.age_seconds
    if not report.data.is_stale:
        return _who(report)
    return f"The newest data is {formatting.duration(age)} old: what it shows may be over. {_who(report)}"


def coverage_in_words(report: Report) -> list[str]:
    coverage, skipped = report.coverage, report.data.skipped
    return [
        (
            f"{formatting.share(coverage.share)} of the expected samples of a lag were seen: "
            f"{formatting.count(coverage.samples)} of {formatting.count(coverage.expected_samples)}, "
            "a sample being one topic of one group."
        ),
        (
            f"{formatting.plural(coverage.missing_hours, 'hour')} between the first and the last sample "
            f"{'has' if coverage.missing_hours == 1 else 'have'} no sample of any group; "
            f"{formatting.plural(coverage.late_samples, 'sample')} came after a gap of any length."
        ),
        (
            f"{formatting.plural(coverage.resets, 'reset')} of log ends, "
            f"{formatting.plural(coverage.rewinds, 'rewind')} of commits, "
            f"{formatting.plural(coverage.recreations, 'partition')} begun anew because the topic was made again."
        ),
        f"{formatting.plural(len(skipped), 'file')} of the history {'was' if len(skipped) == 1 else 'were'} skipped.",
    ]


def _who(report: Report) -> str:
    standings = report.standings
    if not standings:
        return "There is no group in this range."
    urgent = [it.called for it in standings if it.severity is Severity.URGENT]
    watched = [it.called for it in standings if it.severity is Severity.WATCH]
    if not urgent and not watched:
        return f"None of {formatting.plural(len(standings), 'group')} needs attention."
    said = []
    if urgent:
        said.append(
            f"{formatting.plural(len(urgent), 'group')} of {len(standings)} {'needs' if len(urgent) == 1 else 'need'} "
            f"attention now: {_listed(urgent)}."
        )
    if watched:
        said.append(f"Worth watching: {_listed(watched)}.")
    return " ".join(said)


def _listed(names: list[str]) -> str:
    shown = ", ".join(names[:5])
    return shown if len(names) <= 5 else f"{shown} and {len(names) - 5} more"
