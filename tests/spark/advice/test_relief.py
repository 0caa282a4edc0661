"""Whether more replicas help a group that falls behind, by what was measured of its members and partitions."""

from dataclasses import replace
from zoneinfo import ZoneInfo

import pytest

from adapter.verdicts.capacity import Capacity
from spark.advice.demand import load_of
from spark.advice.relief import relief
from spark.figures.model import Group
from tests.support.history.advised_groups import changed
from tests.support.history.report_groups import group, hours, saturated, topic

UTC = ZoneInfo("UTC")
SCATTERED = replace(saturated(60, 20.0), p25=10.0, p95=100.0)


def behind(produced: float, capacity: Capacity | None, **columns: float) -> Group:
    """So many messages a second, of four partitions that two members read."""
    return group("billing", topic(of=changed(hours(production=lambda _: produced), **columns)), capacity=capacity)


def said(of: Group) -> str:
    return relief(of, load_of(of), UTC).replace("\u202f", " ")


def test_more_replicas_are_asked_for_where_together_they_do_what_the_busiest_hour_brought() -> None:
    assert said(behind(150, saturated())) == (
        "Give it more replicas, up to 4: 4 members can have a partition, and together they do 200 /s; the busiest hour "
        "brought 150 /s."
    )


def test_partitions_are_asked_for_where_all_members_together_do_less() -> None:
    assert said(behind(300, saturated())) == (
        "Give it more partitions, or make its work faster: 4 members can have a partition, and together they do 200 "
        "/s; the busiest hour brought 300 /s."
    )


def test_the_only_member_that_can_have_a_partition_is_one() -> None:
    alone = behind(60, saturated(), partitions=1, skew=1.0, members_max=0)

    assert said(alone) == (
        "Give it more partitions, or make its work faster: 1 member can have a partition, and it does 50 /s; the "
        "busiest hour brought 60 /s."
    )


def test_keys_are_to_be_spread_where_one_partition_got_more_than_a_member_does() -> None:
    """45 % of the messages are less than twice the fair share, so no partition is hot."""
    assert said(behind(150, saturated(), skew=0.45)) == (
        "Spread the keys over the partitions, or make its work faster: in the busiest hour, one partition got about "
        "67.5 /s, and a member does 50 /s."
    )


@pytest.mark.parametrize("capacity", [None, saturated()], ids=["not known", "less than it got"])
def test_more_replicas_are_not_asked_for_where_a_partition_is_hot(capacity: Capacity | None) -> None:
    assert said(behind(150, capacity, skew=0.6)) == (
        "Spread the keys over the partitions first; more replicas do not help its hot partition."
    )


@pytest.mark.parametrize(
    ("capacity", "why"),
    [
        (None, "What a member can do is not known: the group was never seen saturated."),
        (SCATTERED, "What a member can do differs too much: 10 /s in the slower quarter of 60 windows, "),
    ],
    ids=["never saturated", "scattered"],
)
def test_without_a_capacity_more_replicas_may_help(capacity: Capacity | None, why: str) -> None:
    assert said(behind(150, capacity)).startswith(f"More replicas may help: 4 members can have a partition. {why}")


def test_members_that_share_partitions_may_be_too_few() -> None:
    shared = replace(behind(150, saturated(), members_max=6), is_spread=None)

    assert said(shared) == "More replicas may help, or faster work; which member reads what is not known."


def test_a_group_with_a_member_for_each_partition_gets_no_more_replicas() -> None:
    assert said(behind(150, saturated(), members_max=4)).startswith(
        "It already has as many members as can have a partition"
    )
