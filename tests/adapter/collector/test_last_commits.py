"""What is remembered of commits that have expired, and what of it is kept over restarts."""

from collections.abc import Callable

import pytest

from adapter.collector.cycle import Cycle
from adapter.collector.last_commits import MOST_BYTES, RENEW_SECONDS, Key, LastCommits, dumps, loads
from adapter.errors import AdapterError, NotKept, ValueUnavailable
from adapter.lag.last_commit import LastCommit
from adapter.lag.rules import Watching
from tests.support.kafka.fake_cluster import Kafka
from tests.support.kafka.rig import Rig
from tests.support.kafka.small_cluster import BILLING, ORDERS_0, ORDERS_1, ORDERS_2, given, kafka

HOUR = 3601.0
KEY: Key = ("main", "billing", "orders")


class Shelf:
    """A text that outlives an adapter."""

    def __init__(self) -> None:
        self.text = ""
        self.writes = 0
        self.error: AdapterError | None = None
        self.write_error: AdapterError | None = None

    def exchange(self, change: Callable[[str], str]) -> None:
        if self.error is not None:
            raise self.error
        changed = change(self.text)
        if self.write_error is not None and changed != self.text:
            raise self.write_error
        self.writes += changed != self.text
        self.text = changed


class Adapter:
    """An adapter that remembers, over a fake cluster."""

    def __init__(self, cluster: Kafka, shelf: Shelf, *, policy: str = "latest") -> None:
        self.rig = Rig(cluster, given(offsetReset=policy))
        settings, interval = self.rig.settings, self.rig.settings.collection.interval
        self.last_commits = LastCommits(lambda: self.rig.store.views, self.rig.clock, shelf.exchange)
        self.rig.cycle = Cycle(
            "main", interval, Watching(settings, "main"), self.rig.brokers, self.rig.store, self.rig.clock,
            memory=self.last_commits,
        )  # fmt: skip

    def run(self, cycles: int = 1) -> None:
        for _ in range(cycles):
            self.rig.run()
            self.last_commits.run_once()

    def lag(self) -> int:
        return self.rig.lag()


def cluster() -> Kafka:
    made = kafka()
    made.generations["orders"] = "id-1"
    return made


def expired(shelf: Shelf) -> Kafka:
    """A cluster whose commits have expired, once 13 messages were waiting; the adapter saw it."""
    made = cluster()
    adapter = Adapter(made, shelf)
    adapter.run()
    made.commits.clear()
    adapter.run(12)
    assert adapter.lag() == 13
    return made


def test_an_adapter_that_starts_after_the_expiry_counts_from_the_last_commit() -> None:
    shelf = Shelf()
    kafka_since = expired(shelf)
    kafka_since.ends[ORDERS_2] += 4
    adapter = Adapter(kafka_since, shelf)
    adapter.last_commits.run_once()
    adapter.run()

    assert adapter.lag() == 17


def test_until_the_kept_commits_are_read_a_missing_commit_is_unknown() -> None:
    shelf = Shelf()
    adapter = Adapter(expired(shelf), shelf)
    adapter.rig.run()
    with pytest.raises(ValueUnavailable, match=r"orders/0: it has no commit, and whether one has expired is not known"):
        adapter.lag()

    adapter.run()
    adapter.rig.run()

    assert adapter.lag() == 13


def test_without_permission_to_keep_them_last_commits_count_until_the_process_ends() -> None:
    shelf = Shelf()
    shelf.error = NotKept("403")
    adapter = Adapter(cluster(), shelf)
    adapter.run(2)
    adapter.rig.kafka.commits.clear()
    adapter.run(12)

    assert adapter.lag() == 13
    assert shelf.text == ""


def test_what_cannot_be_written_now_is_written_later() -> None:
    shelf = Shelf()
    adapter = Adapter(cluster(), shelf)
    adapter.run(2)
    adapter.rig.kafka.commits.clear()
    shelf.error = AdapterError("the API server does not answer")
    adapter.run(12)
    assert shelf.text == ""

    shelf.error = None
    adapter.run()

    assert loads(shelf.text)[KEY].offsets == (7, 10, 5)


