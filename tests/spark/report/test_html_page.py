import csv
import html
import itertools
import re
from collections.abc import Iterator
from dataclasses import replace
from datetime import timedelta
from pathlib import Path
from unittest import mock
from xml.etree import ElementTree as ET
from zoneinfo import ZoneInfo

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from spark.advice.assessment import Report
from spark.figures.agreement import Agreement, Pause
from spark.figures.model import Group, ReportData, Still
from spark.figures.periods import between
from spark.report import html_page
from spark.report.html_page import MOST_ON_ONE_PAGE, pages_of
from spark.report.text_exports import csv_of, markdown_of
from spark.tables.sample_files import Skipped
from tests.support.history.advised_groups import decided_on
from tests.support.history.report_groups import MONDAY, group, hours, report_data, saturated, together, topic

ANYTHING = st.text(max_size=40) | st.sampled_from(
    ["</style><script>alert(1)</script>", "\"'><img src=x onerror=y>", "&amp;", "\x00"]
)


def page_of(report: Report) -> str:
    """The only page of a report with few groups."""
    (page,) = (text for _, text in pages_of(report))
    return page


def page(*groups: Group) -> str:
    return page_of(decided_on(report_data(*groups)))


def test_a_group_that_has_ended_without_lag_is_said_to_have_ended() -> None:
    said = page(group("gone", topic("x", hours())), group("other", topic("y", hours(number=60))))
    (row,) = (row for row in said.split("<tr") if 'href="#group-gone"' in row)

    assert "Ended on Wed 2026-06-03 02:00, with a lag of 0 messages" in row
    assert "Nothing needs attention" not in row
    assert "for 5\u202fd" in said  # until the end of the range


def test_a_day_promises_samples_from_the_first_one_on_as_the_coverage_does() -> None:
    """The only sample of the first hour is its last."""
    of = hours(2)
    of.samples[0], of.covered_seconds[0] = 1, 0
    said = page(group("new", topic("x", of)))
    (day,) = (row.partition("</tr>")[0] for row in said.split("<tr") if row.startswith("><td>2026-06-01<"))

    assert "361 of 361" in said
    assert day.endswith("<td>100\u202f%</td>")


@pytest.fixture
def a_page_each() -> Iterator[None]:
    """As if a single page could hold no group."""
    with mock.patch.object(html_page, "MOST_ON_ONE_PAGE", 0):
        yield


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


@pytest.mark.parametrize("file", ["spark/report/templates/report.css", "apiservice/status_page/templates/status.css"])
def test_every_colour_of_a_stylesheet_is_declared_in_it(file: str) -> None:
    style = (Path(__file__).parents[3] / file).read_text()

    used, declared = (set(re.findall(text, style)) for text in (r"var\((--[a-z][\w-]*)", r"(--[a-z][\w-]*):"))
    assert used
    assert used <= declared


def test_the_page_needs_no_script_and_no_network() -> None:
    text = page(group("billing", topic("orders")), group("a b"))
    root = parsed(text)

    assert not {"script", "link", "img", "iframe", "object", "embed", "base", "form"} & {it.tag for it in root.iter()}
    assert not re.search(r"https?:|//|@import|url\(|data:", text)
    links = [it.get("href", "") for it in root.iter("a")]
    assert all(re.fullmatch(r"#group-[a-z0-9-]+|hpa/[a-z0-9-]+\.yaml", link) for link in links)
    assert not [name for it in root.iter() for name in it.attrib if name.startswith("on")]


@settings(max_examples=30)
@given(ANYTHING, ANYTHING, ANYTHING, ANYTHING, ANYTHING)
def test_names_are_text_whatever_they_hold(name: str, of_topic: str, cluster: str, person: str, file: str) -> None:
    """Of groups, topics and clusters, of the owner and the members, of files and locations."""
    still = Still(4, (0, 1, 2, 3), MONDAY, True, MONDAY + timedelta(days=2), 900, (person,))
    hostile = group(name, replace(topic(of_topic, hours(lag=lambda _: 900)), still=still))
    hostile = replace(hostile, cluster=cluster, agreement=Agreement(owner=person))
    gathered = replace(report_data(hostile), skipped=(Skipped(file, "torn"),), location=file)
    harmless = replace(group("a", replace(topic("b"), still=still)), agreement=Agreement(owner="c"))
    made, plain = tags_of(gathered), tags_of(report_data(harmless))

    assert set(made) <= set(plain)
    assert made.count("link") == plain.count("link") == 1


