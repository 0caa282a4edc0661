"""The report's page in a real browser: from a phone to a desktop, all of it can be seen without scrolling sideways."""

from collections.abc import Iterator
from dataclasses import replace
from datetime import timedelta

import pytest

from local.browser import Browser, Screen
from spark.figures.model import Still
from spark.report.html_page import pages_of
from spark.tables.sample_files import Skipped
from tests.support.history.advised_groups import decided_on
from tests.support.history.report_groups import MONDAY, group, hours, report_data, saturated, topic
from tests.support.real.open_pages import served

CUT = """[...document.querySelectorAll('html, .scroll')]
    .filter(each => each.scrollWidth > each.clientWidth)
    .map(each => `${each.scrollWidth} px in ${each.clientWidth}: ${each.innerText.slice(0, 60)}`)"""
OPENED = "document.querySelectorAll('details').forEach(each => each.open = true)"
DATES = """(() => {
    const lines = [];
    for (const within of document.querySelectorAll('[data-label=Since], .head + dl > :first-child dd')) {
        const texts = document.createTreeWalker(within, NodeFilter.SHOW_TEXT);
        while (texts.nextNode()) {
            for (const date of texts.currentNode.data.matchAll(/\\w+ \\d{4}-\\d\\d-\\d\\d \\d\\d:\\d\\d/g)) {
                const range = document.createRange();
                range.setStart(texts.currentNode, date.index);
                range.setEnd(texts.currentNode, date.index + date[0].length);
                lines.push(new Set([...range.getClientRects()].map(each => each.top)).size);
            }
        }
    }
    return lines;
})()"""
"""In how many lines each date of the column and the figure `Since` is."""


def whole_page() -> bytes:
    """With every table, and with numbers that are as wide as they become."""
    busy = hours(14 * 24, lag=lambda hour: 98_765_432 + hour, production=lambda hour: 123_456 + hour)
    ended = Still(4, (0, 1, 2, 3), MONDAY, True, MONDAY + timedelta(days=12), 98_765_432, ("mail-0",))
    stands_still = replace(topic("notifications-of-everybody", busy), still=ended)
    groups = (group("mail", stands_still), group("a-group-with-a-name-that-is-long", capacity=saturated()))
    data = replace(report_data(*groups), skipped=(Skipped("samples/date=2026-06-01/hour=00/a.parquet", "torn"),))
    ((_, text),) = pages_of(decided_on(data))
    return text.encode()


@pytest.fixture(scope="module")
def address() -> Iterator[str]:
    with served({"/report.html": whole_page()}, {}) as url:
        yield f"{url}/report.html"


@pytest.mark.parametrize("width", [320, 360, 640, 768, 1024, 1230, 1240, 1600])
def test_no_column_is_cut_and_no_date_breaks(chromium: Browser, address: str, width: int) -> None:
    page = chromium.open(address, Screen(width=width))
    page.evaluate(OPENED)

    assert page.evaluate(CUT) == []
    assert page.evaluate(DATES) == [1] * 6, "since and until of one group and since of another, in row and section"
