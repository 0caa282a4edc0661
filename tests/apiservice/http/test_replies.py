import asyncio
import json
import re
from collections.abc import Callable

import pytest
from fastapi import Response
from hypothesis import given
from hypothesis import strategies as st

from adapter.clock import utc_text
from adapter.metrics.aggregation import MetricValue
from apiservice.api_group import EXTERNAL
from apiservice.http.replies import encoded, json_reply
from apiservice.metrics_api.encoding import metric_values, quantity, warning_header
from tests.support.kubernetes.fakes import Event

LARGEST = 9_223_372_036_854_775


@pytest.mark.parametrize("value", [0, 42, 1500, 10_000, 10**15, LARGEST])
def test_a_whole_quantity_is_a_plain_integer(value: int) -> None:
    assert quantity(1000 * value) == str(value)


@pytest.mark.parametrize("milli", [1, 999, 1500, 1000 * LARGEST - 1])
def test_a_quantity_that_is_not_whole_is_written_in_thousandths(milli: int) -> None:
    assert quantity(milli) == f"{milli}m"


@pytest.mark.parametrize("value", [-1, -1000, -(2**63)])
def test_a_negative_number_is_served_as_zero(value: int) -> None:
    assert quantity(value) == "0"


@pytest.mark.parametrize("value", [1000 * LARGEST + 1, 2**63 - 1, 2**64])
def test_a_number_is_never_more_than_the_autoscaler_can_count(value: int) -> None:
    assert quantity(value) == str(LARGEST)


@pytest.mark.parametrize(
    ("seconds", "text"),
    [
        (0.0, "1970-01-01T00:00:00Z"),
        (1_795_261_709.999, "2026-11-21T11:48:29Z"),
        (1_795_261_709, "2026-11-21T11:48:29Z"),
    ],
)
def test_a_time_is_written_in_whole_seconds_of_utc(seconds: float, text: str) -> None:
    assert utc_text(seconds) == text


def test_values_have_the_shape_that_the_autoscaler_decodes() -> None:
    labels = {"cluster": "main", "group": "Billing Service/ü", "topic": "orders"}

    assert json.loads(metric_values(EXTERNAL, "lag", [MetricValue(labels, 2_000_000, 1_795_261_709.7)])) == {
        "kind": "ExternalMetricValueList",
        "apiVersion": "external.metrics.k8s.io/v1beta1",
        "metadata": {},
        "items": [{"metricName": "lag", "metricLabels": labels, "timestamp": "2026-11-21T11:48:29Z", "value": "2000"}],
    }


ANY_TEXT = st.text(st.characters(exclude_categories=[]), max_size=8)
VALUES = st.builds(MetricValue, st.dictionaries(ANY_TEXT, ANY_TEXT, max_size=3), st.integers(-1, 2**63), st.just(0.0))


@given(ANY_TEXT, st.lists(VALUES, min_size=1, max_size=4))
def test_values_are_written_as_the_json_module_would(metric: str, values: list[MetricValue]) -> None:
    items = [
        {
            "metricName": metric,
            "metricLabels": value.labels,
            "timestamp": "1970-01-01T00:00:00Z",
            "value": quantity(value.milli),
        }
        for value in values
    ]
    kind = {"kind": "ExternalMetricValueList", "apiVersion": "external.metrics.k8s.io/v1beta1", "metadata": {}}
    document = {**kind, "items": items}

    assert metric_values(EXTERNAL, metric, values) == encoded(document)


def sent(response: Response, between: Callable[[], None] = lambda: None) -> list[Event]:
    """What an ASGI server is given; `between` is called whenever the loop turns meanwhile."""
    events: list[Event] = []

    async def send(event: Event) -> None:
        events.append(event)

    async def receive() -> Event:
        raise AssertionError("an answer waits for nothing")

    async def turn() -> None:
        while True:
            between()
            await asyncio.sleep(0)

    async def run() -> None:
        turning = asyncio.create_task(turn())
        await response({"type": "http"}, receive, send)
        turning.cancel()

    asyncio.run(run())
    return events


def test_a_long_answer_is_sent_in_pieces_that_make_up_its_body() -> None:
    body = bytes(range(256)) * 600
    start, *pieces = sent(json_reply(body))

    assert start["type"] == "http.response.start"
    assert (b"content-length", b"153600") in start["headers"]
    assert [piece["more_body"] for piece in pieces] == [True, True, False]
    assert b"".join(piece["body"] for piece in pieces) == body


def test_others_have_their_turn_between_two_pieces_of_an_answer() -> None:
    turns: list[None] = []
    pieces = sent(json_reply(b"x" * 500_000), between=lambda: turns.append(None))

    assert len(turns) >= len(pieces) - 2 > 5


def test_a_name_that_is_no_text_spoils_no_reply() -> None:
    body = metric_values(EXTERNAL, "lag", [MetricValue({"group": "a\udcff\n"}, 1, 0.0)])

    assert json.loads(body)["items"][0]["metricLabels"] == {"group": "a?\n"}


@pytest.mark.parametrize(
    ("warnings", "header"),
    [
        (("group a has no value",), '299 - "group a has no value"'),
        (("a", "b"), '299 - "a", 299 - "b"'),
        (('say "no" \\ yes',), '299 - "say \\"no\\" \\\\ yes"'),
        (("grüße\r\nX-Remote-User: root\0",), '299 - "gr??e??X-Remote-User: root?"'),
    ],
)
def test_warnings_are_one_header_of_printable_ascii(warnings: tuple[str, ...], header: str) -> None:
    assert warning_header(warnings) == header


def test_a_long_warning_is_cut() -> None:
    assert warning_header(["x" * 300]) == f'299 - "{"x" * 253}..."'


@given(st.lists(st.text(max_size=600), min_size=1, max_size=200))
def test_warnings_stay_short_with_any_text(warnings: list[str]) -> None:
    header = warning_header(warnings)

    assert re.fullmatch(r"[ -~]+", header)
    assert re.fullmatch(r'299 - "(?:[^"\\]|\\.)*"(?:, 299 - "(?:[^"\\]|\\.)*")*', header)


def test_warnings_that_do_not_fit_are_counted() -> None:
    header = warning_header(["w" * 250] * 100)

    assert header.endswith('299 - "84 more warnings are left out"')
    assert len(header) < 6000
