"""What is remembered between two collectors and between two processes: the same answers before and after, from both."""

from collections.abc import Callable, Mapping

import pytest

from adapter.memory.text import dumps, loads
from adapter.memory.value import LastCommit
from adapter.metrics.problems import Reason
from tests.support import samples
from tests.support.kafka.remembering import (
    BILLING_ORDERS,
    CYCLES_UNTIL_GONE,
    EXACT,
    KEY,
    LATEST,
    Adapter,
    Shelf,
    expired,
    gone,
    group,
    kafka,
    kept,
    restarted,
)
from tests.support.kafka.small_cluster import ORDERS_0, ORDERS_1, ORDERS_2


def remembered_reads(shelf: Shelf) -> set[str]:
    found, _ = loads(shelf.text, samples.EPOCH)
    reads = found["main", "audit"].reads
    return set(reads.topics) if reads else set()


def reloaded(former: Adapter) -> Adapter:
    """The collector of changed settings, which is handed what the former one knows."""
    made = Adapter(former.kafka, former.settings)
    made.clock.seconds = former.clock.seconds
    made.cycle.recall(former.cycle.remembered(everything=True))
    made.cycle.asked = former.cycle.asked
    made.run()
    return made


SUCCESSORS: Mapping[str, Callable[[Adapter, Shelf], Adapter]] = {
    "reload": lambda former, _: reloaded(former),
    "restart": restarted,
}


@pytest.fixture(params=list(SUCCESSORS))
def succeeded(request: pytest.FixtureRequest) -> Callable[[Adapter, Shelf], Adapter]:
    return SUCCESSORS[request.param]


# -- between collectors and processes ---------------------------------------------------------------


def test_an_expired_commit_counts_on(succeeded: Callable[[Adapter, Shelf], Adapter]) -> None:
    shelf = Shelf()
    before = gone(None, shelf)
    before.kafka.ends[ORDERS_2] += 4
    before.run()

    assert before.value(**EXACT) == succeeded(before, shelf).value(**EXACT) == 17


def test_commits_that_were_reset_before_another_collector_began_count_at_once(
    succeeded: Callable[[Adapter, Shelf], Adapter],
) -> None:
    shelf = Shelf()
    before = Adapter(kafka(), LATEST, shelf)
    before.remember()
    before.kafka.commits["billing"][ORDERS_0] = 2

    assert succeeded(before, shelf).lag() == 8 + 10


def test_commits_that_were_reset_before_a_process_was_killed_count_at_once() -> None:
    shelf = Shelf()
    before = Adapter(kafka(), LATEST, shelf)
    before.remember()
    before.kafka.commits["billing"][ORDERS_0] = 2
    before.remember(3)
    after = Adapter(before.kafka, LATEST, shelf)
    after.clock.seconds = before.clock.seconds
    after.remember()

    assert after.lag() == before.lag() == 8 + 10


def test_a_topic_that_was_created_again_while_no_adapter_ran_has_no_earlier_commit_to_step_back_from() -> None:
    shelf = Shelf()
    before = Adapter(kafka(), LATEST, shelf)
    before.remember()
    before.kafka.generations["orders"] = "id-9"
    before.kafka.commits["billing"] = {ORDERS_0: 2, ORDERS_1: 2, ORDERS_2: 2}
    after = restarted(before, shelf)

    assert after.lag() == 8 + 18 + 3


def test_a_passed_transaction_marker_stays_passed(succeeded: Callable[[Adapter, Shelf], Adapter]) -> None:
    shelf = Shelf()
    settings = samples.settings(rules=[{"group": "billing", "isolation": "read_committed"}])
    cluster = kafka()
    cluster.commits["billing"] = {ORDERS_0: 9, ORDERS_1: 20, ORDERS_2: 5}
    cluster.members["billing"] = {"orders"}
    before = Adapter(cluster, settings, shelf)
    before.run(40)
    cluster.members.clear()
    before.remember(CYCLES_UNTIL_GONE)
    after = succeeded(before, shelf)
    assert before.lag() == after.lag() == 0

    cluster.ends[ORDERS_0] += 1
    after.run()
    assert after.lag() == 2


def test_a_passed_transaction_marker_stays_passed_when_the_commit_expires() -> None:
    settings = samples.settings(rules=[{"group": "billing", "topics": ["orders"], "isolation": "read_committed"}])
    cluster = kafka()
    cluster.commits["billing"] = {ORDERS_0: 9, ORDERS_1: 20, ORDERS_2: 5}
    cluster.members["billing"] = {"orders"}
    adapter = Adapter(cluster, settings)
    adapter.run(40)
    del cluster.members["billing"], cluster.commits["billing"]
    adapter.run(CYCLES_UNTIL_GONE)

    assert adapter.lag() == 0


