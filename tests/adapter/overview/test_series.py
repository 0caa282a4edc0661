"""The series of groups: what is written of which group, in both dialects, and what is left out."""

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import pytest
from prometheus_client.parser import text_string_to_metric_families

from adapter.cluster.groups import GroupStatus, Kind, MemberCount, Phase
from adapter.conditions import Conditions, ConditionStatus
from adapter.lag.demand import FOLLOWED_SECONDS
from adapter.lag.ring import Tick, Track
from adapter.metrics.query import Metrics
from adapter.metrics.store import ClusterView
from adapter.overview.exposition import LINES_AT_ONCE
from adapter.overview.series import GroupSeries
from tests.support.samples import NEVER_READ, NOW, Key, Row, SteppedClock, cluster, row, settings, store_of, view

ROWS: dict[Key, Row] = {
    ("billing", "orders", 0): row(7, 10),
    ("billing", "orders", 1): row(None, 5),
    ("billing", "refunds", 0): row(3, 3),
    ("mail", "orders", 0): row(1, 10),
    ("mail", "orders", 1): row(5, 5),
}
Found = dict[tuple[str, ...], float]


def text_of(views: Sequence[ClusterView], conditions: Conditions | None = None, **parts: object) -> str:
    """What is written, by these settings."""
    given = settings(**parts)
    metrics = Metrics(given, store_of(*views), SteppedClock())
    pieces = GroupSeries(lambda: metrics, lambda: given.series, conditions or Conditions()).written()
    assert pieces is not None
    return b"".join(pieces).decode()


def series(views: Sequence[ClusterView], conditions: Conditions | None = None, **series: object) -> dict[str, Found]:
    """Name -> the values of its labels, in their order -> value."""
    families = text_string_to_metric_families(text_of(views, conditions, series=series))
    return {
        family.name: {tuple(each.labels.values()): each.value for each in family.samples if each.name == family.name}
        for family in families
    }


def test_lag_is_that_of_a_listing() -> None:
    lag = series([view(ROWS)])["kafka_consumergroup_lag"]

    assert lag == {("main", "billing", "orders"): 3, ("main", "billing", "refunds"): 0, ("main", "mail", "orders"): 9}


@pytest.mark.parametrize(
    ("by", "expected"),
    [
        ("group", {("main", "billing"): 3, ("main", "mail"): 9}),
        (
            "partition",
            {
                ("main", "billing", "orders", "0"): 3,
                ("main", "billing", "orders", "1"): 0,
                ("main", "billing", "refunds", "0"): 0,
                ("main", "mail", "orders", "0"): 9,
                ("main", "mail", "orders", "1"): 0,
            },
        ),
    ],
)
def test_the_settings_say_what_one_series_is(by: str, expected: Found) -> None:
    assert series([view(ROWS)], by=by)["kafka_consumergroup_lag"] == expected


def test_a_partition_without_commit_has_no_committed_offset_and_counts_as_uncommitted() -> None:
    shown = series([view(ROWS)], by="partition")

    assert ("main", "billing", "orders", "1") not in shown["kafka_consumergroup_committed_offset"]
    assert shown["kafka_consumergroup_uncommitted_partitions"]["main", "billing", "orders", "1"] == 1
    assert shown["kafka_consumergroup_log_end_offset"]["main", "billing", "orders", "1"] == 5


def test_a_group_with_an_unknown_partition_has_no_series_but_that_it_is_not_known() -> None:
    shown = series([view(ROWS | {("mail", "orders", 1): NEVER_READ})])

    assert {group for _, group, _ in shown["kafka_consumergroup_lag"]} == {"billing"}
    assert shown["kafka_consumergroup_known"] == {("main", "billing"): 1, ("main", "mail"): 0}


def test_a_row_beyond_its_greatest_age_is_unknown() -> None:
    shown = series([view(ROWS | {("mail", "orders", 1): row(5, 5).aged(61)})])

    assert shown["kafka_consumergroup_known"] == {("main", "billing"): 1, ("main", "mail"): 0}


