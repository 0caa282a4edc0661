import dataclasses
import math
from zoneinfo import ZoneInfo

import numpy as np
import pytest

from spark.advice.hpa import draft_of
from spark.advice.presets import Preset, best_of
from spark.figures.model import Above, Group, Lag
from spark.figures.periods import between
from tests.support.history.report_groups import group, hours, saturated, span, topic

BERLIN = ZoneInfo("Europe/Berlin")
NAMES = ["low inertia", "high inertia", "known peaks", "initial load", "constantly high"]


def of(it: Group) -> dict[str, Preset]:
    return {preset.name: preset for preset in draft_of(it, BERLIN).presets}


def daily(hour: int) -> float:
    return 20 + 180 * max(0.0, math.sin((hour % 24 - 6) / 12 * math.pi))


BY_THE_CLOCK = group("billing", topic(of=hours(168, daily, partitions=12, members_max=12)), capacity=saturated(60, 50))
STEADY = group("billing", topic(of=hours(168, lambda _: 100, partitions=12)), capacity=saturated(60, 50))


def test_all_five_are_given_also_where_none_fits() -> None:
    presets = of(group("billing", topic(of=hours(6, lambda hour: 10 * hour))))

    assert list(presets) == NAMES
    assert best_of(tuple(presets.values())) is None


def test_peaks_by_the_clock_are_known_peaks_with_a_schedule_in_local_time() -> None:
    preset = of(BY_THE_CLOCK)["known peaks"]

    assert preset.looks_like_it
    assert "09:00-" in preset.extra  # from 07:00 UTC on it is 1.5 times the usual: 09:00 in summer
    assert "set minReplicas to 6" in preset.extra


def test_a_schedule_begins_no_later_than_its_peak_in_a_zone_of_half_hours() -> None:
    """A peak from 09:00 to 12:00, which is 03:30 to 06:30 in UTC."""
    utc = hours(168, lambda hour: {3: 30.0, 4: 60.0, 5: 60.0, 6: 30.0}.get(hour % 24, 8.0))
    local = hours(168, lambda hour: 60.0 if hour % 24 in {3, 4, 5} else 8.0)
    local = dataclasses.replace(local, start=local.start + np.timedelta64(30, "m"))
    it = dataclasses.replace(group("billing", topic(of=utc), capacity=saturated(60, 50)), local_hours=local)
    preset = draft_of(it, ZoneInfo("Asia/Kolkata")).presets[NAMES.index("known peaks")]
    assert preset.least_by_hour is not None

    assert "Peak hours are 09:00-12:00" in preset.extra
    assert preset.least_by_hour[:24] == (*3 * [1], *4 * [2], *17 * [1])


def test_chance_is_no_pattern() -> None:
    chance = hours(168, lambda hour: float(pow(7, hour + 1, 1009)))

    assert not of(group("billing", topic(of=chance)))["known peaks"].looks_like_it


def test_a_load_that_hardly_changes_is_constantly_high_and_keeps_what_the_median_needs() -> None:
    preset = of(STEADY)["constantly high"]

    assert preset.looks_like_it
    assert preset.hpa.min_replicas.value == 3  # 100/s at 80 % of 50/s each: four of twelve partitions each
    assert not of(BY_THE_CLOCK)["constantly high"].looks_like_it


def test_a_backlog_at_the_start_is_an_initial_load_that_begins_with_all() -> None:
    backlog = dataclasses.replace(
        topic(of=hours(48, partitions=12)), lag=Lag(48, 0, 100, 1e6, 1e6, 1e6, 0, *span(hours()))
    )
    preset = of(group("billing", backlog, capacity=saturated(60, 50)))["initial load"]

    assert preset.looks_like_it
    assert preset.hpa.min_replicas.value == 12
    assert "12 members work off" in preset.extra


def test_an_initial_load_lasts_for_hours_by_the_clock_also_where_some_were_not_seen() -> None:
    """Six million messages are nearly three hours of work for twelve members. The second hour has no row."""
    of_hours = hours(48, partitions=12)
    seen = between(of_hours, np.arange(48) != 1)
    backlog = dataclasses.replace(topic(of=seen), lag=Lag(48, 0, 100, 6e6, 6e6, 6e6, 0, *span(seen)))
    preset = of(group("billing", backlog, capacity=saturated(60, 50)))["initial load"]
    assert preset.least_by_hour is not None

    assert preset.least_by_hour[:4] == (12, 12, 1, 1)


def test_what_is_no_backlog_is_not_worked_off() -> None:
    quiet = dataclasses.replace(
        topic(of=hours(48, partitions=12)), lag=Lag(48, 300, 310, 320, 330, 300, 310, *span(hours()))
    )

    assert of(group("billing", quiet, capacity=saturated(60, 50)))["initial load"].extra == ""


def test_short_spikes_ask_for_low_inertia() -> None:
    spikes = dataclasses.replace(topic(), above=Above(600, False, 1200, 48 * 3600, 5, 600, None))
    it = group("billing", spikes, capacity=saturated(60, 50))
    preset = of(it)["low inertia"]

    assert preset.looks_like_it
    assert preset.hpa.down.window_seconds.value == 60


def test_load_that_comes_and_goes_asks_for_high_inertia() -> None:
    preset = of(group("billing", topic(of=hours(48, lambda hour: 10 if hour % 6 == 3 else 100))))["high inertia"]

    assert preset.looks_like_it
    assert (preset.hpa.down.window_seconds.value, preset.hpa.down.pods.value, preset.hpa.down.period_seconds) == (
        900,
        1,
        120,
    )


@pytest.mark.parametrize("it", [BY_THE_CLOCK, STEADY, group(), group("x", topic(of=hours(1, lambda _: 0)))])
def test_no_preset_asks_for_more_than_there_are_partitions_or_less_than_none(it: Group) -> None:
    for preset in of(it).values():
        assert 0 <= preset.hpa.min_replicas.value <= preset.hpa.max_replicas.value <= it.partitions


def test_what_peak_hours_need_is_not_known_without_a_capacity() -> None:
    preset = of(group("billing", topic(of=hours(168, daily, partitions=12))))["known peaks"]

    assert preset.looks_like_it
    assert preset.extra.endswith("; how many replicas they need is not known.")


def test_an_initial_load_begins_with_as_many_as_can_have_a_partition() -> None:
    """The larger of two topics counts, because the RangeAssignor assigns both to the same members."""
    both = group("billing", topic("loud", hours(partitions=12)), topic("quiet", hours(partitions=6)))
    hpa = of(both)["initial load"].hpa

    assert (hpa.min_replicas.value, hpa.max_replicas.value) == (12, 12)