def test_topics_that_do_not_exist_are_not_remembered_although_members_read_them() -> None:
    """Otherwise any member of a group could fill the ConfigMap."""
    shelf = Shelf()
    cluster = kafka()
    cluster.members["audit"] = {"trail", "absent", "__unwatched"}
    before = Adapter(cluster, samples.settings(rules=[{"group": "audit"}]), shelf)
    before.remember(8)
    assert remembered_reads(shelf) == {"trail"}

    cluster.moving = {"audit"}
    after = restarted(before, shelf)
    after.remember(3)
    assert remembered_reads(shelf) == {"trail"}


def audit_that_reads_trail(shelf: Shelf) -> Adapter:
    """Returns an adapter that is about to read the group, which also has a commit for the topic other."""
    cluster = kafka()
    cluster.commits["audit"]["other", 0] = 1
    cluster.members["audit"] = {"trail"}
    return Adapter(cluster, samples.settings(rules=[{"group": "audit"}]), shelf)


def test_a_stale_topic_stays_stale_while_its_group_rebalances(succeeded: Callable[[Adapter, Shelf], Adapter]) -> None:
    shelf = Shelf()
    before = audit_that_reads_trail(shelf)
    cluster = before.kafka
    before.run(8)
    cluster.moving = {"audit"}
    before.remember(3)
    after = succeeded(before, shelf)
    assert before.lag("audit") == after.lag("audit") == 3

    for adapter in (before, after):
        adapter.run(12)
        assert adapter.reasons(group="audit") == [Reason.IN_DOUBT]


def test_a_topic_that_a_rebalancing_group_began_to_read_counts_on(
    succeeded: Callable[[Adapter, Shelf], Adapter],
) -> None:
    shelf = Shelf()
    before = audit_that_reads_trail(shelf)
    cluster = before.kafka
    before.remember(8)
    assert before.lag("audit") == 3
    cluster.moving, cluster.commits["audit"]["other", 0] = {"audit"}, 2
    before.remember(2)

    assert before.lag("audit") == succeeded(before, shelf).lag("audit") == 3 + 6


def test_a_description_of_a_group_that_is_empty_now_is_forgotten() -> None:
    shelf = Shelf()
    before = audit_that_reads_trail(shelf)
    cluster = before.kafka
    before.remember(8)
    cluster.members.clear()
    before.remember(8)

    assert before.lag("audit") == restarted(before, shelf).lag("audit") == 3 + 7


@pytest.mark.parametrize(("rule", "lag"), [({}, 13 + 6), ({"offsetReset": "latest"}, 13)])
def test_a_partition_that_is_added_while_the_group_sleeps_counts_from_its_start(
    succeeded: Callable[[Adapter, Shelf], Adapter], rule: dict[str, object], lag: int
) -> None:
    """Unless the rule says `latest`. It is added while the adapter runs, or while none does."""
    shelf = Shelf()
    settings = samples.settings(rules=[{"groups": "bill.*", **rule}])
    before = Adapter(kafka(), settings, shelf, BILLING_ORDERS)
    before.remember(2)
    before.memory.run_once(is_last=True)
    before.kafka.topics["orders"].append(1)
    before.kafka.ends["orders", 3] = 6
    started = Adapter(before.kafka, settings, shelf, BILLING_ORDERS)
    started.remember()
    before.run(4)

    after = succeeded(before, shelf)
    assert [each.value(**EXACT) for each in (before, started, after)] == [lag] * 3
    before.kafka.commits["billing"]["orders", 3] = 6
    after.run()
    assert after.value(**EXACT) == 13


@pytest.mark.parametrize("trouble", ["unreadable", "another coordinator is late"])
def test_an_added_partition_counts_from_its_start_though_its_first_cycle_did_not_read_it(trouble: str) -> None:
    adapter = Adapter(kafka(), None, Shelf(), BILLING_ORDERS)
    adapter.remember(4)
    adapter.kafka.topics["orders"].append(1)
    adapter.kafka.ends["orders", 3] = 6
    if trouble == "unreadable":
        adapter.kafka.end_errors = {("orders", 3): 5}
    else:
        adapter.kafka.commits["fresh"], adapter.kafka.coordinators["fresh"] = {("other", 0): 4}, 3
        adapter.kafka.delays = {("OffsetFetch", 3): (0.3, 0.0)}
    adapter.remember(5)
    adapter.kafka.end_errors, adapter.kafka.delays = {}, {}
    adapter.remember(2)

    assert adapter.value(**EXACT) == 13 + 6


def test_a_partition_that_is_added_under_members_counts_as_the_rules_say() -> None:
    cluster = kafka()
    cluster.members["billing"] = {"orders"}
    adapter = Adapter(cluster, None, Shelf(), BILLING_ORDERS)
    adapter.remember(2)
    cluster.topics["orders"].append(1)
    cluster.ends["orders", 3] = 6
    adapter.run(4)
    cluster.members.clear()
    adapter.remember(8)

    assert adapter.value(**EXACT) == 13