def tags_of(data: ReportData) -> list[str]:
    """Of the single page, and of those where the group has one of its own."""
    report = decided_on(data)
    texts = [page_of(report)]
    with mock.patch.object(html_page, "MOST_ON_ONE_PAGE", 0):
        texts += [text for path, text in pages_of(report) if path.endswith(".html")]
    return [it.tag for text in texts for it in parsed(text).iter()]


def test_the_worst_group_comes_first_and_the_first_sentence_names_it() -> None:
    root = parsed(page(group("fine", capacity=saturated()), group("stuck-one", STUCK)))
    lead = next(it for it in root.iter("p") if it.get("class") == "lead")

    assert next(root.iter("h2")).text == "stuck-one"
    assert lead.text == "1 of 2 groups needs attention now: stuck-one."


@pytest.mark.parametrize(("name", "shown"), [("", '""'), (" ", '" "'), ("\u3000", '"\u3000"'), ("a b", "a b")])
def test_a_name_that_nobody_would_see_stands_in_quotes(name: str, shown: str) -> None:
    root = parsed(page(group(name, STUCK)))
    lead = next(it for it in root.iter("p") if it.get("class") == "lead")
    link = next(it for it in root.iter("a") if it.get("href", "").startswith("#group-"))

    assert next(root.iter("h2")).text == link.text == shown
    assert lead.text == f"1 of 1 group needs attention now: {shown}."


def test_groups_of_several_clusters_are_told_apart_at_first_glance() -> None:
    root = parsed(page(group("billing", STUCK), replace(group("billing", STUCK), cluster="eu")))
    lead = next(it for it in root.iter("p") if it.get("class") == "lead")

    assert lead.text == "2 of 2 groups need attention now: billing (eu), billing (main)."
    assert [it.text for it in root.iter("a") if it.get("href", "").startswith("#")] == [
        "billing (eu)",
        "billing (main)",
    ]


def test_each_topic_shows_its_own_production() -> None:
    loud, quiet = hours(production=lambda _: 30), hours(production=lambda hour: 10 + hour % 2)
    both = replace(group("a", topic("loud", loud), topic("quiet", quiet)), hours=together([loud, quiet]))
    shown = re.findall(r"Production, median hour</dt><dd>(.*?)<small>busiest hour (.*?),", page(both))

    assert shown == [("30\u202f/s", "30\u202f/s"), ("10.5\u202f/s", "11\u202f/s")]


def test_a_topic_with_two_weeks_says_whether_a_forecast_helps() -> None:
    peaks = hours(14 * 24, production=lambda hour: 100 if hour % 24 == 9 else 10)
    short, steady, daily = (page(group("a", topic("x", of))) for of in (hours(), hours(14 * 24), peaks))

    assert "Production an hour ahead" not in short
    assert "a forecast does not help" in steady
    assert "the hour before was 54.5\u202f% off, so a forecast helps" in daily


def test_a_day_says_how_many_of_its_hours_are_there() -> None:
    """Days are those of Berlin, where June's begin at 22:00 UTC."""
    whole = hours(46)
    missing = np.arange(46) == 30
    of = replace(group("a", topic(of=between(whole, ~missing))), silent=whole.start[missing])
    rows = re.findall(r"<tr>(<td>2026-06-0[12].*?)</tr>", page(of))

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

    assert "<code>samples/date=2026-06-01/hour=00/a.parquet</code></td>" in page_of(decided_on(gathered))


