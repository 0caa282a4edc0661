"""Topics that no member reads."""

from dataclasses import replace
from datetime import timedelta
from zoneinfo import ZoneInfo

from spark.advice.demand import load_of
from spark.advice.finding import Severity
from spark.advice.incidents.partitions import unread_topic
from spark.figures.incidents import TopicIncidents, UnreadTopic
from spark.figures.model import TopicFigures
from tests.support.history.report_groups import MONDAY, group, topic

UTC = ZoneInfo("UTC")


def unread(name: str, since: int, *, was_read: bool) -> TopicFigures:
    """`since`: how many hours after the beginning of the range nobody read it any more."""
    of = UnreadTopic(MONDAY + timedelta(hours=since), 500, 900, was_read)
    return replace(topic(name), incidents=TopicIncidents(unread=of))


def test_a_topic_that_was_never_read_in_the_range_may_have_been_left_earlier_whatever_others_were() -> None:
    both = group("billing", topic("orders"), unread("old", 0, was_read=False), unread("mail", 30, was_read=True))
    said = unread_topic(both, load_of(both), zone=UTC)

    assert said is not None
    assert said.severity is Severity.URGENT
    assert said.words == (
        "No member has read old, mail since Mon 2026-06-01 00:00 or earlier, 2\u202fd, although members read other "
        "topics of the group; 1\u202f800 messages wait there."
    )
