"""What the adapter may not describe: refused where somebody needs it, never taken for something that is not there."""

from adapter.metrics.problems import Reason
from adapter.settings.models import Settings
from tests.support import samples
from tests.support.kafka.fake_cluster import NOBODY, Kafka
from tests.support.kafka.small_cluster import ORDERS_0, given, kafka, running
from tests.support.samples import wants

HIDDEN = "the adapter may not describe topic refunds (ACL Describe on the topic is missing)"


def with_refunds() -> Settings:
    return samples.settings(rules=[{"group": "billing", "topics": ["orders", "refunds"]}])


def test_a_given_topic_that_is_hidden_is_refused_with_the_missing_right() -> None:
    cluster = kafka()
    cluster.hidden = {"refunds"}
    rig = running(cluster, with_refunds())
    rig.run(9)

    assert rig.reasons(group="billing") == [Reason.TOPIC_HIDDEN]


def test_a_given_topic_that_becomes_hidden_is_refused_and_not_taken_for_deleted() -> None:
    cluster = kafka()
    cluster.topics["refunds"] = [1]
    rig = running(cluster, with_refunds())
    assert rig.lag() == 13

    cluster.hidden = {"refunds"}
    rig.run(9)
    assert rig.reasons(group="billing") == [Reason.TOPIC_HIDDEN]


def test_a_given_topic_that_is_hidden_refuses_only_what_it_is_part_of() -> None:
    cluster = kafka()
    cluster.hidden = {"refunds"}
    settings = samples.settings(
        rules=[{"group": "billing", "topics": ["orders", "refunds"]}],
        metrics=[
            {"name": "orders-alone", "value": "lag", "group": "billing", "topics": ["orders"]},
            {"name": "both", "value": "lag", "group": "billing"},
        ],
    )
    rig = running(cluster, settings)

    assert sum(item.milli // 1000 for item in rig.read("lag", wants(group="billing", topic="orders")).values) == 13
    assert rig.read("records_lag_max", wants(group="billing", topic="orders")).values[0].milli // 1000 == 10
    assert rig.read("orders-alone").values[0].milli // 1000 == 13
    for metric, asked in {
        "lag": wants(group="billing", topic="refunds"),
        "records_lag_max": wants(group="billing"),
        "uncommitted_partitions": wants(group="billing"),
        "both": (),
    }.items():
        assert rig.reasons(metric, asked) == [Reason.TOPIC_HIDDEN]


def test_a_listing_names_a_group_with_a_hidden_topic_in_a_warning() -> None:
    cluster = kafka()
    cluster.hidden = {"refunds"}
    cluster.commits["audit"] = {ORDERS_0: 9}
    reading = running(cluster, with_refunds()).read("lag")

    assert [item.labels["group"] for item in reading.values] == ["audit"]
    assert reading.warnings == (f"lag of group billing is not known: {HIDDEN}",)


def test_a_topic_that_is_shown_again_counts_again() -> None:
    cluster = kafka()
    cluster.topics["refunds"], cluster.hidden = [1], {"refunds"}
    rig = running(cluster, with_refunds())
    cluster.hidden = set()
    rig.run(4)

    assert rig.lag() == 13


def test_a_given_topic_that_does_not_exist_is_still_not_found() -> None:
    rig = running(kafka(), with_refunds())
    rig.run(4)

    assert rig.reasons(group="billing") == [Reason.TOPIC_MISSING]


def test_a_hidden_offsets_topic_is_no_proof_that_a_group_has_no_commits() -> None:
    """Its coordinator may be away; only in a cluster without any commits can nobody be meant to know the group."""
    cluster = Kafka(topics={"orders": [1]}, ends={ORDERS_0: 10}, coordinators={"billing": NOBODY})
    cluster.hidden = {"__consumer_offsets"}
    rig = running(cluster, given())
    rig.run(5)

    assert set(rig.reasons(group="billing")) == {Reason.NOT_READ_YET}