def test_a_topic_that_was_created_again_recalls_nothing() -> None:
    shelf = Shelf()
    since = expired(shelf)
    since.generations["orders"] = "id-9"
    adapter = Adapter(since, LATEST, shelf)
    adapter.remember(3)

    assert adapter.lag() == 0


def test_a_deleted_topic_is_forgotten_by_the_text_and_by_both_replicas() -> None:
    shelf, cluster = Shelf(), kafka()
    replicas = [Adapter(cluster, samples.settings(rules=[{"group": "billing"}]), shelf) for _ in range(2)]
    cluster.commits["billing"]["trail", 0] = 1
    for adapter in replicas:
        adapter.remember()
    del cluster.commits["billing"]["trail", 0], cluster.topics["trail"]
    for _ in range(10):
        for adapter in replicas:
            adapter.remember()

    assert loads(shelf.text, samples.EPOCH + 1000)[0][KEY].topics.keys() == {"orders"}


def test_a_topic_that_may_not_be_described_for_a_while_is_remembered() -> None:
    shelf = Shelf()
    since = expired(shelf)
    adapter = Adapter(since, samples.settings(rules=[{"group": "billing"}]), shelf)
    adapter.remember()
    since.hidden = {"orders"}
    adapter.remember(20)

    assert kept(shelf) == [7, 10, 5]


def test_commits_that_the_log_has_lost_are_recalled_by_nobody() -> None:
    shelf = Shelf()
    since = expired(shelf)
    adapter = Adapter(since, LATEST, shelf)
    adapter.remember(2)
    since.ends = dict.fromkeys(since.ends, 2)
    adapter.remember(CYCLES_UNTIL_GONE)
    assert kept(shelf) == [-1, -1, -1]

    since.ends = dict.fromkeys(since.ends, 30)
    adapter.run()
    assert adapter.lag() == restarted(adapter, shelf).lag() == 0


# -- between replicas -------------------------------------------------------------------------------


def test_two_replicas_agree_on_the_later_commit_of_each_partition() -> None:
    """One could not read partition 0, the other not partition 1, when the group committed last and slept."""
    shelf, cluster = Shelf(), kafka()
    replicas = [Adapter(cluster, LATEST, shelf) for _ in range(2)]
    for adapter, unread in zip(replicas, (ORDERS_0, ORDERS_1), strict=True):
        adapter.remember()
        cluster.commits["billing"] = {ORDERS_0: 9, ORDERS_1: 3, ORDERS_2: 5}
        cluster.end_errors = {unread: 6}
        adapter.remember()
        cluster.commits["billing"] = {ORDERS_0: 7, ORDERS_1: 10, ORDERS_2: 5}
        cluster.end_errors = {}
    cluster.commits["billing"] = {}
    for _ in range(CYCLES_UNTIL_GONE):
        for adapter in replicas:
            adapter.remember()

    assert [adapter.lag() for adapter in replicas] == [1 + 17] * 2
    assert kept(shelf) == [9, 3, 5]


def test_a_text_that_was_emptied_is_written_again() -> None:
    shelf = Shelf()
    adapter = gone(None, shelf)
    shelf.text = ""
    adapter.memory.run_once()

    assert kept(shelf) == [7, 10, 5]


def test_an_entry_from_a_clock_that_is_days_ahead_wins_over_nothing_that_was_seen() -> None:
    ahead = dumps({KEY: group(*(LastCommit(int(samples.EPOCH) + 3 * 86_400, 0) for _ in range(3)))})[0]
    adapter = Adapter(kafka(), None, Shelf(ahead), BILLING_ORDERS)
    adapter.remember(10)
    adapter.kafka.commits.pop("billing")
    adapter.remember(CYCLES_UNTIL_GONE)

    assert adapter.value(**EXACT) == 13


@pytest.mark.parametrize("shelf", [None, Shelf()], ids=["process", "text"])
def test_what_was_seen_before_the_clock_was_set_back_wins_over_nothing_that_was_seen_since(shelf: Shelf | None) -> None:
    adapter = Adapter(kafka(), LATEST, shelf)
    adapter.clock.ahead = 7200
    adapter.remember(2)
    adapter.clock.ahead = 0
    adapter.kafka.commits["billing"] = {ORDERS_0: 9, ORDERS_1: 12, ORDERS_2: 5}
    adapter.remember(2)
    adapter.kafka.commits.pop("billing")
    adapter.remember(CYCLES_UNTIL_GONE)

    assert adapter.lag() == 1 + 8
    assert shelf is None or kept(shelf) == [9, 12, 5]


def test_a_clock_that_is_set_back_makes_nobody_forget_a_sleeping_group() -> None:
    adapter = gone()
    adapter.clock.ahead = -7200
    adapter.remember(2)
    adapter.ask()
    adapter.remember(2)
    adapter.ask(BILLING_ORDERS)
    adapter.remember(2)

    assert adapter.value(**EXACT) == 13