def test_waits_are_absent_where_only_a_bound_is_known_and_rates_where_nothing_was_followed() -> None:
    shown = series([view(ROWS)], by="group")

    assert shown["kafka_consumergroup_lag_seconds"] == {}
    assert shown["kafka_consumergroup_lag_seconds_lower_bound"] == {("main", "billing"): 0, ("main", "mail"): 0}
    assert shown["kafka_consumergroup_production_rate"] == {}
    assert shown["kafka_consumergroup_seconds_to_data_loss"] == {}


def moving(seconds: float, ends: int, commits: int, starts: int) -> ClusterView:
    """All of them moved by this much within the seconds before now, which are enough for a rate."""
    made = view({("billing", "orders", 0): row(500, 600, log_start=400)})

    def track(now: int, moved: int) -> Track:
        age, begin = np.zeros(1, dtype=np.float32), NOW - seconds
        ticks = [Tick(NOW - ago, np.array([round(now - moved * ago / seconds)]), age) for ago in (seconds, 60.0, 0.0)]
        return Track(tuple(ticks), ticks[0].offset[:], np.array([begin]))

    ring = replace(made.ring, ends=track(600, ends), commits=track(500, commits), starts=track(400, starts))
    return replace(made, ring=ring)


def test_waits_rates_and_data_loss_follow_from_movement() -> None:
    shown = series([moving(FOLLOWED_SECONDS, ends=600, commits=300, starts=100)], by="group")

    assert shown["kafka_consumergroup_production_rate"]["main", "billing"] == pytest.approx(1, abs=0.001)
    assert shown["kafka_consumergroup_consumption_rate"]["main", "billing"] == pytest.approx(0.5, abs=0.001)
    assert shown["kafka_consumergroup_lag_seconds"]["main", "billing"] == pytest.approx(100, abs=1)
    assert shown["kafka_consumergroup_seconds_to_data_loss"]["main", "billing"] == pytest.approx(600, abs=1)


def test_data_loss_is_absent_where_nothing_waits() -> None:
    made = moving(FOLLOWED_SECONDS, ends=600, commits=300, starts=100)
    rows = {("billing", "orders", 0): row(600, 600, log_start=400)}

    shown = series([replace(view(rows), ring=made.ring)], by="group")
    assert shown["kafka_consumergroup_seconds_to_data_loss"] == {}


def test_members_are_those_that_are_known() -> None:
    counts = {"mail": MemberCount(3, NOW)}

    shown = series([replace(view(ROWS), members_of=counts.get)])
    assert shown["kafka_consumergroup_members"] == {("main", "mail"): 3}


def test_a_group_that_moves_is_rebalancing_and_one_without_a_state_is_neither() -> None:
    phases = {"mail": Phase.MOVING, "billing": Phase.STABLE, "audit": Phase.UNKNOWN}
    statuses = {group: GroupStatus(Kind.CLASSIC, phase) for group, phase in phases.items()}
    made = view(ROWS | {("audit", "orders", 0): row(1, 1), ("other", "orders", 0): row(1, 1)})

    shown = series([replace(made, statuses=statuses)])
    assert shown["kafka_consumergroup_rebalancing"] == {("main", "billing"): 0, ("main", "mail"): 1}


def test_the_number_of_replicas_is_that_of_the_groups_rule() -> None:
    rules = [
        {
            "group": "mail",
            "topics": ["orders"],
            "replicas": {"lagPerReplica": 5, "fallback": {"after": "3m", "replicas": 6}},
        }
    ]

    text = text_of([view(ROWS)], rules=rules, series={})
    assert 'kafka_consumergroup_replicas{cluster="main",group="mail"} 2\n' in text
    assert 'kafka_consumergroup_replicas{cluster="main",group="billing"}' not in text


def test_in_kafka_exporters_dialect_names_and_labels_are_those_of_its_dashboards() -> None:
    text = text_of([view(ROWS)], series={"dialect": "kafka_exporter", "by": "partition"}).splitlines()

    assert 'kafka_consumergroup_lag{cluster="main",consumergroup="mail",topic="orders",partition="0"} 9' in text
    assert (
        'kafka_consumergroup_current_offset{cluster="main",consumergroup="mail",topic="orders",partition="0"} 1' in text
    )
    assert 'kafka_consumergroup_lag_sum{cluster="main",consumergroup="billing",topic="orders"} 3' in text
    assert 'kafka_topic_partition_current_offset{cluster="main",topic="orders",partition="0"} 10' in text
    assert 'kafka_topic_partition_oldest_offset{cluster="main",topic="orders",partition="1"} 0' in text
    assert 'kafka_topic_partitions{cluster="main",topic="orders"} 2' in text