def test_more_groups_than_a_page_holds_have_a_page_each_and_a_table_of_all_that_comes_last() -> None:
    others = (group(f"g{number}", topic(of=hours(1))) for number in range(MOST_ON_ONE_PAGE))
    made = dict(pages_of(decided_on(report_data(*others, group("billing", STUCK)))))
    *of_groups, (style, _), (name, index) = made.items()
    links = [it.get("href", "") for it in parsed(index).iter("a")]

    assert (style, name) == ("groups/report.css", "report.html")
    assert links == [path for path, _ in of_groups]
    assert links[0] == "groups/billing.html"
    assert len(of_groups) == MOST_ON_ONE_PAGE + 1
    assert not list(parsed(index).iter("svg"))
    assert [it.text for it in parsed(of_groups[0][1]).iter("h2")] == ["billing"]


@pytest.mark.usefixtures("a_page_each")
def test_a_link_to_a_group_is_also_valid_where_it_has_a_page_of_its_own() -> None:
    made = dict(pages_of(decided_on(report_data(group("billing")))))

    assert '<tr id="group-billing">' in made["report.html"]
    assert 'href="../report.html#group-billing"' in made["groups/billing.html"]
    assert 'href="../hpa/billing.yaml"' in made["groups/billing.html"]


@pytest.mark.usefixtures("a_page_each")
def test_pages_are_made_one_after_another() -> None:
    report = decided_on(report_data(group("billing"), group("shop")))
    with mock.patch.object(html_page, "topic_values", wraps=html_page.topic_values) as values:
        next(pages_of(report))

    assert values.call_count == 1


def test_what_is_now_comes_before_what_to_do_the_hpa_and_the_past() -> None:
    """Lag and wait of the newest hour; the range's largest lag was in its first."""
    of = hours(168, lag=lambda hour: 900.0 if hour == 0 else 60.0)
    text = page(group("billing", topic(of=of), capacity=saturated()))
    order = ["<dt>Lag now", "<dt>Wait now", '<ul class="findings">', "Recommended HPA", "<h3>Topic", "<b>Lag</b>"]

    assert re.search(r"<dt>Lag now</dt><dd>60<small>messages, Mon 2026-06-08 02:00<", text)
    assert re.search(r"<dt>Wait now</dt><dd>6\u202fs<small>", text)
    assert sorted(order, key=text.index) == order


def test_a_group_says_since_when_it_needs_attention() -> None:
    (since,) = re.findall(r"<dt>Since</dt><dd>(.*?)<small>(.*?)</small>", page(group("a", STUCK)))

    assert since == ("Mon 2026-06-01 02:00", "for 2\u202fd")


def test_what_is_long_over_is_not_called_now() -> None:
    """The range ends on Monday, the group's last hour on Wednesday before."""
    ended = page(group("a", topic(of=hours(lag=lambda _: 60.0))))

    assert re.search(r"<dt>Last known lag</dt><dd>60<small>messages, Wed 2026-06-03 02:00<", ended)
    assert 'data-label="Lag now">60<br/><span class="soft">Wed 2026-06-03 02:00</span>' in ended
    assert "<dt>Lag now" not in ended
    assert "<dt>Wait now" not in ended


def test_a_lag_that_is_not_known_is_never_0() -> None:
    partly = page(group("a", topic("x", hours(168, lag=lambda _: 60.0)), replace(topic("y"), lag=None, waits=None)))
    wholly = page(group("a", replace(topic("y"), lag=None, waits=None)))

    assert re.search(r"<dt>Lag now</dt><dd>60<small>messages, [^<]*, without 1 topic<", partly)
    assert re.search(r"<dt>Lag now</dt><dd>unknown<", wholly)
    assert re.search(r"<dt>Wait now</dt><dd>unknown<", wholly)


def test_where_no_hpa_is_recommended_no_range_of_replicas_is_told() -> None:
    without, with_one = page(group("a")), page(group("a", capacity=saturated()))

    assert "No HPA is recommended" in without
    assert "Replicas" not in without
    assert "maxReplicas" not in without
    assert "Replicas" in with_one
    assert 'data-label="HPA">none</td>' in without


def test_days_presets_and_figures_are_folded() -> None:
    root = parsed(page(group("a", topic(of=hours(336)), capacity=saturated())))
    folded = {id(it) for details in root.iter("details") for it in details.iter()}
    heads = {"".join(it.itertext()): id(it) in folded for it in root.iter("th")}

    assert heads["Preset"] is heads["Day (Europe/Berlin)"] is heads["Week against week"] is True
    assert heads["Field"] is heads["Group"] is False


