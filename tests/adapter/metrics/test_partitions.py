"""How many replicas can have a partition of what a read covers."""

from collections.abc import Mapping
from dataclasses import replace

import pytest

from adapter.metrics.partitions import Readable, combined
from adapter.metrics.problems import NoMatch, ValueUnavailable
from adapter.metrics.query import Metrics
from adapter.metrics.requirement import Requirement
from adapter.verdicts.assignment import Sharing
from tests.support import samples
from tests.support.samples import NEVER_READ, Key, Row, SteppedClock, row, store_of, view, wants

LAG = "kafka_consumergroup_lag"
ORDERS: dict[Key, Row] = {("billing", "orders", number): row(0, 100 * number) for number in range(4)}
REFUNDS: dict[Key, Row] = {("billing", "refunds", number): row(0, 100) for number in range(3)}
BILLING = wants(group="billing")


def read(
    rows: Mapping[Key, Row],
    asked: tuple[Requirement, ...] = BILLING,
    sharing: Sharing = Sharing.BY_TOPIC,
    metric: str = LAG,
    **parts: object,
) -> tuple[Readable, ...]:
    settings = samples.settings(**parts)
    made = replace(view(rows, settings=settings), sharing_of=lambda _: sharing)
    return Metrics(settings, store_of(made), SteppedClock()).partitions(metric, asked)[0]


def test_a_read_covers_the_partitions_of_each_of_its_topics() -> None:
    (billing,) = read(ORDERS | REFUNDS)

    assert (billing.cluster, billing.group, dict(billing.partitions)) == (
        "main",
        "billing",
        {"orders": 4, "refunds": 3},
    )


@pytest.mark.parametrize(
    ("sharing", "most"), [(Sharing.BY_TOPIC, 4), (Sharing.TOGETHER, 7), (Sharing.SEVERAL_READERS, None)]
)
def test_members_share_topics_as_the_groups_assignor_does(sharing: Sharing, most: int | None) -> None:
    (billing,) = read(ORDERS | REFUNDS, sharing=sharing)

    assert billing.most_replicas == most


def test_a_selector_of_partitions_covers_these_alone() -> None:
    (billing,) = read(ORDERS, wants(group="billing", partition=["0", "2", "9"]))

    assert billing.most_replicas == 2


def test_several_consumers_in_a_replica_share_its_partitions() -> None:
    replicas = {"lagPerReplica": 1, "consumersPerReplica": 3}
    metric = {"name": "r", "value": "replicas", "group": "billing", "topics": ["orders"], "replicas": replicas}
    (billing,) = read(ORDERS, (), metric="r", metrics=[metric])

    assert billing.most_replicas == 2


def test_reads_of_several_topics_are_combined() -> None:
    both = [*read(ORDERS, sharing=Sharing.TOGETHER), *read(REFUNDS, sharing=Sharing.TOGETHER)]

    assert combined(both).most_replicas == 7
    assert combined([*both, both[0]]).most_replicas == 7


def test_partitions_are_unknown_where_the_read_is_refused() -> None:
    with pytest.raises(ValueUnavailable):
        read(ORDERS | {("billing", "orders", 4): NEVER_READ})
    with pytest.raises(NoMatch):
        read(ORDERS, wants(group="mail"))


def test_nothing_is_said_while_it_is_in_doubt_whether_a_topic_is_read() -> None:
    settings = samples.settings()
    made = view(ORDERS | REFUNDS, settings=settings)
    doubtful = replace(made.totals, lag=[0, 0], is_in_doubt=[False, True])
    metrics = Metrics(settings, store_of(replace(made, totals=doubtful)), SteppedClock())

    assert metrics.partitions(LAG, BILLING)[0] == ()


def test_a_fallback_tells_nothing_of_partitions() -> None:
    replicas = {"lagPerReplica": 1, "fallback": {"after": "1s", "replicas": 6}}
    metric = {"name": "r", "value": "replicas", "group": "billing", "topics": ["orders"], "replicas": replicas}
    settings = samples.settings(metrics=[metric])
    rows = ORDERS | {("billing", "orders", 4): NEVER_READ}
    clock = SteppedClock()
    metrics = Metrics(settings, store_of(view(rows, settings=settings)), clock)
    with pytest.raises(ValueUnavailable):
        metrics.read("r", ())
    clock.seconds += 2
    assert metrics.read("r", ()).values[0].milli == 6000

    with pytest.raises(ValueUnavailable):
        metrics.partitions("r", ())
