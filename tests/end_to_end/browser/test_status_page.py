"""The status page in a real browser: it is whole, needs nothing, fits a phone, can be read in the dark, and names that
attack it make nothing of it."""

from collections.abc import Iterator

import numpy as np
import pytest

from adapter.conditions import LISTENING, VALUES, Conditions
from adapter.overview.trends import LagTrends
from apiservice.status_page.rendering import html_of, security_policy
from local.browser import DESKTOP, PHONE, Browser, Screen
from tests.support.kubernetes.hpas import external, hpa
from tests.support.real.open_pages import CONTRAST, ELSEWHERE, MADE_OF_NAMES, SCROLLS_SIDEWAYS, served
from tests.support.samples import NEVER_READ, NOW, Key, Row, row
from tests.support.status_pages import HOSTILE, autoscalers, page, page_with_names

DARK, DARK_PHONE = Screen(is_dark=True), Screen(width=360, height=740, is_dark=True)
SCREENS = {"desktop": DESKTOP, "phone": PHONE, "dark desktop": DARK, "dark phone": DARK_PHONE}


def whole_page() -> bytes:
    """With everything that a page may have."""
    rows: dict[Key, Row] = {
        ("billing", "orders", 0): row(0, 12_000),
        ("mail", "orders", 0): row(10, 10),
        ("a-group-with-a-name-that-is-long-" * 4, "orders", 0): NEVER_READ,
    }
    trends, conditions = LagTrends(), Conditions()
    for minute in range(40):
        lags = np.array([300.0 * minute, 0.0])
        trends = trends.followed_by(NOW - 60.0 * (40 - minute), [("main", "billing"), ("main", "mail")], lags)
    conditions.holds(LISTENING)
    conditions.fails(VALUES, "Partial", "broker 2 at kafka-2:9092 does not answer", cluster="main")
    hpas = autoscalers(hpa("billing", external(group="billing")), hpa("none", external(group="nobody")))
    return html_of(page(rows, hpas=hpas, trends=trends, conditions=conditions))


@pytest.fixture(scope="module")
def address() -> Iterator[str]:
    """With the headers of the adapter."""
    with served({"/status": whole_page()}, {"content-security-policy": security_policy()}) as url:
        yield f"{url}/status"


@pytest.fixture(scope="module")
def attacked() -> Iterator[str]:
    """Without the policy that would keep an element that a name has made from doing harm."""
    with served({"/status": page_with_names(HOSTILE)}, {}) as url:
        yield f"{url}/status"


@pytest.mark.parametrize("screen", SCREENS.values(), ids=SCREENS)
def test_the_page_loads_without_a_word_on_the_console_and_without_another_request(
    chromium: Browser, address: str, screen: Screen
) -> None:
    seen = chromium.open(address, screen)

    assert seen.complaints == []
    assert [each for each in seen.requests if each != "data:,"] == [address]
    assert seen.evaluate("[document.title, document.querySelectorAll('tbody tr').length]") == ["Consumer lag", 5]


@pytest.mark.parametrize("width", [320, 360, 768, 1240])
def test_nothing_needs_to_be_scrolled_sideways(chromium: Browser, address: str, attacked: str, width: int) -> None:
    for url in (address, attacked):
        assert not chromium.open(url, Screen(width=width)).evaluate(SCROLLS_SIDEWAYS), url


@pytest.mark.parametrize("screen", SCREENS.values(), ids=SCREENS)
def test_every_text_and_line_stands_out_from_what_is_behind_it(chromium: Browser, address: str, screen: Screen) -> None:
    contrast = chromium.open(address, screen).evaluate(CONTRAST)

    assert contrast["texts"] >= 4.5
    assert contrast["lines"] >= 3.0
    assert (contrast["paper"] < 0.1) is screen.is_dark


def test_names_of_every_kind_make_no_element_no_handler_and_no_link_to_elsewhere(
    chromium: Browser, attacked: str
) -> None:
    seen = chromium.open(attacked)

    assert seen.evaluate("document.title") == "Consumer lag"
    assert seen.evaluate(MADE_OF_NAMES) == []
    assert seen.evaluate(ELSEWHERE) == []
    assert (seen.complaints, [each for each in seen.requests if each != "data:,"]) == ([], [attacked])
    assert HOSTILE[0] in seen.evaluate("document.body.innerText")


def test_the_page_renews_itself(chromium: Browser, address: str) -> None:
    assert chromium.open(address).evaluate("document.querySelector('meta[http-equiv=refresh]').content") == "30"
