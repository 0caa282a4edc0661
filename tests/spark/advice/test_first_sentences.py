"""Two weeks of groups with one trouble each, from samples to the report: whoever reads only the first sentence of a
group does the right thing."""

from dataclasses import replace
from datetime import timedelta
from pathlib import Path
from zoneinfo import ZoneInfo

import numpy as np
import pytest
from pyspark.sql import SparkSession

from local.manifests.consistency import hpa_problems
from spark.advice.assessment import Report, Standing
from spark.advice.demand import load_of
from spark.advice.finding import Severity
from spark.advice.incidents.growth import growth
from spark.advice.recommendation import Reads
from spark.advice.weekly_pattern import week_of
from spark.figures.model import as_column
from spark.figures.periods import between, joined
from spark.report.gather import with_earlier
from spark.report.group_file import agreed
from spark.report.tables import Tables
from spark.storage.local import LocalFiles
from tests.support.history.compacting import compacted, in_process, reported
from tests.support.history.incidents import without_times
from tests.support.history.planted_weeks import END, write_weeks
from tests.support.history.recommendations import assert_recommended_hpas_are_proven, recommended
from tests.support.history.recommended_files import hpa_in, object_in, settings_in
from tests.support.history.troubled_groups import troubled_groups

NOW = END + timedelta(minutes=20)
INDIA = ZoneInfo("Asia/Kolkata")
"""Five and a half hours ahead of UTC, in which all times are told."""
SENTENCES = {
    "one partition": (
        "act now",
        (
            "Falling behind since Fri 2026-11-13 05:30 or earlier: 25 % of the 17 280 000 messages of the last 24 "
            "hours were not consumed in that time"
        ),
        "It already has as many members as can have a partition: give it more partitions, or make its work faster.",
    ),
    "crash loop": (
        "act now",
        (
            "Members have been coming and going since Fri 2026-11-13 05:30 or earlier, 3 d: 60 changes an hour, "
            "between 0 and 2; 30 min of each hour without any."
        ),
        "Find out why members leave: ",
    ),
    "mostly gone": (
        "act now",
        (
            "Members have been coming and going since Fri 2026-11-13 06:30, 2 d 23 h: 2 changes an hour, between 0 and "
            "3; 50 min of each hour without any."
        ),
        "Find out why members leave: ",
    ),
    "one or four members": (
        "watch",
        "Members have been coming and going since Fri 2026-11-13 05:30 or earlier, 3 d: 12 changes an hour, between 1 ",
        "Find out why members leave: ",
    ),
    "members died": (
        "act now",
        ("The group has had no member since Sun 2026-11-15 05:30, 1 d, while messages waited, 1 728 000 at the end."),
        "Start its consumers.",
    ),
    "poison": (
        "act now",
        (
            "Partition 3 of orders has had 100 % of the topic's lag since Sun 2026-11-15 17:30, 12 h, "
            "although it gets 25 % of the messages; "
        ),
        "Look at that partition's messages, and at its member; more replicas do not help.",
    ),
    "two poisoned": (
        "act now",
        (
            "Partitions 2 and 5 of orders have had 100 % of the topic's lag since Sun 2026-11-15 17:30, 12 h, "
            "although they get 25 % of the messages; "
        ),
        "Look at these partitions' messages, and at who reads them; more replicas do not help.",
    ),
    "one after another": (
        "act now",
        (
            "Partitions 2 and 5 of orders have had 100 % of the topic's lag since Sun 2026-11-15 17:30, 12 h, "
            "although they get 25 % of the messages; "
        ),
        "Look at these partitions' messages, and at who reads them; more replicas do not help.",
    ),
    "unsubscribed": (
        "act now",
        (
            "No member has read old since Sun 2026-11-15 05:29, 1 d, although members read other topics of the "
            "group; 259 200 messages wait there."
        ),
        "If the group should read it, subscribe to it again; ",
    ),
    "never committed": (
        "watch",
        (
            "Without a commit: 1 of the 3 partitions of orders; 1 295 700 messages arrived in it since "
            "Fri 2026-11-13 05:30 while the group had members, and none of them was committed."
        ),
        "See whether a member reads it, and why it does not commit.",
    ),
    "moving hot": (
        "watch",
        (
            "The hot partition of orders moves: in 72 hours since Fri 2026-11-13 05:30 or earlier one "
            "partition got more than twice its fair share, 60.1 % in the median hour, and 8 of 8 partitions did "
            "in turn."
        ),
        "Look for what sends so many messages with one key, ",
    ),
    "doubles every day": (
        "watch",
        (
            "Production grows: 128 times that of the same hours a week before. At this pace its 8 "
            "partitions, with a member for each, may no longer be enough, at 512 /s a member, the "
            "most that a member was seen to do. In the last week, a forecast made in the same way from the days "
            "before it was < 0.1 % off (median of 7 days)."
        ),
        "Plan partitions and replicas for it.",
    ),
    "ten minutes late": (
        "watch",
        "Messages of orders always wait about 10 min, however many there are ",
        "If that is meant, agree on a longer wait (maxWait).",
    ),
    "commits all, rarely": (
        "watch",
        (
            "Commits are rarer than samples: about one every 5 min, sampled every 1 min. The lag includes "
            "what is processed but not committed, and moves in steps, which alone are above its threshold."
        ),
        "Commit more often, or agree on a longer wait (maxWait); more replicas do not help.",
    ),
    "commits most, rarely": (
        "watch",
        (
            "Commits are rarer than samples: about one every 5 min, sampled every 1 min. The lag includes "
            "what is processed but not committed, and moves in steps, which alone are above its threshold."
        ),
        "Commit more often, or agree on a longer wait (maxWait); more replicas do not help.",
    ),
    "reads again at night": (
        "watch",
        "Commits went backward 3 times, first on Fri 2026-11-13 17:30, last on Sun 2026-11-15 17:30: messages were ",
        "If nobody meant it, look for what sets its offsets.",
    ),
    "deleted": (
        "watch",
        ("Ended on Sun 2026-11-15 05:30, with a lag of 691 200 messages: since then, the history has nothing of it."),
        "",
    ),
    "deleted at rest": (
        "note",
        "Ended on Sun 2026-11-15 05:30, with a lag of 0 messages: since then, the history has nothing of it.",
        "",
    ),
    "mended": (
        "note",
        "Over since Fri 2026-11-13 20:29: the lag was above 5 400 messages once in 3 d, for ",
        "Nothing now: it is over, and no HPA is needed for what is past.",
    ),
    "a quiet topic beside": (
        "watch",
        "The lag was above 135 000 messages for 16 % of the time; ",
        "Apply the recommended HPA.",
    ),
    "slower by day": (
        "watch",
        "The lag was above 5 400 messages for 62 % of the time; ",
        "Apply the recommended HPA.",
    ),
    "bursts": (
        "watch",
        "The lag was above 6 300 messages for 23.3 % of the time; ",
        "No HPA is recommended, see why below; run 4 replicas all the time, one for each partition, although ",
    ),
    "bursts, two hours": (
        "watch",
        "The lag was above 6 300 messages for 23.3 % of the time; ",
        "No HPA is recommended for it: see why below.",
    ),
    "office hours in India": (
        "watch",
        "The lag was above 18 000 messages for 25.9 % of the time; ",
        "Add the recommended rule to the adapter's settings, then apply the recommended HPA.",
    ),
    "waves": (
        "watch",
        "The lag was above 42 984 messages for 52.9 % of the time; ",
        "Add the recommended rule to the adapter's settings, then apply the recommended HPA.",
    ),
    "batch on Sundays": (
        "note",
        (
            "The lag was above 510 000 messages for 2.4 % of the time; the longest stretch was from Sun "
            "2026-11-08 07:40 to "
        ),
        "No HPA is recommended",
    ),
    "two hours": (
        "note",
        "Less than a day of data (1 h 59 min): daily peaks may not have been seen.",
        "",
    ),
}
"""Group -> severity, the beginning of the first sentence, and the beginning of what to do."""