def test_a_topic_that_was_created_again_has_no_last_commit() -> None:
    shelf = Shelf()
    kafka_since = expired(shelf)
    kafka_since.generations["orders"] = "id-2"
    adapter = Adapter(kafka_since, shelf)
    adapter.run(3)

    assert adapter.lag() == 0


def test_commits_that_move_are_not_written_and_those_at_rest_once() -> None:
    shelf = Shelf()
    adapter = Adapter(cluster(), shelf)
    adapter.run()
    for _ in range(3):
        adapter.rig.clock.seconds += HOUR
        adapter.rig.kafka.commits["billing"][ORDERS_0] += 1
        adapter.run()
    assert shelf.writes == 0

    for _ in range(3):
        adapter.rig.clock.seconds += HOUR
        adapter.run()

    assert shelf.writes == 1
    assert loads(shelf.text)[KEY].offsets == (10, 10, 5)


def test_another_replicas_newer_entry_stays() -> None:
    shelf = Shelf()
    kafka_since = expired(shelf)
    newer = {
        KEY: LastCommit("id-1", 2_000_000_000, (9, 20, 5)),
        ("main", "audit", "orders"): LastCommit("id-1", 5, (1,)),
    }
    shelf.text = dumps(newer)
    adapter = Adapter(kafka_since, shelf)
    adapter.run(2)

    assert loads(shelf.text) == newer


def test_the_oldest_entries_are_dropped_where_there_is_no_room() -> None:
    many = {("main", f"group-{n}", "orders"): LastCommit("id", n, (n,) * 500) for n in range(2000)}

    kept = loads(dumps(many))

    assert len(dumps(many).encode()) <= MOST_BYTES
    assert set(kept) == {("main", f"group-{n}", "orders") for n in range(2000 - len(kept), 2000)}


def test_commits_seen_before_the_kept_ones_are_read_hide_none_of_other_partitions() -> None:
    shelf = Shelf()
    kafka_since = expired(shelf)
    kafka_since.commits["billing"] = {ORDERS_0: 8}
    shelf.error = AdapterError("the API server does not answer")
    adapter = Adapter(kafka_since, shelf)
    adapter.run(3)

    shelf.error = None
    adapter.run(2)
    assert adapter.lag() == 12

    adapter.rig.kafka.commits.clear()
    adapter.run(12)
    assert loads(shelf.text)[KEY].offsets == (8, 10, 5)


def test_kept_commits_stay_where_another_replica_has_none_for_a_partition() -> None:
    shelf = Shelf()
    adapter = Adapter(cluster(), shelf)
    adapter.run()
    shelf.text = dumps({KEY: LastCommit("id-1", 2_000_000_000, (9, -1))})
    adapter.rig.kafka.commits.clear()
    adapter.run(12)

    assert loads(shelf.text)[KEY].offsets == (9, 10, 5)


def test_commits_of_a_former_topic_fill_nothing() -> None:
    new, former = LastCommit("id-2", 9, (1, -1)), LastCommit("id-1", 8, (7, 10))

    assert new.merged(former) == former.merged(new) == new


def test_a_write_that_failed_is_repeated() -> None:
    shelf = Shelf()
    adapter = Adapter(cluster(), shelf)
    adapter.run(2)
    adapter.rig.kafka.commits.clear()
    shelf.write_error = AdapterError("the API server does not answer")
    adapter.run(12)
    assert shelf.text == ""

    shelf.write_error = None
    adapter.run()

    assert loads(shelf.text)[KEY].offsets == (7, 10, 5)


def test_each_reason_why_nothing_is_kept_is_logged_once(caplog: pytest.LogCaptureFixture) -> None:
    shelf = Shelf()
    adapter = Adapter(cluster(), shelf)
    adapter.run(2)
    adapter.rig.kafka.commits.clear()
    for reason in ("403", "404"):
        shelf.error = NotKept(reason)
        adapter.run(12)

    assert [record.getMessage()[-3:] for record in caplog.records if "not kept" in record.message] == ["403", "404"]