def test_by_topic_the_offsets_of_a_topic_are_summed_up_once_however_many_groups_read_it() -> None:
    shown = series([view(ROWS)], dialect="kafka_exporter")

    assert shown["kafka_topic_partition_current_offset"] == {("main", "orders"): 15, ("main", "refunds"): 3}


def test_the_label_of_the_cluster_can_have_another_name() -> None:
    text = text_of([view(ROWS)], series={"clusterLabel": "kafka"})

    assert 'kafka_consumergroup_lag{kafka="main",group="mail",topic="orders"} 9\n' in text


def test_beyond_the_limit_whole_groups_are_left_out_and_a_condition_says_so() -> None:
    conditions = Conditions()
    enough = text_of([view(ROWS)], series={"limit": 1000})
    of_billing = sum('group="billing"' in line for line in enough.splitlines())
    limited = text_of([view(ROWS)], conditions, series={"limit": 30})

    assert sum('group="billing"' in line for line in limited.splitlines()) == of_billing
    assert 'group="mail"' not in limited
    assert "\nkafka_lag_adapter_series_omitted_groups 1\n" in limited
    (condition,) = conditions.current
    assert condition.status is ConditionStatus.FALSE
    assert condition.message == "1 of 2 groups have none: series.limit is 30"


@pytest.mark.parametrize("by", ["group", "topic", "partition"])
@pytest.mark.parametrize("dialect", ["own", "kafka_exporter"])
def test_there_are_never_more_series_than_the_limit(by: str, dialect: str) -> None:
    made = moving(FOLLOWED_SECONDS, ends=600, commits=300, starts=100)
    made = replace(made, members_of={"billing": MemberCount(1, NOW)}.get)
    rules = [{"group": "billing", "topics": ["orders"], "replicas": {}}]

    def count(limit: int) -> int:
        text = text_of([made], rules=rules, series={"by": by, "dialect": dialect, "limit": limit})
        return sum("billing" in line or 'topic="' in line for line in text.splitlines() if line[0] != "#")

    written = count(1000)
    counts = [count(limit) for limit in range(1, written + 10)]
    assert all(shown <= limit for limit, shown in enumerate(counts, start=1))
    assert {*counts} == {0, written}


def test_once_the_limit_suffices_the_condition_holds() -> None:
    conditions = Conditions()
    for limit in (1, 1000):
        text_of([view(ROWS)], conditions, series={"limit": limit})

    assert [each.status for each in conditions.current] == [ConditionStatus.TRUE]


def test_names_with_quotes_lines_and_bytes_that_are_no_characters_are_escaped() -> None:
    group = 'a"b\\c\nd\udc80'
    shown = series([view({(group, "orders", 0): row(1, 2)})])

    assert shown["kafka_consumergroup_lag"] == {("main", 'a"b\\c\nd\\udc80', "orders"): 1}


def test_groups_of_two_clusters_with_one_name_are_different_series() -> None:
    clusters = [cluster("east"), cluster("west")]
    text = text_of([view(ROWS, "east"), view(ROWS, "west")], clusters=clusters, series={})

    assert 'kafka_consumergroup_lag{cluster="east",group="mail",topic="orders"} 9\n' in text
    assert 'kafka_consumergroup_lag{cluster="west",group="mail",topic="orders"} 9\n' in text


def test_many_lines_come_in_pieces() -> None:
    rows = {("billing", "orders", number): row(1, 2) for number in range(3 * LINES_AT_ONCE)}
    given = settings(series={"by": "partition", "limit": 100_000})
    metrics = Metrics(given, store_of(view(rows)), SteppedClock())
    pieces = GroupSeries(lambda: metrics, lambda: given.series, Conditions()).written()

    assert pieces is not None
    assert max(piece.count(b"\n") for piece in pieces) == LINES_AT_ONCE


def test_without_the_setting_there_is_nothing() -> None:
    metrics = Metrics(settings(), store_of(view(ROWS)), SteppedClock())

    assert GroupSeries(lambda: metrics, lambda: settings().series, Conditions()).written() is None
