"""Every number of a group in the report about the demo's week, beside its topics: with its truth, as `demo_fields` has
those of topics."""

import math
from collections.abc import Callable
from functools import cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from local.histories.plausible_world import Rates
from tests.support.history.demo_fields import AS_COMPUTED, EXACT, HOT, SATURATED, Between, Field
from tests.support.history.demo_truth import DUE, GROUPS, HOUR, HOURS, MAX_WAIT, GroupTruth, hpa_over

TARGETS = SATURATED - {HOT}
"""Groups for which a target can be recommended."""
CHOSEN = {"checkout": (0.75, 50, 3600)}
"""Of the HPAs that keep the wait, the cheapest that seldom changes: its share of the target that the wait allows, the
percentile of the hours that its minimum is for, and its window for scaling down."""
WINDOW = 300


def if_known(truth: Callable[[GroupTruth], Any]) -> Callable[[str, GroupTruth], Any]:
    """None where no capacity can be seen."""
    return lambda name, of: truth(of) if name in SATURATED else None


def if_recommended(truth: Callable[[str, GroupTruth], Any]) -> Callable[[str, GroupTruth], Any]:
    return lambda name, of: truth(name, of) if name in TARGETS else None


def least(name: str, of: GroupTruth, rate: float) -> int:
    return min(of.carrying(rate / 0.8), most(name, of)) if name in SATURATED else 1


def most(name: str, of: GroupTruth) -> int:
    """Fewer than the partitions only where a member's capacity is known, and none is hot."""
    return max(2, of.carrying(1.5 * of.rate.max())) if name in TARGETS else of.most_members


def step(name: str, of: GroupTruth) -> int:
    needed = math.ceil(of.rise / of.member_per_second) if name in SATURATED else 0
    return min(most(name, of), max(4, needed))


def chosen(name: str) -> tuple[float, float, int]:
    return CHOSEN.get(name, (1.0, 10, WINDOW))


def target(of: GroupTruth) -> float:
    """What the wait allows."""
    return of.member_per_second * MAX_WAIT / 1.2


def recommended_least(name: str, of: GroupTruth) -> int:
    return least(name, of, float(np.percentile(of.rate, chosen(name)[1])))


def backlog_windows(of: GroupTruth) -> float:
    """As many windows of four minutes as fill the minutes with a backlog."""
    return sum(backlog_windows_by_hour(of))


def backlog_windows_by_hour(of: GroupTruth) -> list[float]:
    """By hour of the day in Berlin, an hour ahead. A minute has a backlog if half a minute's production waits in a
    partition, and there are members."""
    minutes = np.zeros(24)
    for number, hour in enumerate(HOURS):
        of_hour = slice(hour * HOUR, (hour + 1) * HOUR)
        waits = [
            topic.of_partitions[:, of_hour] > 30 * topic.produced[:, number, np.newaxis] / topic.covered[number]
            for topic in of.topics
        ]
        minutes[(hour + 1) % 24] += int(np.count_nonzero(np.concatenate(waits).any(axis=0) & (of.members[of_hour] > 0)))
    return [float(each) for each in minutes / 4]


@cache
def replicas_over_the_week(name: str) -> Rates:
    """Those of an HPA of our own, minute by minute."""
    of, (share, _, window) = GROUPS[name], chosen(name)
    ends = np.sum([topic.read.log.log_end.sum(axis=0) for topic in of.topics], axis=0)
    rate = np.diff(ends, prepend=ends[0]) / 60
    wanted = int(share * target(of))
    able, fewest, most_of_all = of.member_per_second, recommended_least(name, of), most(name, of)
    _, replicas = hpa_over(rate, able, wanted, fewest, most_of_all, step(name, of), window)
    return replicas[3::4]


def known_members(of: GroupTruth) -> NDArray[np.int32]:
    """In the minutes in which the lag is known."""
    return of.members[of.topics[0].known]


def waited(share: float) -> Callable[[str, GroupTruth], float]:
    return lambda _, of: float(np.percentile(of.topics[0].waits, share))


