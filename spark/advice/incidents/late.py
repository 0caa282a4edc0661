"""Pure: why messages that wait longer than agreed on may be no trouble."""

from adapter.verdicts.causes import Verdict
from spark.advice.demand import Load
from spark.advice.finding import Finding, Severity
from spark.advice.incidents.spells import MUCH_OF_THE_TIME, counts, share_above
from spark.figures import formatting
from spark.figures.model import Group

ALWAYS = 0.9
"""Of the time."""
SAME_WAIT = 0.1
"""Of the median wait: with no more between p50 and p95, it is always the same."""
COMMITS_EXPLAIN = 1.25
"""Times the time between two commits: a wait that is not longer follows from them alone."""


def rare_commits(group: Group, _: Load) -> Finding | None:
    if group.commit_seconds is None:
        return None
    waits = [topic.waits.p95 for topic in group.topics if topic.waits]
    is_known = bool(waits) and not any("p95" in topic.at_least for topic in group.topics)
    is_cause = is_known and max(waits) <= COMMITS_EXPLAIN * group.commit_seconds + group.interval_seconds
    is_late = is_cause and any(share_above(topic.above) > MUCH_OF_THE_TIME for topic in group.topics if counts(topic))
    return Finding(
        Verdict.RARE_COMMITS,
        Severity.WATCH if is_late else Severity.NOTE,
        "Commits are rarer than samples",
        f"Commits are rarer than samples: about one every {formatting.duration(group.commit_seconds)}, sampled every "
        f"{formatting.duration(group.interval_seconds)}. The lag includes what is processed but not committed, and "
        "moves in steps" + (", which alone are above its threshold." if is_late else "."),
        "Commit more often, or agree on a longer wait (maxWait); more replicas do not help." if is_late else "",
        is_cause=is_cause,
        evidence=f"commits moved in {group.pace.moving} of {formatting.plural(group.pace.lagging, 'sample')}",
    )


def reads_late(group: Group, _: Load) -> Finding | None:
    """A consumer that waits on purpose keeps up, and its messages wait all the same."""
    late = [topic for topic in group.topics if topic.waits and share_above(topic.above) >= ALWAYS and counts(topic)]
    if group.capacity is not None or not late:
        return None
    topic = max(late, key=lambda it: it.waits.p50 if it.waits else 0.0)
    waits = topic.waits
    if waits is None or {"p50", "p95"} & topic.at_least:
        return None
    if waits.p95 - waits.p50 > max(SAME_WAIT * waits.p50, 2 * group.interval_seconds):
        return None
    return Finding(
        Verdict.READS_LATE,
        Severity.WATCH,
        f"Reads {formatting.duration(waits.p50)} late",
        f"Messages of {topic.name} always wait about {formatting.duration(waits.p50)}, however many there are "
        f"({formatting.duration(waits.p95)} at most for {formatting.share(0.95)} of the time): members keep up and "
        "read late, as if on purpose.",
        is_cause=True,
        subject=topic.name,
        evidence=f"{formatting.plural(topic.lag.samples if topic.lag else 0, 'sample')}",
    )
