"""The values of members: what the partitions that each one owns make together."""

from dataclasses import replace

import pytest

from adapter.cluster.groups import Assignment, Client, Owned
from adapter.errors import MetricUnknown
from adapter.metrics.members import MemberReading
from adapter.metrics.problems import NoMatch, Reason, ValueUnavailable
from adapter.metrics.query import Metrics
from adapter.metrics.requirement import Requirement
from tests.support import samples
from tests.support.kafka.questions import BILLING
from tests.support.samples import NEVER_READ, Row, SteppedClock, row, store_of, view, wants

LAG, MAX = "kafka_consumergroup_lag", "kafka_consumergroup_records_lag_max"
FIRST, SECOND, IDLE = (Client(name, "", name, "") for name in ("first", "second", "idle"))
OWNED = (
    Owned("first", "orders", (0, 1)),
    Owned("first", "refunds", (0,)),
    Owned("second", "orders", (7,)),
    Owned("second", "trail", (0,)),
)
"""Partition 7 and the topic trail have no rows: they have just been created, or count for nobody."""
BY_GROUP = wants(group="billing")


def metrics(assignment: Assignment | None = None, rows: dict[tuple[str, str, int], Row] | None = None) -> Metrics:
    clock = SteppedClock()
    known = assignment or Assignment(clock.monotonic(), (FIRST, SECOND, IDLE), OWNED)
    assignments = {} if known.described_at < 0 else {"billing": known}
    return Metrics(samples.settings(), store_of(replace(view(rows or BILLING), assignments=assignments)), clock)


def values(reading: MemberReading) -> dict[str, int]:
    return {each.client.member: each.milli // 1000 for each in reading.values}


def read(
    metric: str, asked: tuple[Requirement, ...] = BY_GROUP, assignment: Assignment | None = None
) -> dict[str, int]:
    return values(metrics(assignment).read_members(metric, asked))


def test_a_members_lag_is_the_sum_over_its_partitions_and_0_without_any() -> None:
    assert read(LAG) == {"first": 13, "second": 0, "idle": 0}


@pytest.mark.parametrize("metric", [MAX, "records-lag-max", "kafka_consumer_fetch_manager_records_lag_max"])
def test_a_members_largest_lag_is_that_of_its_partitions(metric: str) -> None:
    assert read(metric) == {"first": 10, "second": 0, "idle": 0}


def test_topics_and_partitions_are_selected_as_in_other_reads() -> None:
    assert read(LAG, wants(group="billing", topic="orders"))["first"] == 3
    assert read(LAG, wants(group="billing", partition="1"))["first"] == 0
    assert read(LAG, wants(group="billing", partition="0"))["first"] == 13


@pytest.mark.parametrize("metric", ["kafka_consumergroup_lead_min", "kafka_consumergroup_uncommitted_partitions"])
def test_other_metrics_are_not_served_for_pods(metric: str) -> None:
    with pytest.raises(MetricUnknown, match="is not served for pods: kafka_consumergroup_lag and"):
        read(metric)


@pytest.mark.parametrize("asked", [(), wants(topic="orders"), samples.without(group="mail")])
def test_the_group_must_be_named(asked: tuple[Requirement, ...]) -> None:
    with pytest.raises(NoMatch, match="must name their group, as in group=billing"):
        read(LAG, asked)


def test_an_unknown_group_is_as_in_other_reads() -> None:
    with pytest.raises(NoMatch, match="no group 'mail' is known"):
        read(LAG, wants(group="mail"))


def test_while_no_assignment_is_known_there_is_no_value() -> None:
    with pytest.raises(ValueUnavailable, match="lag of group billing is not known: which partitions its") as refused:
        read(LAG, assignment=Assignment(-1.0, (), ()))

    assert [each.reason for each in refused.value.problems] == [Reason.MEMBERS_UNKNOWN]


def test_an_assignment_grows_too_old_like_an_offset() -> None:
    now = SteppedClock().monotonic()
    fresh, old = (Assignment(now - seconds, (FIRST,), OWNED) for seconds in (59.0, 61.0))

    assert read(LAG, assignment=fresh) == {"first": 13}
    assert metrics(fresh).read_members(LAG, BY_GROUP).valid_until == now + 1
    with pytest.raises(ValueUnavailable, match="was last known 61 s ago, limit 60 s"):
        read(LAG, assignment=old)


def test_a_partition_without_a_value_refuses_the_whole() -> None:
    """Also one that no member owns: sums are whole or there are none."""
    rows = {**BILLING, ("billing", "orders", 1): NEVER_READ}
    with pytest.raises(ValueUnavailable):
        metrics(rows=rows).read_members(LAG, BY_GROUP)


def test_the_members_of_several_groups_are_read_together() -> None:
    both = {**BILLING, ("mail", "orders", 0): row(1, 5), ("mail", "orders", 1): row(9, 9)}
    clock = SteppedClock()
    assignments = {
        "billing": Assignment(clock.monotonic(), (FIRST,), OWNED),
        "mail": Assignment(clock.monotonic(), (SECOND,), (Owned("second", "orders", (0,)),)),
    }
    store = store_of(replace(view(both), assignments=assignments))

    assert values(Metrics(samples.settings(), store, clock).read_members(LAG, wants(group=["billing", "mail"]))) == {
        "first": 13,
        "second": 4,
    }
