"""How large pages are: two weeks of groups with a daily wave, of which no hour is like another."""

from dataclasses import replace
from unittest import mock

import numpy as np

from spark.figures.agreement import Agreement
from spark.figures.model import Group, HourShares, Periods, Share, TopicFigures
from spark.report import html_page
from spark.report.html_page import MANY_TOPICS, MOST_ON_ONE_PAGE, pages_of
from tests.support.history.advised_groups import decided_on
from tests.support.history.report_groups import MONDAY, group, hours, report_data, saturated, topic

TWO_WEEKS = 14 * 24
PARTITIONS = 12


def wave(seed: int) -> Periods:
    """Production by the hour of the day, by a tenth more or less; ten seconds of it wait; members come with it."""
    random, time = np.random.default_rng(seed), np.arange(TWO_WEEKS)
    rate = (200 - 150 * np.cos(time / 24 * 2 * np.pi)) * random.uniform(0.9, 1.1, TWO_WEEKS)
    wait, members = random.uniform(5, 15, TWO_WEEKS), np.ceil(rate / 100)
    of = hours(TWO_WEEKS, rate.item, lambda hour: rate.item(hour) * wait.item(hour), partitions=PARTITIONS, skew=0.1)
    return replace(
        of,
        consumed=of.produced * random.uniform(0.99, 1.01, TWO_WEEKS),
        members_min=np.maximum(members - 1, 1),
        members_max=members,
    )


def uneven(seed: int) -> TopicFigures:
    messages = np.random.default_rng(seed).integers(50_000, 150_000, PARTITIONS).tolist()
    shares = (Share(number, produced, produced - 7, produced // 90) for number, produced in enumerate(messages))
    return replace(
        topic(f"orders-of-shop-{seed}", wave(seed), threshold=250_000), shares=HourShares(MONDAY, tuple(shares))
    )


def groups(number: int) -> list[Group]:
    capacity, agreement = saturated(600, 90.0), Agreement(max_wait_seconds=600)
    return [
        replace(group(f"shop-{name}", uneven(name), capacity=capacity), agreement=agreement) for name in range(number)
    ]


def bytes_of(of: list[Group]) -> list[int]:
    """Of each page, that of all groups as the last; nearly all have an HPA."""
    report = decided_on(report_data(*of))
    assert np.mean([standing.advice.hpa.target.value is not None for standing in report.standings]) > 0.9
    return [len(text.encode()) for _, text in pages_of(report)]


def test_a_page_of_twenty_groups_takes_a_megabyte_and_a_half_at_most() -> None:
    (page,) = bytes_of(groups(20))

    assert page <= 1_500_000


def test_pages_of_a_thousand_topics_take_forty_megabytes_at_most() -> None:
    """By the share of fifty of them, each in a group of its own."""
    number = MOST_ON_ONE_PAGE + 1
    with mock.patch.object(html_page, "MANY_TOPICS", MANY_TOPICS * number // 1000):
        sizes = bytes_of(groups(number))

    assert len(sizes) == number + 2  # with the style sheet and the page of all
    assert sum(sizes) / number * 1000 <= 40_000_000
