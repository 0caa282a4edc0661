"""A dozen groups with one planted fault each, from samples to the report: each leads to the right first sentence, and
an incident to one finding."""

from datetime import timedelta

import pytest
from pyspark.sql import SparkSession

from spark.advice.assessment import Report, Standing
from spark.advice.finding import Severity
from tests.support.history.compacting import compacted, reported
from tests.support.history.incidents import without_times
from tests.support.history.planted_faults import LENGTH, Partition, Plant, partitions, steady, until
from tests.support.history.recommendations import assert_recommended_hpas_are_proven
from tests.support.history.written_history import START, write

STUCK_AT = 20 * 60 + 17
"""The minute of the last commit: 2026-11-21 02:17."""
STOPS = until(STUCK_AT + 1, steady(100))
PAUSES = until(300, steady(100), until(600, steady(0), steady(100)))
SLOW = steady(8)
HOT = Partition("orders", 3, produced=steady(150), consumed=steady(120))


def owned(topic: str, *owners: str) -> tuple[Partition, ...]:
    return tuple(Partition(topic, number, owner=owner) for number, owner in enumerate(owners))


def stopped(topic: str, number: int) -> tuple[Partition, ...]:
    return tuple(Partition(topic, each, consumed=STOPS, owner="m-1") for each in range(number))


MEMBERS = [f"m-{number:02}" for number in range(18)]
PLANTS = (
    Plant("healthy", partitions("orders", 4)),
    Plant("one partition of twelve", partitions("orders", 12, p7=Partition("orders", 7, consumed=STOPS, owner="m-1"))),
    Plant("one topic of two", (*partitions("orders", 4), *stopped("payments", 3))),
    Plant("all partitions", stopped("orders", 4)),
    Plant(
        "over",
        partitions("orders", 4, p1=Partition("orders", 1, consumed=PAUSES)),
    ),
    Plant("through a gap", stopped("orders", 2), gap=range(STUCK_AT + 70, STUCK_AT + 400)),
    Plant("members not counted", partitions("orders", 4, p2=Partition("orders", 2, consumed=STOPS)), lambda _: None),
    Plant("no members", stopped("orders", 4), lambda minute: 2 if minute < STUCK_AT else 0),
    Plant("too slow", tuple(Partition("orders", number, consumed=SLOW) for number in range(4))),
    Plant("too slow with all members", tuple(Partition("orders", number, consumed=SLOW) for number in range(2))),
    Plant(
        "hot",
        partitions("orders", 6, p3=Partition("orders", 3, produced=steady(150), consumed=steady(120))),
        lambda _: 6,
    ),
    Plant(
        "partly uncommitted",
        partitions("orders", 4, p2=Partition("orders", 2, is_committed=False, offset_reset="earliest")),
    ),
    Plant(
        "never committed",
        tuple(Partition("orders", each, is_committed=False, offset_reset="earliest") for each in range(2)),
    ),
    Plant("never committed, from the end", (Partition("orders", 0, is_committed=False),), lambda _: 1),
    Plant("range", owned("orders", *MEMBERS[:12]) + owned("payments", *MEMBERS[:6]), lambda _: 14),
    Plant("uniform", owned("orders", *MEMBERS[:12]) + owned("payments", *MEMBERS[12:]), lambda _: 18),
    Plant(
        "share group", (*owned("orders", "m-0", "m-1"), *(Partition("orders", each) for each in (2, 3))), lambda _: 6
    ),
    Plant("unknown assignment", (*partitions("orders", 12), *partitions("payments", 6)), lambda _: 14),
)


