import csv
import re
from dataclasses import replace
from xml.etree import ElementTree as ET

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from spark.advice.assessment import decided
from spark.figures.agreement import Agreement
from spark.figures.model import Group
from spark.figures.periods import between
from spark.report.html_page import MOST_SECTIONS, page_of
from spark.report.text_exports import csv_of, markdown_of
from spark.tables.sample_files import Skipped
from tests.support.history.report_groups import group, hours, report_data, saturated, together, topic

ANYTHING = st.text(max_size=40) | st.sampled_from(
    ["</style><script>alert(1)</script>", "\"'><img src=x onerror=y>", "&amp;", "\x00"]
)


def page(*groups: Group) -> str:
    return page_of(decided(report_data(*groups)))


def parsed(text: str) -> ET.Element:
    assert text.startswith("<!DOCTYPE html>\n")
    return ET.fromstring(text.partition("\n")[2])  # noqa: S314 - our own text


STUCK = replace(
    topic("clicks", hours(lag=lambda _: 900)),
    hours=replace(hours(lag=lambda _: 900), consumed=hours(production=lambda _: 0).consumed),
)


@pytest.mark.parametrize(
    "groups", [(), (group(),), (group("a", topic("x"), topic("y")), group("b", capacity=saturated()))]
)
def test_the_page_is_well_formed_and_whole(groups: tuple[Group, ...]) -> None:
    root = parsed(page(*groups))

    assert [it.text for it in root.iter("h2")] == [*(it.name for it in groups), "Coverage"]


def test_the_page_needs_no_script_and_no_network() -> None:
    text = page(group("billing", topic("orders")), group("a b"))
    root = parsed(text)

    assert not {"script", "link", "img", "iframe", "object", "embed", "base", "form"} & {it.tag for it in root.iter()}
    assert not re.search(r"https?:|//|@import|url\(|data:", text)
    links = [it.get("href", "") for it in root.iter("a")]
    assert all(re.fullmatch(r"#group-[a-z0-9-]+|hpa/[a-z0-9-]+\.yaml", link) for link in links)
    assert not [name for it in root.iter() for name in it.attrib if name.startswith("on")]


@settings(max_examples=30)
@given(ANYTHING, ANYTHING, ANYTHING, ANYTHING)
def test_names_are_text_whatever_they_hold(name: str, of_topic: str, cluster: str, file: str) -> None:
    hostile = replace(group(name, topic(of_topic)), cluster=cluster)
    gathered = replace(report_data(hostile), skipped=(Skipped(file, "torn"),), location=file)
    root = parsed(page_of(decided(gathered)))
    plain = parsed(page(group("a", topic("b"))))

    harmless = {it.tag for it in plain.iter()}
    assert {it.tag for it in root.iter()} <= harmless


def test_the_worst_group_comes_first_and_the_first_sentence_names_it() -> None:
    root = parsed(page(group("fine", capacity=saturated()), group("stuck-one", STUCK)))
    lead = next(it for it in root.iter("p") if it.get("class") == "lead")

    assert next(root.iter("h2")).text == "stuck-one"
    assert lead.text == "1 group of 2 needs attention now: stuck-one."


@pytest.mark.parametrize(("name", "shown"), [("", '""'), (" ", '" "'), ("\u3000", '"\u3000"'), ("a b", "a b")])
def test_a_name_that_nobody_would_see_stands_in_quotes(name: str, shown: str) -> None:
    root = parsed(page(group(name, STUCK)))
    lead = next(it for it in root.iter("p") if it.get("class") == "lead")
    link = next(it for it in root.iter("a") if it.get("href", "").startswith("#group-"))

    assert next(root.iter("h2")).text == link.text == shown
    assert lead.text == f"1 group of 1 needs attention now: {shown}."


def test_groups_of_several_clusters_are_told_apart_at_first_glance() -> None:
    root = parsed(page(group("billing", STUCK), replace(group("billing", STUCK), cluster="eu")))
    lead = next(it for it in root.iter("p") if it.get("class") == "lead")

    assert lead.text == "2 groups of 2 need attention now: billing (eu), billing (main)."
    assert [it.text for it in root.iter("a") if it.get("href", "").startswith("#")] == [
        "billing (eu)",
        "billing (main)",
    ]


