"""Trouble that is over says so in its first sentence and asks for nothing now. A load that may return is not called
past."""

import json
from pathlib import Path

import pytest

from spark.advice.assessment import Report, Standing
from spark.figures import formatting
from tests.support.history.compacting import compacted, in_process, reported
from tests.support.history.incidents import without_times
from tests.support.history.past_troubles import past_troubles
from tests.support.history.planted_weeks import END, write_weeks

PAST = {
    "members back": (
        "watch",
        (
            "Over since Sat 2026-11-14 05:00: from Sat 2026-11-14 00:00 until then, 5 h, the group had no member while "
            "messages waited, 360 000 at the end."
        ),
        "Nothing now: its members are back.",
    ),
    "steady again": (
        "watch",
        (
            "Over since Sat 2026-11-14 05:00: from Sat 2026-11-14 00:00 until then, 5 h, members came and went, "
            "60 changes an hour, between 0 and 2; 30 min of each hour without any."
        ),
        "Nothing now. To find the cause, see the restarts and events of the pods at that time.",
    ),
    "slow on Saturday": (
        "watch",
        (
            "Over since Sat 2026-11-14 06:00: from Sat 2026-11-14 00:00 until then, 6 h, partition 3 of orders had "
            "100 % of the topic's lag, although it got 25 % of the messages; 57 000 messages waited at most."
        ),
        "Nothing now. To find the cause, see what its member logged at that time.",
    ),
    "stuck a week ago": (
        "note",
        (
            "Over since Thu 2026-11-05 05:00: from Wed 2026-11-04 23:50 until then, 5 h 10 min, both partitions of "
            "orders did not move, although members were there and 360 000 messages waited."
        ),
        "",
    ),
    "was hot": (
        "watch",
        (
            "Over since Thu 2026-11-12 00:00: from Mon 2026-11-02 00:00 or earlier until then, 10 d, one partition of "
            "orders got 80 % of the topic's messages, 3.2 times its fair share."
        ),
        "Nothing now. To find the cause, see which keys had the most messages at that time.",
    ),
    "had idle members": (
        "note",
        (
            "Over since Thu 2026-11-12 00:00: from Mon 2026-11-02 00:00 or earlier until then, 10 d, there were more "
            "members than partitions: of 6 members, 3 can have a partition; the rest had nothing to read."
        ),
        "",
    ),
    "one Wednesday": (
        "note",
        (
            "Over since Wed 2026-11-11 14:00: the lag was above 204 000 messages once in 14 d, for 5 h 50 min from Wed "
            "2026-11-11 08:10 on."
        ),
        "Nothing now: it is over, and no HPA is needed for what is past.",
    ),
    "one Monday of eight days": (
        "note",
        (
            "Over since Mon 2026-11-09 14:00: the lag was above 204 000 messages once in 8 d, for 5 h 50 min from Mon "
            "2026-11-09 08:10 on."
        ),
        "See whether it returns: two weeks of history show it.",
    ),
}
"""Group -> severity, the first sentence, and what to do."""


@pytest.fixture(scope="module")
def output(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("report")


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory, output: Path) -> Report:
    root = tmp_path_factory.mktemp("past")
    write_weeks(root, past_troubles())
    compacted(root, until=END)
    return reported(root, output, in_process(), END)


def of(made: Report, group: str) -> Standing:
    (found,) = (standing for standing in made.standings if standing.group.name == group)
    return found


@pytest.mark.parametrize("group", PAST)
def test_what_is_over_says_what_it_was_and_asks_for_nothing_now(made: Report, group: str) -> None:
    finding = of(made, group).advice.findings[0]
    sentence = formatting.first_sentence(finding.words.replace("\u202f", " "))

    assert (finding.severity.word, sentence, finding.to_do) == PAST[group]
    assert finding.is_over


def test_every_incident_has_a_beginning_and_an_end_or_goes_on(made: Report) -> None:
    assert list(without_times(made)) == []


def test_a_partition_that_was_slow_explains_the_lag_of_that_time(made: Report) -> None:
    assert [it.code for it in of(made, "slow on Saturday").advice.findings] == ["slow_partition"]


def test_a_load_that_was_seen_once_is_not_called_growth(made: Report) -> None:
    assert [it.code for it in of(made, "one Wednesday").advice.findings] == ["above_threshold"]


def test_a_load_of_each_monday_is_not_over(made: Report) -> None:
    (finding,) = of(made, "each Monday").advice.findings

    assert (finding.code, finding.state) == ("above_threshold", "still")
    assert finding.words.endswith(
        "The first of 2 in 14\u202fd began on Mon 2026-11-02 08:10, and the last ended on Mon 2026-11-09 14:00."
    )


def test_less_than_two_weeks_do_not_show_whether_a_load_returns(made: Report) -> None:
    once, again = (of(made, name).advice.findings[0] for name in ("one Wednesday", "one Monday of eight days"))

    assert (once.may_return, again.may_return) == (False, True)
    assert again.words.endswith(
        "More was produced then, 20 times the median hour, and less than two weeks were seen: such a load may come "
        "each week."
    )


def test_what_went_on_until_a_group_ended_ended_with_it_and_asks_for_nothing(made: Report) -> None:
    ended, stuck = of(made, "deleted while stuck").advice.findings

    assert (ended.code, ended.state, stuck.code, stuck.until) == ("ended", "still", "stuck", ended.since)
    assert stuck.words.endswith(" That was so until the group ended on Sun 2026-11-15 00:00.")
    assert (ended.to_do, stuck.to_do) == ("", "")


def test_the_json_says_of_each_incident_whether_it_is_over(made: Report, output: Path) -> None:
    groups = {group["group"]: group["findings"] for group in json.loads((output / "report.json").read_text())["groups"]}

    assert {(it["state"], it["until"] is None) for found in groups.values() for it in found} == {
        ("over", False),
        ("still", True),
        (None, True),
    }
    assert all(it["since"] for found in groups.values() for it in found if it["state"])
    assert {standing.group.name for standing in made.standings} == set(groups)


def test_a_wait_from_before_the_history_is_said_to_be_a_lower_bound(made: Report, output: Path) -> None:
    standing = of(made, "behind from the start")
    (topic,) = standing.group.topics
    (found,) = (
        it for it in json.loads((output / "report.json").read_text())["groups"] if it["group"] == standing.called
    )
    page = (output / "report.html").read_text()
    section = page[page.index(f'<section id="group-{standing.file}"') :].split("</section>")[0]

    assert topic.at_least == {"p50", "p95", "p99", "max", "first", "last"}
    assert found["topics"][0]["wait_seconds"]["at_least"] == ["p50", "p95", "p99", "first", "last", "max"]
    assert "<dt>Wait now</dt><dd>at least 2\u202fd 22\u202fh<small>" in section
    assert section.count("wait at least ") > 10
    assert standing.advice.findings[0].words == (
        "The lag has been above 1\u202f800 messages since Fri 2026-11-13 00:00 or earlier, 3\u202fd."
    )
    assert "reads_late" not in {it.code for it in standing.advice.findings}
