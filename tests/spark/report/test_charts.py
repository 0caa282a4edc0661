import math
import re
from dataclasses import replace
from xml.etree import ElementTree as ET
from zoneinfo import ZoneInfo

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from spark.advice.weekly_pattern import week_of
from spark.figures import formatting
from spark.figures.model import Above, HourShares, Periods, Share
from spark.figures.periods import between
from spark.report import charts
from spark.report import svg_parts as svg
from spark.report.svg_parts import HEIGHT, WIDTH, Chart, escaped, nice_duration, nice_top
from spark.report.templating import environment_of
from tests.support.history.report_groups import MONDAY, hours, topic

BERLIN = ZoneInfo("Europe/Berlin")


def parsed(text: str) -> ET.Element:
    return ET.fromstring(text)  # noqa: S314 - our own text


def titles(text: str) -> list[str]:
    return [it.text or "" for it in parsed(text).iter("title")]


def shown(chart: Chart) -> str:
    """As the page shows it."""
    page = '{% import "parts.html.j2" as parts %}{{ parts.chart(chart) }}'
    return environment_of(escaped).from_string(page).render(chart=chart)


def points(d: str) -> list[tuple[float, float]]:
    """Where a path's pen comes, by the commands that charts use."""
    x, y, places = 0.0, 0.0, []
    for command, text in re.findall(r"([MlhvHVz])([^MlhvHVz]*)", d):
        numbers = [float(number) for number in re.findall(r"-?(?:\d+\.?\d*|\.\d+)", text)]
        if command in "Ml":
            x, y = numbers if command == "M" else (x + numbers[0], y + numbers[1])
        elif command in "hH":
            x = numbers[0] + (x if command == "h" else 0)
        elif command in "vV":
            y = numbers[0] + (y if command == "v" else 0)
        places.append((x, y))
    return places


def paths_in(text: str, name: str) -> list[list[tuple[float, float]]]:
    return [points(it.get("d", "")) for it in parsed(text).iter("path") if it.get("class") == name]


def line_in(text: str, name: str) -> list[tuple[float, float]]:
    (path,) = paths_in(text, f"line {name}")
    return path


def rates(of: Periods) -> Chart:
    return charts.rates_chart(of, charts.axis_of(of, BERLIN))


def members(of: Periods) -> Chart:
    return charts.members_chart(of, 4, charts.axis_of(of, BERLIN))


def lag(of: Periods, above: Above) -> Chart:
    return charts.lag_chart(of, above, charts.axis_of(of, BERLIN))


def tips(of: Periods) -> list[str]:
    return titles(f"<svg>{charts.time_charts(of, topic().above, 4, BERLIN).tooltips}</svg>")


def all_charts(number: int = 48) -> list[str]:
    of = hours(number, lambda hour: 10 + hour, lambda hour: 5 * hour)
    drawn = [
        *charts.time_charts(of, topic().above, 4, BERLIN).charts,
        charts.week_chart("Busy hours", week_of(of, BERLIN), formatting.rate, "heat", BERLIN),
        charts.shares_chart(topic().shares, BERLIN),
    ]
    return [shown(chart) for chart in drawn]


@pytest.mark.parametrize("number", [1, 2, 48, 170, 171, 1000])
def test_charts_are_well_formed_and_inside_their_frame(number: int) -> None:
    for text in all_charts(number):
        for rect in parsed(text).iter("rect"):
            x, y, width, height = (float(rect.get(name, "nan")) for name in ("x", "y", "width", "height"))
            assert -3 <= x <= x + width <= WIDTH + 3
            assert 0 <= y <= y + height <= HEIGHT
        for path in parsed(text).iter("path"):
            for x, y in points(path.get("d", "")):
                assert -3 <= x <= WIDTH + 3
                assert 0 <= y <= HEIGHT