def test_each_topic_shows_its_own_production() -> None:
    loud, quiet = hours(production=lambda _: 30), hours(production=lambda hour: 10 + hour % 2)
    both = replace(group("a", topic("loud", loud), topic("quiet", quiet)), hours=together([loud, quiet]))
    shown = re.findall(r"Production, median hour</dt><dd>(.*?)<small>busiest hour (.*?),", page(both))

    assert shown == [("30\u202f/s", "30\u202f/s"), ("10.5\u202f/s", "11\u202f/s")]


def test_a_day_says_how_many_of_its_hours_are_there() -> None:
    """Days are those of Berlin, where June's begin at 22:00 UTC."""
    whole = hours(46)
    missing = np.arange(46) == 30
    of = replace(group("a", topic(of=between(whole, ~missing))), silent=whole.start[missing])
    rows = re.findall(r"<tr>(<td class=\"name\"[^>]*>2026-06-0[12].*?)</tr>", page(of))

    assert [re.findall(r">([^<]*)</td>", row)[-2:] for row in rows] == [
        ["22", "100\u202f%"],
        ["23 of 24", "95.8\u202f%"],
    ]


def test_groups_that_all_do_well_are_told_so() -> None:
    assert "None of 2 groups needs attention." in page(
        group("a", capacity=saturated()), group("b", capacity=saturated())
    )


def test_no_group_is_said_in_words() -> None:
    assert "There is no group in this range." in page()


def test_skipped_files_are_named_with_their_reason() -> None:
    gathered = replace(report_data(group()), skipped=(Skipped("samples/date=2026-06-01/hour=00/a.parquet", "torn"),))

    assert "<code>samples/date=2026-06-01/hour=00/a.parquet</code></td>" in page_of(decided(gathered))


def test_with_very_many_groups_the_rest_stand_in_the_table_alone() -> None:
    root = parsed(page(*(group(f"g{number}", topic(of=hours(1))) for number in range(MOST_SECTIONS + 2))))

    assert len(list(root.iter("section"))) == MOST_SECTIONS + 2  # with the one that says so, and the coverage
    links = {it.get("href", "").removeprefix("#") for it in root.iter("a") if it.get("href", "").startswith("#")}
    assert links == {it.get("id") for it in root.iter("section") if it.get("id")}


def test_the_table_on_top_says_why_and_what_to_do() -> None:
    top = page(group("a", STUCK)).partition("<section")[0]

    assert "No commit of the group moves." in top
    assert "Look for a message that cannot be processed; more replicas do not help." in top


def test_a_wait_stands_beside_every_lag() -> None:
    """900 messages wait in each hour of 16 days, at a production of 36,000 an hour: for a minute and a half."""
    made = decided(report_data(group("a", topic(of=hours(16 * 24, lag=lambda _: 900.0)))))
    text, (row,) = page_of(made), csv.DictReader(csv_of(made).splitlines())
    cells = re.findall(r'data-label="(?:Lag p|Lag max|p95, w|max)[^"]*">(.*?)</td>', text)

    assert "<dd>900 (wait 1\u202fmin 30\u202fs)<small>" in text
    assert len(cells) == 2 + 3 * 17
    assert all("wait" in cell for cell in cells)
    assert "lag p50 900 (wait 1\u202fmin 30\u202fs), p95 1\u202f350 (wait 2\u202fmin 15\u202fs), max " in text
    assert "1\u202f350 messages over " in text
    assert text.count('Lag p95, median hour</td><td class="n" data-label="Last 7 days">1\u202f350<br/>') == 1
    assert "| 900 (wait 1\u202fmin 30\u202fs) | 1\u202f800 (wait 3\u202fmin) |" in markdown_of(made)
    assert {float(row[f"wait_{name}_seconds"]) for name in ("p50", "first", "last")} == {90}


def test_the_owner_and_the_age_of_the_data_are_shown() -> None:
    owned = replace(group("a"), agreement=Agreement(owner="Payments & Co"))
    text = page_of(decided(replace(report_data(owned), version="1.2.3")))

    assert "cluster main, owner Payments &amp; Co</span>" in text
    assert "The newest data is 6\u202fd old.</p>" in text
    assert "by kafka-lag-adapter 1.2.3.</p>" in text


def test_a_link_to_a_group_stays_valid_when_its_rank_changes() -> None:
    pages = [page(group("billing", STUCK), group("shop")), page(group("billing"), group("shop", STUCK))]

    assert all('<section id="group-billing">' in text and 'href="#group-billing"' in text for text in pages)


def test_two_weeks_are_compared_with_each_other() -> None:
    assert "Week against week" in page(group("a", topic(of=hours(336))))
    assert "Week against week" not in page(group("a", topic(of=hours(168))))