def test_an_expired_commit_is_written_once_though_other_partitions_are_busy() -> None:
    shelf = Shelf()
    adapter = Adapter(cluster(), shelf)
    adapter.rig.kafka.ends[ORDERS_0] = 100
    adapter.run()
    del adapter.rig.kafka.commits["billing"][ORDERS_1]
    for _ in range(20):
        adapter.rig.kafka.commits["billing"][ORDERS_0] += 1
        adapter.run()

    assert shelf.writes == 1
    assert loads(shelf.text)[KEY].offsets[1:] == (10, 5)


def test_a_replica_that_cannot_read_overwrites_no_newer_entry() -> None:
    shelf = Shelf()
    adapter = Adapter(cluster(), shelf)
    adapter.run(2)
    half_an_hour_later = int(adapter.rig.clock.time() + HOUR / 2)
    adapter.rig.kafka.silent = {1, 2, 3}
    newer = {KEY: LastCommit("id-1", half_an_hour_later, (9, 20, 5))}
    shelf.text = dumps(newer)
    for _ in range(3):
        adapter.rig.clock.seconds += HOUR
        adapter.run()

    assert loads(shelf.text) == newer


def test_a_partition_that_cannot_be_read_leaves_the_commit_that_another_replica_saw() -> None:
    shelf = Shelf()
    adapter = Adapter(cluster(), shelf)
    adapter.run(2)
    adapter.rig.kafka.end_errors[ORDERS_0] = 6
    shelf.text = dumps({KEY: LastCommit("id-1", int(adapter.rig.clock.time()), (9, 10, 5))})
    adapter.rig.clock.seconds += HOUR
    del adapter.rig.kafka.commits["billing"][ORDERS_1]
    adapter.rig.kafka.commits["billing"][ORDERS_2] = 4
    adapter.run(2)

    assert loads(shelf.text)[KEY].offsets == (9, 10, 4)


def test_what_was_never_read_again_renews_no_entry() -> None:
    shelf = Shelf()
    kafka_since = expired(shelf)
    adapter = Adapter(kafka_since, shelf)
    kafka_since.end_errors = dict.fromkeys((ORDERS_0, ORDERS_1, ORDERS_2), 6)
    adapter.run(3)
    before = shelf.text
    adapter.rig.clock.seconds += 2 * RENEW_SECONDS
    adapter.run(3)

    assert shelf.text == before


def test_commits_that_the_log_no_longer_reaches_are_forgotten_after_a_restart_as_well() -> None:
    shelf = Shelf()
    kafka_since = expired(shelf)
    adapter = Adapter(kafka_since, shelf)
    adapter.run(2)
    kafka_since.ends = dict.fromkeys(kafka_since.ends, 2)
    adapter.run(12)
    kafka_since.ends = dict.fromkeys(kafka_since.ends, 30)
    adapter.run()
    assert adapter.lag() == 0

    restarted = Adapter(kafka_since, shelf)
    restarted.run(3)

    assert restarted.lag() == 0


def test_a_commit_that_the_log_no_longer_reaches_is_forgotten_though_others_are_not() -> None:
    shelf = Shelf()
    kafka_since = expired(shelf)
    adapter = Adapter(kafka_since, shelf)
    adapter.run(2)
    kafka_since.ends[ORDERS_0] = 2
    adapter.run(12)

    assert loads(shelf.text)[KEY].offsets == (-1, 10, 5)


@pytest.mark.parametrize("text", ["", "[]", "{", '[["main","g","t","id",1,["x"]]]', '[["main","g","t","id",1,[-2]]]'])
def test_what_cannot_be_read_is_nothing(text: str) -> None:
    assert loads(text) == {}


def test_a_value_without_commits_is_served_at_once_where_nothing_is_kept() -> None:
    rig = Rig(cluster(), given())
    rig.kafka.commits.clear()
    rig.run()

    assert rig.read("lag", BILLING).values[0].value == 35
