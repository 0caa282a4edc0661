"""What a cycle hands over to be kept: its observations as they were, whatever is served in their place."""

from adapter.cluster.groups import Owned
from adapter.columns import NEVER, NO_COMMIT
from adapter.history.sample import Sample
from adapter.lag.owners import NOT_ASKED
from adapter.lag.snapshot import State
from tests.support import samples
from tests.support.kafka.rig import Rig
from tests.support.kafka.small_cluster import ORDERS_0, given, kafka, running
from tests.support.samples import EPOCH, NOW


def sample_of(rig: Rig) -> Sample:
    (sample,) = rig.samples
    return sample


def test_a_cycle_hands_over_what_it_saw_after_the_store_has_it() -> None:
    rig = running()
    sample = sample_of(rig)

    assert (sample.cluster, sample.sampled_at, sample.to_epoch) == ("main", EPOCH, EPOCH - NOW)
    assert sample.layout is rig.view.layout
    assert sample.observed.committed.tolist() == [7, 10, 5]
    assert sample.observed.log_end.tolist() == [10, 20, 5]
    assert sample.observed.log_start.tolist() == [0, 0, 0]
    assert sample.state.tolist() == [State.OK] * 3
    assert sample.interval_seconds == 10.0
    assert sample.members.tolist() == [0] * 3


def test_what_a_cycle_did_not_see_is_not_in_its_sample_though_it_is_served() -> None:
    rig = running()
    rig.kafka.silent = {2}
    rig.run()
    sample = sample_of(rig)

    assert rig.lag() == 13
    assert (sample.observed.commit_cause != 0).all()
    assert sample.observed.commit_received.tolist() == [NEVER] * 3
    assert sample.state.tolist() == [State.UNKNOWN] * 3


def test_a_cycle_without_any_broker_hands_over_rows_of_which_it_knows_nothing() -> None:
    rig = running()
    rig.brokers.close()
    rig.kafka.unreachable = "nobody lets us in"
    rig.run()
    sample = sample_of(rig)

    assert sample.sampled_at == EPOCH + 10
    assert sample.observed.log_end.tolist() == [-1] * 3
    assert sample.state.tolist() == [State.UNKNOWN] * 3


def test_stale_rows_are_marked_as_stale() -> None:
    cluster = kafka()
    cluster.topics["audit"] = [1]
    cluster.commits["billing"]["audit", 0] = 1
    sample = sample_of(running(cluster, given(topics=["orders"])))

    assert [sample.layout.name(row) for row in range(4) if sample.state[row] == State.STALE] == ["audit/0"]


def test_a_sample_says_which_end_it_has() -> None:
    cluster = kafka()
    cluster.commits["audit"] = {ORDERS_0: 1}
    cluster.stable_ends = {ORDERS_0: 4}
    sample = sample_of(running(cluster, samples.settings(rules=[{"group": "audit", "isolation": "read_committed"}])))
    rows = sample.layout.spans["audit"]

    assert sample.is_committed_only.nonzero()[0].tolist() == list(range(rows.start, rows.stop))
    assert sample.observed.log_end[rows.start] == 4


def test_a_sample_has_the_number_of_each_groups_members_where_it_is_known() -> None:
    cluster = kafka()
    cluster.commits |= {"audit": {ORDERS_0: 1}, "idle": {ORDERS_0: 1}, "unlisted": {ORDERS_0: 1}}
    cluster.unlisted = {"unlisted"}
    cluster.members, cluster.member_counts = {"audit": {"orders"}}, {"audit": 4}
    rig = running(cluster, samples.settings(rules=[{"group": "unlisted", "topics": ["orders"]}]))
    sample = sample_of(rig)

    groups = [sample.layout.groups[code] for code in sample.layout.group]
    assert dict(zip(groups, sample.members.tolist(), strict=True)) == {
        "audit": 4,
        "billing": 0,
        "idle": 0,
        "unlisted": NOT_ASKED,
    }


def owners_of(sample: Sample) -> list[str | None]:
    """Of billing's rows."""
    rows = sample.layout.spans["billing"]
    return [None if code < 0 else sample.owners.names[code] for code in sample.owners.codes[rows].tolist()]


def test_a_sample_has_the_owner_of_each_partition_while_the_assignment_is_valid() -> None:
    cluster = kafka()
    cluster.members = {"billing": {"orders"}}
    cluster.owned = {"billing": (Owned("m0", "orders", (0, 7)), Owned("m1", "orders", (2,)), Owned("m1", "gone", (0,)))}
    rig = running(cluster)
    rig.run(6)
    described = sample_of(rig)
    rig.run()

    assert owners_of(described) == ["m0", None, "m1"]
    assert sample_of(rig).owners is described.owners

    cluster.moving = {"billing"}
    rig.run(6)

    assert owners_of(sample_of(rig)) == [None] * 3


def test_a_sample_has_how_the_settings_count_a_partition_without_commit() -> None:
    cluster = kafka()
    cluster.commits["audit"] = {ORDERS_0: 1}
    sample = sample_of(running(cluster, given(offsetReset="earliest")))
    rows = sample.layout.spans["billing"]

    assert sample.counts_from_start.nonzero()[0].tolist() == list(range(rows.start, rows.stop))


def test_a_sample_has_the_last_commit_from_which_an_expired_one_counts() -> None:
    cluster = kafka()
    rig = running(cluster, given(topics=["orders", "returns"]))
    before = sample_of(rig)
    assert before.last_commit.tolist() == [NO_COMMIT] * 3

    cluster.commits["billing"] = {}
    rig.run(6)
    expired = sample_of(rig)

    assert expired.state.tolist() == [State.NO_COMMIT] * 3
    assert expired.last_commit.tolist() == before.observed.committed.tolist()