PATIENT = "10m"
RECOMMENDED = {
    "a quiet topic beside": Reads.LAG,
    "bursts": Reads.LAG,
    "office hours in India": Reads.LAG,
    "reads again at night": Reads.LAG,
    "slower by day": Reads.LAG,
    "waves": Reads.LAG,
}
"""Groups for which an HPA is recommended if messages may wait for so long, and what it goes by."""
BY_DEFAULT = {
    "a quiet topic beside": Reads.LAG,
    "office hours in India": Reads.REQUIRED_REPLICAS,
    "reads again at night": Reads.LAG,
    "slower by day": Reads.LAG,
    "waves": Reads.REQUIRED_REPLICAS,
}
"""With a sample a minute, a minute and a half are the default. Members whom a lag asks for come too late for that where
the load rises."""


@pytest.fixture(scope="module")
def history(tmp_path_factory: pytest.TempPathFactory) -> Path:
    root: Path = tmp_path_factory.mktemp("weeks")
    write_weeks(root, troubled_groups())
    compacted(root, until=END)
    return root


@pytest.fixture(scope="module")
def made(spark_session: SparkSession, history: Path, tmp_path_factory: pytest.TempPathFactory) -> Report:
    return reported(history, tmp_path_factory.mktemp("report"), spark_session, NOW, timezone=INDIA.key)


