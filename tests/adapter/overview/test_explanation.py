"""Why a group has its lag: the paragraph, and what is said of each partition."""

from collections.abc import Mapping, Sequence
from dataclasses import replace

import pytest

from adapter.cluster.groups import GroupStatus, Kind, MemberCount, Owned, Phase
from adapter.lag.snapshot import State
from adapter.metrics.problems import NoMatch, ValueUnavailable
from adapter.metrics.query import Metrics
from adapter.metrics.store import ClusterView
from adapter.overview.explanation import Explanation, PartitionLine, decimal, explanations_of
from adapter.settings.models import Settings
from tests.support.samples import (
    NEVER_READ,
    NOW,
    Key,
    Row,
    SteppedClock,
    cluster,
    row,
    settings,
    store_of,
    view,
)

WHY = "broker 2 at kafka-2:9092 does not answer"


def explained(
    *views: ClusterView,
    group: str = "billing",
    given: Settings | None = None,
    namespace: str | None = None,
    is_asked: bool = False,
) -> tuple[Explanation, ...]:
    used, clock = given or settings(), SteppedClock()
    metrics = Metrics(used, store_of(*views), clock)
    return explanations_of(group, metrics, used, clock, namespace, is_asked=is_asked)


def partitions_of(rows: Mapping[Key, Row], given: Settings | None = None) -> Sequence[PartitionLine]:
    (one,) = explained(view(rows, settings=given), given=given)
    return one.partitions


def test_a_partition_has_offsets_age_and_what_it_adds() -> None:
    (line,) = partitions_of({("billing", "orders", 0): row(7, 10, log_start=2).aged(4)})

    assert line == PartitionLine("orders", 0, "ok", 7, 2, 10, 3, 4.0, "", "")


@pytest.mark.parametrize(
    ("one", "state", "lag", "why"),
    [
        (row(None, 5), "no_commit", 0, "never committed: counts 0"),
        (NEVER_READ, "unknown", None, f"not known: {WHY}"),
        (row(7, 10).aged(95).unknown(WHY), "unknown", None, f"not known: {WHY}"),
        (row(7, 10).aged(95), "ok", None, "not known: it is older than 60 s"),
        (row(7, 10).aged(20).unknown(WHY), "unknown", 3, f"still served from the last good reading: {WHY}"),
        (row(70, 10, state=State.AHEAD), "ahead", None, "not known: the commit is beyond the log end"),
    ],
)
def test_what_is_said_of_a_partition(one: Row, state: str, lag: int | None, why: str) -> None:
    (line,) = partitions_of({("billing", "orders", 0): one})

    assert (line.state, line.lag, line.why) == (state, lag, why)


def test_a_rule_says_what_is_outside_and_what_counts_without_a_commit() -> None:
    given = settings(rules=[{"group": "billing", "topics": ["orders"]}])
    rows = {("billing", "orders", 0): row(None, 5), ("billing", "refunds", 0): row(1, 9)}

    lines = {line.topic: line for line in partitions_of(rows, given)}
    assert (lines["orders"].lag, lines["orders"].why) == (5, "never committed: its whole log counts")
    assert (lines["refunds"].lag, lines["refunds"].state) == (None, "stale")
    assert lines["refunds"].why == "not counted: its topic is outside of the rule's topics"
    (one,) = explained(view(rows, settings=given), given=given)
    assert one.rule == (
        "rules[0] (group: billing, topics: orders): a partition that was never committed counts the whole log"
    )


def test_a_topic_that_no_member_reads_does_not_count() -> None:
    rows = {("billing", "orders", 0): row(1, 5), ("billing", "refunds", 0): row(1, 9)}
    (one,) = explained(view(rows, members_read={"billing": frozenset({"orders"})}))

    assert [line.why for line in one.partitions] == ["", "not counted: no member of the group reads its topic"]
    assert "1 of its 2 partitions count, 1 do not, and 0 are not known." in one.summary


def test_a_partition_has_its_owner_and_the_group_its_members_and_state() -> None:
    rows = {("billing", "orders", number): row(1, 5) for number in (0, 1)}
    made = replace(
        view(rows),
        owned={"billing": (Owned("consumer-1", "orders", (1,)),)},
        members_of={"billing": MemberCount(1, NOW)}.get,
        statuses={"billing": GroupStatus(Kind.CLASSIC, Phase.STABLE)},
    )
    (one,) = explained(made)

    assert [line.owner for line in one.partitions] == ["", "consumer-1"]
    assert "The group has 1 member and is stable." in one.summary


def test_the_paragraph_has_the_lag_that_is_served_and_its_largest_part() -> None:
    (one,) = explained(view({("billing", "orders", 0): row(7, 10), ("billing", "orders", 1): row(0, 100)}))

    assert one.summary.startswith(
        "Group billing in cluster main has a lag of 103 messages. The largest part is 100 in orders/1."
    )