CLOCK = (
    "windows begin every four minutes by the clock, so those at the ends of a backlog count in part, and a few alone "
    "in an hour may be those of members that only follow"
)
MEASURED = "a capacity is measured in windows of four minutes, in which work arrives by chance (Poisson)"
SURE = "a lower bound: how busy members were in their best hour is not what they could do"
KEPT = "no other HPA is as good, but that it keeps what it promises is all that is claimed"
WITHOUT_ADAPTER = "an HPA has no value for the three hours without an adapter, and a burst falls into them"
WHOLE = (
    "the replay's members carry whole partitions and stop in rebalances, and its HPA has no value without an adapter"
)
BESIDE = "of each HPA that was tried: what is recommended stands in `expected`, and these only have to be possible"
ROUNDED = "a minute's wait is right by 2 %, and before that by an eighth"
REPRODUCED = "what the calibration allows, and the observed wait's own eighth"
GROUP_FIELDS = (
    Field("interval_seconds", lambda *_: 60),
    Field("partitions", lambda _, of: of.partitions),
    Field("members_max", lambda _, of: of.members[DUE].max()),
    Field("max_wait_seconds", lambda *_: MAX_WAIT),
    Field("capacity.p25", if_known(lambda of: of.member_per_second), 0.05, MEASURED),
    Field("capacity.p50", if_known(lambda of: of.member_per_second), 0.03, MEASURED),
    Field("capacity.p95", if_known(lambda of: of.member_per_second), 0.05, MEASURED),
    Field("capacity.windows", if_known(lambda of: Between(CLOCK, 0.7 * backlog_windows(of), backlog_windows(of)))),
    Field(
        "capacity.seconds", if_known(lambda of: Between(CLOCK, 168 * backlog_windows(of), 240 * backlog_windows(of)))
    ),
    Field("capacity.windows_by_hour", if_known(lambda of: Between(CLOCK, 0, backlog_windows_by_hour(of)))),
    *(
        Field(
            f"capacity.{name}_by_hour",
            if_known(lambda of: Between(MEASURED, 0.92 * of.member_per_second, 1.08 * of.member_per_second)),
        )
        for name in ("p25", "p95")
    ),
    Field("capacity_at_least", lambda _, of: Between(SURE, 0, 1.03 * of.member_per_second)),
    Field("production_rate.off_peak", lambda _, of: of.off_peak),
    Field("production_rate.usual", lambda _, of: np.median(of.rate)),
    Field("production_rate.peak", lambda _, of: of.rate.max()),
    Field("production_rate.rise", lambda _, of: of.rise),
    Field(
        "hpa.target_average_value.value",
        if_recommended(lambda name, of: chosen(name)[0] * target(of)),
        0.05,
        "rounded to two digits",
    ),
    Field("hpa.min_replicas.value", recommended_least),
    Field("hpa.max_replicas.value", most),
    Field("hpa.scale_up.stabilization_window_seconds.value", lambda *_: 0),
    Field("hpa.scale_up.policies.value", lambda name, of: [step(name, of), 100]),
    Field("hpa.scale_up.policies.period_seconds", lambda *_: [15, 15]),
    Field("hpa.scale_down.stabilization_window_seconds.value", lambda name, _: chosen(name)[2]),
    Field("hpa.scale_down.policies.value", lambda *_: [50]),
    Field("hpa.scale_down.policies.period_seconds", lambda *_: [60]),
    Field("expected.wait_p50", if_recommended(lambda *_: Between(KEPT, 0, MAX_WAIT))),
    Field("expected.wait_p95", if_recommended(lambda *_: Between(KEPT, 0, MAX_WAIT))),
    Field("expected.wait_max", if_recommended(lambda *_: Between(WITHOUT_ADAPTER, 0, 3 * 3600))),
    Field("expected.kept_share", if_recommended(lambda *_: Between(KEPT, 0.95, 1))),
    Field("expected.replicas_mean", if_recommended(lambda name, _: replicas_over_the_week(name).mean()), 0.07, WHOLE),
    Field(
        "expected.changes_a_day",
        if_recommended(lambda name, _: np.count_nonzero(np.diff(replicas_over_the_week(name))) / 7),
        0.25,
        f"{WHOLE}; and one change more or less makes others",
    ),
    Field("replay.calibration.capacity", if_recommended(lambda _, of: of.member_per_second), 0.03, MEASURED),
    *(
        Field(f"replay.calibration.{course}.{name}", if_recommended(truth), within, because)
        for course, of_waits, why in (("observed", 0.15, ROUNDED), ("replayed", 0.4, REPRODUCED))
        for name, truth, within, because in (
            ("minutes", lambda _, of: len(of.topics[0].known), 0, AS_COMPUTED),
            ("wait_p50", waited(50), of_waits, why),
            ("wait_p95", waited(95), of_waits, why),
            ("wait_p99", waited(99), of_waits, why),
            ("wait_max", waited(100), of_waits, why),
            ("minutes_above", lambda _, of: (of.topics[0].waits > MAX_WAIT).sum(), 0.02, why),
            ("kept_share", lambda _, of: (of.topics[0].waits <= MAX_WAIT).mean(), 0.02, why),
            ("replica_hours", lambda _, of: known_members(of).sum() / 60, EXACT, AS_COMPUTED),
            ("lag_p95", lambda _, of: np.percentile(of.topics[0].lag, 95), of_waits, why),
            (
                "changes_a_day",
                lambda _, of: np.count_nonzero(np.diff(of.members)) / 7,
                0.05,
                "the last one that is known",
            ),
        )
    ),
    *(
        Field(f"{path}.{name}", if_recommended(truth))
        for path in ("replay.candidates", "presets.replayed")
        for name, truth in (
            ("minutes", lambda _, of: Between(BESIDE, len(of.topics[0].known), len(of.topics[0].known))),
            *((f"wait_{each}", lambda *_: Between(BESIDE, 0, 7 * 86_400)) for each in ("p50", "p95", "p99", "max")),
            ("minutes_above", lambda _, of: Between(BESIDE, 0, len(of.topics[0].known))),
            ("kept_share", lambda *_: Between(BESIDE, 0, 1)),
            ("replica_hours", lambda _, of: Between(BESIDE, 0, 168 * of.most_members)),
            ("changes_a_day", lambda *_: Between(BESIDE, 0, 86_400 / 15)),
            ("lag_p95", lambda _, of: Between(BESIDE, 0, max(of.topics[0].lag))),
        )
    ),
    Field(
        "presets.hpa.target_average_value.value",
        if_recommended(lambda _, of: [target(of)] * 5),
        0.05,
        "rounded to two digits, of the HPA that was replayed first",
    ),
    Field(
        "presets.hpa.min_replicas.value",
        lambda name, of: [
            *[least(name, of, of.off_peak)] * 3,
            of.most_members,
            least(name, of, float(np.median(of.rate))),
        ],
    ),
    Field("presets.hpa.max_replicas.value", lambda name, of: [*[most(name, of)] * 3, of.most_members, most(name, of)]),
    Field("presets.hpa.scale_up.stabilization_window_seconds.value", lambda *_: [0, 60, 0, 0, 0]),
    Field(
        "presets.hpa.scale_up.policies.value",
        lambda name, of: [most(name, of), 100, *[step(name, of), 100] * 4],
    ),
    Field("presets.hpa.scale_up.policies.period_seconds", lambda *_: [15] * 10),
    Field(
        "presets.hpa.scale_down.stabilization_window_seconds.value",
        lambda *_: [60, 900, WINDOW, 600, 900],
    ),
    Field("presets.hpa.scale_down.policies.value", lambda *_: [100, 1, 50, 25, 50]),
    Field("presets.hpa.scale_down.policies.period_seconds", lambda *_: [60, 120, 60, 60, 60]),
)