@pytest.fixture(scope="module")
def patient(spark_session: SparkSession, history: Path, tmp_path_factory: pytest.TempPathFactory) -> Report:
    agreements = agreed(PATIENT, None, None)
    place = tmp_path_factory.mktemp("patient")
    return reported(history, place, spark_session, NOW, timezone=INDIA.key, agreements=agreements)


def of(made: Report, group: str) -> Standing:
    (found,) = (standing for standing in made.standings if standing.group.name == group)
    return found


@pytest.mark.parametrize("group", SENTENCES)
def test_the_first_sentence_says_what_happened_and_what_to_do(made: Report, group: str) -> None:
    severity, sentence, to_do = SENTENCES[group]
    first = of(made, group).advice.findings[0]

    assert first.words.replace("\u202f", " ").startswith(sentence)
    assert first.to_do.startswith(to_do) if to_do else not first.to_do
    assert of(made, group).severity.word == severity


def test_one_incident_is_one_finding(made: Report) -> None:
    worth_watching = {
        standing.group.name: [it.code for it in standing.advice.findings if it.severity > Severity.NOTE]
        for standing in made.standings
    }

    assert {name for name, codes in worth_watching.items() if len(codes) > 1} == set()


def test_hpas_are_recommended_where_they_keep_the_wait(made: Report, patient: Report) -> None:
    advised, by_default = (
        {name: advice.hpa.reads for name, advice in recommended(report).items()} for report in (patient, made)
    )

    assert (advised, by_default) == (RECOMMENDED, BY_DEFAULT)


def test_what_happened_is_reproduced_before_the_cheapest_hpa_that_keeps_the_wait_is_recommended(
    made: Report, patient: Report
) -> None:
    assert_recommended_hpas_are_proven(made, patient)


def test_a_promise_that_is_cheaper_than_any_lag_is_recommended_with_its_rule_as_a_file_to_copy(made: Report) -> None:
    text = of(made, "waves").yaml
    (rule,) = settings_in(text).rules
    hpa = hpa_in(text)
    assert rule.objective is not None

    assert (rule.group, rule.topics) == ("waves", ("orders",))
    assert (rule.objective.max_wait, rule.objective.capacity_hint) == pytest.approx((90, 90), rel=0.01)
    assert list(hpa_problems(object_in(text), {"cluster", "group"}, "1")) == []
    assert (hpa.metrics[0].source.metric.name, hpa.min_replicas) == ("kafka_consumergroup_required_replicas", 1)


def test_a_promise_to_a_group_that_no_selector_can_name_is_recommended_as_a_named_metric(made: Report) -> None:
    text = of(made, "office hours in India").yaml
    (metric,) = settings_in(text).metrics
    assert metric.replicas is not None

    assert (metric.value, metric.group) == ("required_replicas", "office hours in India")
    assert (metric.replicas.max_wait, metric.replicas.capacity_hint) == (90, 50)
    assert list(hpa_problems(object_in(text), set(), "1")) == [f"{metric.name} is no metric that is served"]
    assert hpa_in(text).metrics[0].source.metric.name == metric.name