@pytest.fixture(scope="module")
def made(spark_session: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> Report:
    root = tmp_path_factory.mktemp("planted")
    write(root / "history", [row for plant in PLANTS for row in plant.rows()])
    compacted(root / "history")
    now = START + LENGTH + timedelta(minutes=20)
    return reported(root / "history", root / "report", spark_session, now, timezone="Europe/Berlin")


def of(made: Report, group: str) -> Standing:
    (found,) = (standing for standing in made.standings if standing.group.name == group)
    return found


def codes(made: Report, group: str) -> list[str]:
    """Without what is only noted."""
    return [it.code for it in of(made, group).advice.findings if it.severity > Severity.NOTE]


@pytest.mark.parametrize(
    ("group", "severity", "code", "sentence"),
    [
        (
            "one partition of twelve",
            Severity.URGENT,
            "stuck",
            (
                "Stuck: partition 7 of orders has not moved since Sat 2026-11-21 03:17, 9 h 43 min, although members "
                "were there and 349 200 messages waited. Assigned to m-1. "
            ),
        ),
        (
            "one topic of two",
            Severity.URGENT,
            "stuck",
            "Stuck: all 3 partitions of payments have not moved since Sat 2026-11-21 03:17,",
        ),
        (
            "all partitions",
            Severity.URGENT,
            "stuck",
            "Stuck: all 4 partitions of orders have not moved since Sat 2026-11-21 03:17,",
        ),
        (
            "over",
            Severity.WATCH,
            "stuck",
            "Over since Fri 2026-11-20 17:00: from Fri 2026-11-20 11:59 until then, 5 h 1 min, partition 1 of orders ",
        ),
        (
            "through a gap",
            Severity.URGENT,
            "stuck",
            "Stuck: both partitions of orders have not moved since Sat 2026-11-21 03:17, 9 h 43 min,",
        ),
        ("members not counted", Severity.URGENT, "stuck", "Stuck: partition 2 of orders has not moved since "),
        ("no members", Severity.URGENT, "lag_without_members", "The group has had no member since Sat 2026-11-21 0"),
        (
            "too slow",
            Severity.URGENT,
            "falling_behind",
            "Falling behind since Fri 2026-11-20 07:00 or earlier: 20 % of the ",
        ),
        (
            "hot",
            Severity.URGENT,
            "hot_partition",
            "Hot partition: partition 3 of orders gets 75 % of the topic's messages, ",
        ),
        (
            "partly uncommitted",
            Severity.WATCH,
            "uncommitted",
            "Without a commit: 1 of the 4 partitions of orders; the adapter counts 1 081 000 messages in it, ",
        ),
        (
            "never committed",
            Severity.WATCH,
            "uncommitted",
            "Without a commit: both partitions of orders; the adapter counts 2 162 000 messages in them, ",
        ),
        (
            "never committed, from the end",
            Severity.WATCH,
            "uncommitted",
            "Without a commit: the only partition of orders; 1 079 400 messages arrived in it since ",
        ),
        (
            "range",
            Severity.WATCH,
            "idle_members",
            "More members than partitions: of 14 members, 12 can have a partition (as many as the largest topic has); ",
        ),
    ],
)
def test_a_fault_leads_to_its_own_sentence_and_to_no_other(
    made: Report, group: str, severity: Severity, code: str, sentence: str
) -> None:
    first = of(made, group).advice.findings[0]

    assert first.words.replace("\u202f", " ").startswith(sentence)
    assert (first.severity, codes(made, group)) == (severity, [code])


@pytest.mark.parametrize("group", ["healthy", "uniform", "unknown assignment", "share group"])
def test_where_nothing_is_wrong_nothing_is_to_be_done(made: Report, group: str) -> None:
    assert codes(made, group) == []


def test_an_hpa_must_not_follow_the_lag_of_a_partition_that_is_stuck_or_hot(made: Report) -> None:
    targets = {standing.group.name: standing.advice.hpa.target for standing in made.standings}
    refused = {name for name, target in targets.items() if target.reason.endswith(": more replicas do not help.")}

    stuck = {"one partition of twelve", "one topic of two", "all partitions", "through a gap", "members not counted"}
    assert refused == {*stuck, "hot"}


def test_every_incident_has_a_beginning_and_an_end_or_goes_on(made: Report) -> None:
    assert list(without_times(made)) == []


def test_nothing_is_recommended_that_the_replay_does_not_bear_out(made: Report) -> None:
    assert_recommended_hpas_are_proven(made)


def test_more_replicas_are_asked_for_only_where_a_replay_shows_that_they_help(made: Report) -> None:
    to_do = {group: of(made, group).advice.findings[0].to_do for group in ("too slow", "too slow with all members")}

    assert to_do["too slow"] == (
        "Apply the recommended HPA: replayed, it keeps a wait of 1\u202fmin 30\u202fs in 100\u202f% of the minutes."
    )
    assert to_do["too slow with all members"].endswith("give it more partitions, or make its work faster.")


def test_an_hpa_may_ask_for_as_many_replicas_as_can_have_a_partition(made: Report) -> None:
    most = {
        group: of(made, group).advice.hpa.max_replicas.value for group in ("range", "uniform", "unknown assignment")
    }

    assert most == {"range": 12, "uniform": 18, "unknown assignment": 14}