def test_of_many_topics_the_slowest_are_open_and_the_others_folded() -> None:
    names = ["a", "b", "c", "d", "e", "f"]
    topics = (topic(name, hours(lag=lambda _, at=at: 10.0 * at)) for at, name in enumerate(names))  # type: ignore[misc]
    root = parsed(page(group("billing", *topics)))

    assert [it.text for it in root.iter("h3") if (it.text or "").startswith("Topic")] == [
        "Topic f",
        "Topic e",
        "Topic d",
    ]
    folded = [next(it.iter("summary")).text for it in root.iter("details") if it.get("class") == "topic"]
    assert folded == ["Topic c ", "Topic b ", "Topic a "]


def test_the_table_on_top_says_why_and_what_to_do() -> None:
    top = page(group("a", STUCK)).partition("<section")[0]

    assert "Stuck: the group's commits have not moved since Mon 2026-06-01 02:00" in html.unescape(top)
    assert "Look for a message that cannot be processed; more replicas do not help." in top


def test_a_wait_stands_beside_every_lag() -> None:
    """900 messages wait in each hour of 16 days, at a production of 36,000 an hour: for a minute and a half."""
    made = decided_on(report_data(group("a", topic(of=hours(16 * 24, lag=lambda _: 900.0)))))
    text, (row,) = page_of(made), csv.DictReader(csv_of(made).splitlines())
    cells = re.findall(r'data-label="Lag p95">(.*?)</td>', text)
    days = re.findall(r"<tr><td>2026-06.*?</td><td>(.*?)</td><td>(.*?)</td><td>(.*?)</td>", text)

    assert "<dd>900 (wait 1\u202fmin 30\u202fs)<small>" in text
    assert (len(cells), len(days)) == (1, 17)
    assert all("wait" in cell for cell in itertools.chain(cells, *days))
    assert ": lag p50 900 (wait 1 min 30 s), p95 1 350 (wait 2 min 15 s), max " in text
    assert text.count("<td>Lag p95, median hour</td><td>1\u202f350<i>wait 2\u202fmin 15\u202fs</i></td>") == 1
    assert "| 900 | 1\u202fmin 30\u202fs | 900 (wait 1\u202fmin 30\u202fs) |" in markdown_of(made)
    assert {float(row[f"wait_{name}_seconds"]) for name in ("p50", "first", "last")} == {90}


def test_an_hour_that_ends_after_the_report_was_made_has_no_age() -> None:
    data = report_data(group("a"))
    early = replace(data, made_at=data.made_at - timedelta(days=6, minutes=30))

    assert "The newest hour of data ends in 30\u202fmin.</p>" in page_of(decided_on(early))


def test_the_owner_and_the_age_of_the_data_are_shown() -> None:
    owned = replace(group("a"), agreement=Agreement(owner="Payments & Co"))
    text = page_of(decided_on(replace(report_data(owned), version="1.2.3")))

    assert "cluster main, owner Payments &amp; Co</span>" in text
    assert "The newest data is 6\u202fd old.</p>" in text
    assert "by kafka-lag-adapter 1.2.3.</p>" in text


def test_a_link_to_a_group_stays_valid_when_its_rank_changes() -> None:
    pages = [page(group("billing", STUCK), group("shop")), page(group("billing"), group("shop", STUCK))]

    assert all('<section id="group-billing">' in text and 'href="#group-billing"' in text for text in pages)


def test_two_weeks_are_compared_with_each_other() -> None:
    assert "Week against week" in page(group("a", topic(of=hours(336))))
    assert "Week against week" not in page(group("a", topic(of=hours(168))))


def test_replays_of_a_group_with_planned_pauses_say_that_these_count() -> None:
    pause = Pause(frozenset({6}), timedelta(0), timedelta(days=1), ZoneInfo("UTC"))
    replayed = group("a", topic("x", hours(168, lag=lambda _: 60.0)), capacity=saturated())
    without, planned = page(replayed), page(replace(replayed, agreement=Agreement(pauses=(pause,))))

    assert ["Planned pauses count like any other time" in said for said in (without, planned)] == [False, True]