def test_a_lag_that_is_cheaper_than_a_promise_is_recommended_without_a_rule(patient: Report) -> None:
    """The same waves, but a message may wait ten minutes."""
    standing = of(patient, "waves")
    hpa = hpa_in(standing.yaml)

    assert standing.advice.findings[0].to_do == "Apply the recommended HPA."
    assert settings_in(standing.yaml).rules == ()
    assert list(hpa_problems(object_in(standing.yaml), {"cluster", "group", "topic"}, None)) == []
    assert hpa.metrics[0].source.target.average_value == 22_000_000


def test_no_shorter_wait_is_taken_for_agreed_on_than_samples_allow(made: Report) -> None:
    waits = {standing.group.name: standing.group.agreement.max_wait_seconds for standing in made.standings}

    assert (waits["bursts"], waits["batch on Sundays"]) == (90, 510)


QUIET = ("healthy", "at rest", "at rest, not recognised", "another writer")


@pytest.mark.parametrize("group", QUIET)
def test_a_group_without_trouble_has_no_finding(made: Report, group: str) -> None:
    assert of(made, group).advice.findings == ()


def test_every_group_is_expected_to_say_something_or_nothing(made: Report) -> None:
    assert {standing.group.name for standing in made.standings} == {*SENTENCES, *QUIET}


def test_an_incident_that_goes_on_has_a_beginning_and_no_end_and_one_that_is_over_has_both(made: Report) -> None:
    findings = {standing.group.name: standing.advice.findings[0] for standing in made.standings if standing.attention}
    is_over = {name for name, finding in findings.items() if finding.since and finding.until}

    assert list(without_times(made)) == []
    assert is_over == {"reads again at night"}
    without = {name for name, finding in findings.items() if not finding.is_incident}
    assert without == {"commits all, rarely", "commits most, rarely", "ten minutes late", "doubles every day"}


def test_capacities_are_those_of_the_slowest_hours_and_of_groups_that_do_not_just_read_late(
    made: Report,
) -> None:
    advised = {standing.group.name: standing.advice.load.advised for standing in made.standings}

    assert advised["slower by day"] == pytest.approx(40)
    assert advised["a quiet topic beside"] == pytest.approx(334, rel=0.01)
    assert advised["ten minutes late"] is None
    assert advised["bursts"] == pytest.approx(60)


def test_no_hpa_is_recommended_for_a_partition_that_is_slow_or_hot(made: Report) -> None:
    for group in ("poison", "two poisoned", "one after another", "moving hot"):
        target = of(made, group).advice.hpa.target

        assert target.value is None
        assert target.reason.endswith(": more replicas do not help.")


def test_production_before_the_range_counts_where_it_grows(made: Report, history: Path) -> None:
    """Of nine days, a trend cannot be tried on any week; with the five days before them it can."""
    whole, since = of(made, "doubles every day").group, END - timedelta(days=9)
    ranged = replace(whole, hours=between(whole.hours, whole.hours.start >= as_column(since)))
    tables = Tables(in_process(), LocalFiles(history))
    (longer,) = with_earlier([ranged], tables, since)
    said = [growth(it, load_of(whole), zone=INDIA) for it in (ranged, longer)]
    assert longer.earlier is not None

    assert ["fewer than ten days" in it.words for it in said if it] == [True, False]
    assert np.array_equal(joined(longer.earlier, ranged.hours).produced, whole.hours.produced, equal_nan=True)


def test_busy_hours_are_those_of_a_zone_of_half_hours(made: Report) -> None:
    """09:00 to 12:00, which is 03:30 to 06:30 in UTC."""
    group = of(made, "office hours in India").group
    week = week_of(group.by_local_hour, INDIA)

    assert week.peak_hours() == (9, 10, 11)
    assert [rate for _, rate in week.busiest(9)] == pytest.approx([200.0] * 9)
    assert week_of(group.topics[0].by_local_hour, INDIA).busiest(9) == week.busiest(9)