def test_every_chart_says_in_words_what_it_shows() -> None:
    for text in all_charts():
        svg = next(parsed(text).iter("svg"))
        assert svg.get("role") == "img"
        assert ": " in (svg.get("aria-label") or "")


def test_each_hour_has_a_tooltip_with_numbers_and_units() -> None:
    said = tips(hours(3, lambda hour: 10.0 * (hour + 1)))

    assert said[1] == "Mon 01 Jun 03:00: lag p50 0, p95 0, max 0; produced 20 /s, consumed 20 /s; 2 members"


def test_many_hours_are_thinned_to_their_largest_lag_and_the_chart_says_so() -> None:
    of = hours(1000, lag=lambda hour: 777.0 if hour == 501 else 1.0)
    said = tips(of)

    assert len(said) <= charts.MOST_POINTS
    assert sum("max 1 554" in text for text in said) == 1
    assert "messages, 12 hours a point" in shown(lag(of, topic().above))


def test_a_line_stops_where_hours_are_missing() -> None:
    whole = hours(48)
    holed = between(whole, np.array([not 20 <= hour < 30 for hour in range(48)]))

    def strokes(text: str) -> int:
        return next(it for it in parsed(text).iter("path") if it.get("class") == "line made").get("d", "").count("M")

    assert strokes(shown(rates(whole))) == 1
    assert strokes(shown(rates(holed))) == 2


def test_what_is_not_known_is_said_and_not_drawn_as_zero() -> None:
    unknown = replace(hours(4), members_max=np.full(4, math.nan), lag_max=np.full(4, math.nan))

    assert "not counted" in shown(members(unknown))
    assert "not known" in shown(lag(unknown, topic().above))
    assert "No hour" in shown(charts.time_charts(hours(0), topic().above, 4, BERLIN).charts[0])
    assert "Nothing was produced" in shown(charts.shares_chart(HourShares(MONDAY, ()), BERLIN))


def test_the_threshold_never_flattens_the_lag() -> None:
    low = hours(24, lag=lambda _: 3.0)
    text = shown(lag(low, replace(topic().above, threshold=1_000_000)))

    assert 'class="limit" d' not in text


@given(st.floats(1e-6, 1e15))
def test_an_axis_ends_above_the_largest_value_in_few_steps(value: float) -> None:
    top, step = nice_top(value)

    assert top >= value * (1 - 1e-9)
    assert 2 <= round(top / step) <= 5


@given(st.text(alphabet=st.characters()))
def test_any_text_can_be_shown(text: str) -> None:
    shown = parsed(f'<a title="{escaped(text)}">{escaped(text)}</a>')

    assert shown.text == shown.get("title") or (not text and shown.text is None)


def test_a_lag_that_dwarfs_its_threshold_is_drawn_on_a_scale_that_shows_both() -> None:
    """The median is 60, the threshold 600, and two hours have a million."""
    of = hours(48, lag=lambda hour: 1e6 if hour > 45 else 60.0)
    text = shown(lag(of, topic(threshold=600).above))
    limit = float(re.findall(r'class="limit" d="M52 ([\d.]+)H', text)[0])

    assert "messages, by hour, logarithmic" in text
    assert HEIGHT / 3 < limit < HEIGHT - 40
    assert [label for label in ("100", "10\u202fk", "1\u202fM") if f">{label}</text>" not in text] == []
    assert "logarithmic" not in shown(lag(hours(48, lag=lambda _: 60.0), topic().above))


def test_a_level_stretch_is_drawn_by_its_ends_and_told_once() -> None:
    """Ten hours at one rate, an hour at another."""
    of = hours(11, lambda hour: 10.0 if hour < 10 else 30.0)

    assert len(line_in(shown(rates(of)), "made")) == 3
    assert [text.partition(": ")[0] for text in tips(of)] == [
        "Mon 01 Jun 02:00 to Mon 01 Jun 11:00",
        "Mon 01 Jun 12:00",
    ]