def test_the_paragraph_says_that_nobody_reads_what_waits() -> None:
    made = replace(view({("billing", "orders", 0): row(7, 10)}), members_of={"billing": MemberCount(0, NOW)}.get)

    assert explained(made)[0].summary.endswith("Nobody reads what waits.")


def test_a_refused_lag_is_explained_by_its_own_words() -> None:
    (one,) = explained(view({("billing", "orders", 0): NEVER_READ}))

    assert one.summary.startswith(
        f"The lag of group billing in cluster main is not served: lag of group billing is not known: orders/0: {WHY}."
    )


def test_every_metric_of_the_group_is_served_or_refused() -> None:
    (one,) = explained(view({("billing", "orders", 0): row(7, 10)}))
    served = {each.metric: each for each in one.served}

    assert served["kafka_consumergroup_records_lag_max"].value == "3"
    assert served["kafka_consumergroup_members"].value == ""
    assert "has not been described" in served["kafka_consumergroup_members"].refusal


def test_what_the_settings_do_not_ask_for_is_not_shown() -> None:
    (one,) = explained(view({("billing", "orders", 0): row(7, 10)}))

    assert "kafka_consumergroup_replicas" not in {each.metric for each in one.served}


def test_a_group_of_two_clusters_has_two_explanations() -> None:
    rows = {("billing", "orders", 0): row(7, 10)}
    given = settings(clusters=[cluster("east"), cluster("west")])
    found = explained(view(rows, "east", given), view(rows, "west", given), given=given)

    assert [(one.cluster, one.served[0].value) for one in found] == [("east", "3"), ("west", "3")]


def test_an_unknown_group_is_told_with_those_of_similar_names() -> None:
    with pytest.raises(NoMatch, match="no group 'biling' is known; known groups are billing"):
        explained(view({("billing", "orders", 0): row(7, 10)}), group="biling")


def test_a_group_that_only_a_silent_broker_may_know_is_not_called_unknown() -> None:
    with pytest.raises(ValueUnavailable, match="whether group 'mail' exists in cluster main is not known"):
        explained(view({("billing", "orders", 0): row(7, 10)}, silence=WHY), group="mail")


def test_a_tenant_is_told_nothing_of_the_groups_of_others() -> None:
    given = settings(rules=[{"group": "billing", "namespaces": ["payments"]}])
    made = view({("billing", "orders", 0): row(7, 10), ("mail", "orders", 0): row(1, 10)}, settings=given)

    assert explained(made, given=given, namespace="payments")[0].group == "billing"
    with pytest.raises(NoMatch, match="no group 'billing' is known; known groups are mail"):
        explained(made, given=given, namespace="shop")


def test_a_tenant_is_not_told_of_topics_that_only_hpas_of_others_name() -> None:
    given = settings(rules=[{"group": "billing", "namespaces": ["payments"]}])
    rows = {("billing", "orders", 0): row(7, 10), ("billing", "salaries", 0): row(None, 90)}
    asked = view(rows, settings=given, asked=frozenset({("billing", "salaries")}))

    def topics(namespace: str | None) -> list[str]:
        (one,) = explained(asked, given=given, namespace=namespace)
        return [line.topic for line in one.partitions]

    assert topics("payments") == ["orders"]
    assert topics(None) == ["orders", "salaries"]


def test_a_group_that_only_hpas_name_is_explained_to_those_who_have_such_an_hpa() -> None:
    rows = {("new", "orders", 0): row(None, 90)}
    made = view(rows, assumed=frozenset({"new"}), asked=frozenset({("new", "orders")}))
    with pytest.raises(NoMatch, match="no group 'new' is known"):
        explained(made, group="new")

    (one,) = explained(made, group="new", is_asked=True)
    assert one.summary.startswith("Kafka knows no group new in cluster main, and only selectors of HPAs name it.")
    (line,) = one.partitions
    assert (line.lag, line.why) == (
        None,
        "counted only for the HPAs whose selector names the group and this topic: 90",
    )


def test_a_named_metric_of_other_readers_does_not_prevent_an_explanation() -> None:
    named = {"name": "kafka_consumergroup_backlog", "value": "lag", "group": "mail", "namespaces": ["post"]}
    given = settings(rules=[{"group": "billing", "namespaces": ["payments"]}], metrics=[named])
    (one,) = explained(view({("billing", "orders", 0): row(7, 10)}, settings=given), given=given, namespace="payments")

    assert named["name"] not in {each.metric for each in one.served}


@pytest.mark.parametrize(
    ("milli", "text"), [(0, "0"), (12_345_678_000, "12345678"), (1_234_567_890, "1234567.89"), (22, "0.022")]
)
def test_numbers_have_all_their_digits(milli: int, text: str) -> None:
    assert decimal(milli) == text
