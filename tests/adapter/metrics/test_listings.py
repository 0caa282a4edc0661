"""Questions about everything, and about several clusters."""

from collections.abc import Sequence

import pytest

from adapter.metrics.aggregation import MetricValue
from adapter.metrics.problems import Problem, Reason
from adapter.metrics.store import ClusterView, silent_view
from tests.support import samples
from tests.support.kafka.questions import BILLING, SHIPPING, SILENCE, answers, items
from tests.support.samples import NEVER_READ, Answers, row, view, wants, without

# -- listings ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("metric", ["lag", "uncommitted_partitions"])
def test_a_listing_leaves_out_whole_groups_without_a_number_and_names_them(metric: str) -> None:
    rows = BILLING | SHIPPING | {("shipping", "refunds", 0): NEVER_READ}
    reading = answers(rows).read(metric)

    assert {item.labels["group"] for item in reading.values} == {"billing"}
    (warning,) = reading.warnings
    assert "of group shipping is not known" in warning


def test_a_listing_names_groups_that_were_never_read_and_groups_that_lack_a_topic() -> None:
    settings = samples.settings(rules=[{"group": "audit", "topics": ["gone"]}])
    made = view(
        BILLING | {("audit", "orders", 0): row(1, 9)},
        settings=settings,
        problems=[samples.unread("shipping"), samples.missing("audit", "gone")],
    )
    reading = Answers([made], settings).read("lag")

    assert {item.labels["group"] for item in reading.values} == {"billing"}
    assert reading.warnings == (
        "topic gone of group audit does not exist in cluster main; its topics are orders, refunds",
        f"lag of group shipping is not known: {SILENCE}",
    )


def test_groups_but_no_number_at_all_is_no_empty_listing() -> None:
    assert answers({("billing", "orders", 0): NEVER_READ}).reasons() == [Reason.NOT_READ_YET]


def test_a_selector_that_chooses_everything_is_no_listing() -> None:
    rows = answers(BILLING | {("shipping", "orders", 0): NEVER_READ})
    assert rows.reasons("lag", without(group="nobody")) == [Reason.NOT_READ_YET]


# -- silence, several clusters -----------------------------------------------------------------------------

TWO_CLUSTERS = {"clusters": [samples.cluster("main"), samples.cluster("eu")]}


def two_clusters(*views: ClusterView) -> Answers:
    return Answers(views, samples.settings(**TWO_CLUSTERS))


def test_if_one_cluster_knows_a_group_others_do_not_assume_it() -> None:
    elsewhere = view({("billing", "orders", 0): row(None, 5000)}, "eu", assumed=frozenset({"billing"}))
    both = two_clusters(view(BILLING), elsewhere)

    assert clusters_of(both.read("lag", wants(group="billing")).values) == ["main"]
    assert clusters_of(both.read("lag").values) == ["main"]
    assert clusters_of(both.read("lag", wants(group="billing", cluster="eu")).values) == ["eu"]


def test_if_no_cluster_knows_a_group_all_clusters_assume_it() -> None:
    views = [view(BILLING, name, assumed=frozenset({"billing"})) for name in ("main", "eu")]

    assert clusters_of(two_clusters(*views).read("lag", wants(group="billing")).values) == ["eu", "main"]


def clusters_of(values: Sequence[MetricValue]) -> list[str]:
    return sorted({value.labels["cluster"] for value in values})


def test_a_cluster_that_has_not_listed_its_groups_refuses_every_selector_that_could_reach_it() -> None:
    silent = two_clusters(view(BILLING), view({}, "eu", silence="broker 3 has not listed its groups yet"))
    refusals = [silent.refusal("lag", asked).problems for asked in (wants(group="billing"), wants(topic="orders"))]

    text = "not all groups of cluster eu are known: broker 3 has not listed its groups yet"
    assert refusals == [
        (Problem(Reason.GROUP_MAY_EXIST, text, "eu", "billing"),),
        (Problem(Reason.GROUP_MAY_EXIST, text, "eu"),),
    ]
    assert silent.value("records_lag_max", wants(group="billing", cluster="main")) == 10


def test_an_assumed_group_is_in_doubt_until_its_coordinator_has_answered() -> None:
    silence, assumed = "broker 3 has not listed its groups yet", frozenset({"billing"})
    not_read = view({}, "eu", silence=silence, assumed=assumed, problems=[samples.unread("billing", silence)])
    both = two_clusters(view(BILLING), not_read)
    assert both.reasons("lag", wants(group="billing"))[0] is Reason.GROUP_MAY_EXIST
    read = view({("billing", "orders", 0): row(None, 5000)}, "eu", silence=silence, assumed=assumed)

    assert two_clusters(view(BILLING), read).value("records_lag_max", wants(group="billing")) == 10


def test_a_listing_shows_the_cluster_that_is_known_and_warns_of_the_other() -> None:
    reading = two_clusters(view(BILLING), silent_view("eu", "its brokers have not been asked yet")).read("lag")

    assert [item.milli // 1000 for item in reading.values] == [3, 10]
    assert reading.warnings == ("not all groups of cluster eu are known: its brokers have not been asked yet",)


def test_a_listing_of_silent_clusters_is_refused() -> None:
    assert Answers([silent_view("main", "nobody answers")]).reasons("lag") == [Reason.GROUP_MAY_EXIST]


def test_items_of_several_clusters_are_separate_and_maxima_become_one() -> None:
    both = two_clusters(view(BILLING), view({("billing", "orders", 0): row(1, 50)}, "eu"))

    assert items(both.read("lag", wants(topic="orders")).values) == [
        ({"cluster": "main", "group": "billing", "topic": "orders"}, 3),
        ({"cluster": "eu", "group": "billing", "topic": "orders"}, 49),
    ]
    assert items(both.read("records_lag_max", wants(group="billing")).values) == [({}, 49)]
    assert items(both.read("lead_min", wants(cluster="eu")).values) == [
        ({"cluster": "eu", "group": "billing", "topic": "orders"}, 1)
    ]


def test_refusals_name_the_cluster_where_there_are_several() -> None:
    both = two_clusters(view(BILLING), view({("billing", "orders", 0): NEVER_READ}, "eu"))

    assert str(both.refusal(group="billing")).startswith("lag of group billing in cluster eu is not known: ")