def test_a_tooltip_never_reaches_over_hours_that_are_missing() -> None:
    whole = hours(10)
    said = tips(between(whole, np.arange(10) != 4))

    assert [text.partition(": ")[0][-5:] for text in said] == ["05:00", "11:00"]


@given(st.lists(st.floats(0, 1000), min_size=2, max_size=50))
def test_relative_steps_end_where_the_values_do(values: list[float]) -> None:
    frame, axis = svg.Frame(1000, 250), charts.axis_of(hours(len(values)), BERLIN)
    drawn = points(re.findall(r' d="(.*)"', svg.line(frame, axis, np.array(values), "made"))[0])
    expected = [(frame.x(at), frame.y(value)) for at, value in zip(axis.across, values, strict=True)]

    assert drawn[0] == pytest.approx(expected[0], abs=0.06)
    assert drawn[-1] == pytest.approx(expected[-1], abs=0.06)
    assert max(y for _, y in drawn) == pytest.approx(max(y for _, y in expected), abs=0.06)
    assert min(y for _, y in drawn) == pytest.approx(min(y for _, y in expected), abs=0.06)


def test_members_have_the_fewest_and_the_most_of_each_hour() -> None:
    chart = members(hours(4, members_min=1, members_max=4))
    text = shown(chart)

    assert set(chart.texts) == {"1 to 4 members"}
    assert line_in(text, "faint")[0][1] > line_in(text, "used")[0][1]


def test_a_partitions_lag_stands_beside_its_production() -> None:
    """Partition 1 gets a quarter of the messages, and three quarters of what waits."""
    of = HourShares(MONDAY, (Share(0, 750, 750, 100), Share(1, 250, 100, 300), Share(2, 0, 0, None)))
    text = shown(charts.shares_chart(of, BERLIN))
    heights = {name: [first[1] - last[1] for first, last in paths_in(text, name)] for name in ("made", "hot", "lags")}

    assert heights["lags"][1] == pytest.approx(heights["hot"][0], abs=0.2)
    assert heights["made"][0] == pytest.approx(heights["lags"][0], abs=0.2)
    assert titles(text)[1:] == [
        "partition 1: 250 messages produced (25 %), 100 consumed, lag up to 300 (75 %)",
        "partition 2: 0 messages produced (0 %), 0 consumed, lag unknown",
    ]


def test_a_week_names_its_busiest_hours() -> None:
    of = hours(168, lambda hour: 50.0 if hour == 30 else 10.0)

    assert "Most: Tue 08:00 50\u202f/s, " in shown(
        charts.week_chart("Busy hours", week_of(of, BERLIN), formatting.rate, "heat", BERLIN)
    )


def test_hours_of_the_week_without_data_are_no_hours_with_nothing() -> None:
    """A day and a half, in which nothing was produced after the first hour."""
    of = hours(36, lambda hour: 10.0 if hour == 0 else 0.0)
    text = shown(charts.week_chart("Busy hours", week_of(of, BERLIN), formatting.rate, "heat", BERLIN))
    shades = [it.get("stroke-opacity") for it in parsed(text).iter("path") if it.get("class") == "heat"]
    (void,) = paths_in(text, "void")
    without_data = sum((end[0] - begin[0] + 2) / 18 for begin, end in zip(void[::2], void[1::2], strict=True))

    assert shades == ["0.06", "1.00"]
    assert without_data == 7 * 24 - 36


@pytest.mark.parametrize(
    ("most", "top", "step"),
    [
        (0.0, 1.0, 1.0),
        (40.0, 45.0, 15.0),
        (200.0, 240.0, 60.0),
        (4000.0, 4500.0, 900.0),
        (6323.0, 7200.0, 1800.0),
        (2e6, 2_160_000.0, 432_000.0),
    ],
)
def test_an_axis_of_durations_has_steps_that_people_say(most: float, top: float, step: float) -> None:
    assert nice_duration(most) == (top, step)
