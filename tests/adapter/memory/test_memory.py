"""What is remembered between two collectors and between two processes: the same answers before and after, from both."""

from collections.abc import Callable, Mapping

import pytest

from adapter.conditions import Conditions
from adapter.errors import AdapterError, StateNotPersistable
from adapter.memory.keeper import LIVE_SECONDS, ROUND_SECONDS, UNNAMED_SECONDS, MemoryKeeper
from adapter.memory.text import dumps, loads
from adapter.memory.value import GroupMemory, LastCommit, Reads, TopicMemory, merged
from adapter.metrics.problems import ValueUnavailable
from adapter.settings.models import Settings
from tests.support import samples
from tests.support.kafka.fake_cluster import Kafka
from tests.support.kafka.remembering import (
    BILLING_ORDERS,
    CYCLES_UNTIL_GONE,
    EXACT,
    Adapter,
    Shelf,
    gone,
    hpa,
    kafka,
)
from tests.support.kafka.small_cluster import ORDERS_0, ORDERS_1, ORDERS_2, given

NOW = int(samples.EPOCH)
LATEST = given(offsetReset="latest")
"""Names billing and orders; what was never committed counts nothing."""
KEY = ("main", "billing")


def group(
    *commits: LastCommit, topic_id: str = "id-1", topic: str = "orders", reads: Reads | None = None
) -> GroupMemory:
    return GroupMemory({topic: TopicMemory(topic_id, commits)}, reads)


def text_of(**groups: GroupMemory) -> str:
    return dumps({("main", name): one for name, one in groups.items()})[0]


def kept(shelf: Shelf, topic: str = "orders") -> list[int]:
    found, bad = loads(shelf.text, samples.EPOCH + UNNAMED_SECONDS)
    assert not bad
    return [reading.offset for reading in found[KEY].topics[topic].commits]


def expired(shelf: Shelf, settings: Settings = LATEST) -> Kafka:
    """A cluster whose commits have expired when 13 messages were waiting; an adapter saw it."""
    adapter = Adapter(kafka(), settings, shelf)
    adapter.remember()
    adapter.kafka.commits.clear()
    adapter.remember(CYCLES_UNTIL_GONE)
    assert adapter.lag() == 13
    return adapter.kafka


def reloaded(former: Adapter) -> Adapter:
    """The collector of changed settings, which is handed what the former one knows."""
    made = Adapter(former.kafka, former.settings)
    made.clock.seconds = former.clock.seconds
    made.cycle.recall(former.cycle.remembered(everything=True))
    made.cycle.asked = former.cycle.asked
    made.run()
    return made


def restarted(former: Adapter, shelf: Shelf) -> Adapter:
    """Another process, once the former one has ended as after SIGTERM."""
    former.memory.run_once(is_last=True)
    made = Adapter(former.kafka, former.settings, shelf)
    made.clock.seconds = former.clock.seconds
    made.cycle.asked = former.cycle.asked
    made.remember()
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


def test_a_stale_topic_stays_stale_while_its_group_rebalances(succeeded: Callable[[Adapter, Shelf], Adapter]) -> None:
    shelf = Shelf()
    cluster = kafka()
    cluster.commits["audit"]["other", 0] = 1
    cluster.members["audit"] = {"trail"}
    before = Adapter(cluster, samples.settings(rules=[{"group": "audit"}]), shelf)
    before.run(8)
    cluster.moving = {"audit"}
    before.remember(3)
    after = succeeded(before, shelf)
    assert before.lag("audit") == after.lag("audit") == 3

    for adapter in (before, after):
        adapter.run(12)
        with pytest.raises(ValueUnavailable, match="whether it reads the topic now is not known"):
            adapter.lag("audit")


def test_a_description_of_a_group_that_is_empty_now_is_forgotten() -> None:
    shelf = Shelf()
    cluster = kafka()
    cluster.commits["audit"]["other", 0] = 1
    cluster.members["audit"] = {"trail"}
    before = Adapter(cluster, samples.settings(rules=[{"group": "audit"}]), shelf)
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


def test_of_a_group_that_an_hpa_names_without_topics_an_expired_commit_counts_on_after_a_restart() -> None:
    shelf = Shelf()
    before = Adapter(kafka(), None, shelf, hpa("billing"))
    before.remember()
    del before.kafka.commits["billing"][ORDERS_1]
    before.remember()

    assert restarted(before, shelf).value(group="billing") == before.value(group="billing") == 13


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


def test_a_replica_learns_what_is_written_after_its_start() -> None:
    shelf = Shelf()
    since = expired(shelf)
    text, shelf.text = shelf.text, ""
    adapter = Adapter(since, LATEST, shelf)
    adapter.remember()
    assert adapter.lag() == 0

    shelf.text = text
    adapter.remember()
    assert adapter.lag() == 13


def test_a_text_that_was_emptied_is_written_again() -> None:
    shelf = Shelf()
    adapter = gone(None, shelf)
    shelf.text = ""
    adapter.memory.run_once()

    assert kept(shelf) == [7, 10, 5]


def test_an_entry_from_a_clock_that_is_days_ahead_wins_over_nothing_that_was_seen() -> None:
    ahead = text_of(billing=group(*(LastCommit(NOW + 3 * 86_400, 0) for _ in range(3))))
    adapter = Adapter(kafka(), None, Shelf(ahead), BILLING_ORDERS)
    adapter.remember(10)
    adapter.kafka.commits.pop("billing")
    adapter.remember(CYCLES_UNTIL_GONE)

    assert adapter.value(**EXACT) == 13


# -- the text ---------------------------------------------------------------------------------------


def test_until_the_text_has_been_read_a_missing_commit_is_unknown_however_many_groups_there_are() -> None:
    shelf = Shelf()
    since = expired(shelf)
    since.topics["many"] = [1]
    since.ends["many", 0] = 5
    since.commits |= {f"group-{number}": {("many", 0): 5} for number in range(20_001)}
    shelf.error = AdapterError("the API server does not answer")
    adapter = Adapter(since, LATEST, shelf)
    adapter.remember()
    with pytest.raises(ValueUnavailable, match=r"orders/0: it has no commit, and whether one has expired is not known"):
        adapter.lag()
    assert adapter.lag("group-1") == 0

    shelf.error = None
    adapter.remember(2)
    assert adapter.lag() == 13


@pytest.mark.parametrize("error", [AdapterError("no answer"), StateNotPersistable("403")])
def test_until_a_first_read_that_failed_has_been_repeated_a_missing_commit_is_unknown(error: AdapterError) -> None:
    shelf = Shelf()
    since = expired(shelf)
    shelf.error = error
    adapter = Adapter(since, LATEST, shelf)
    adapter.remember()
    with pytest.raises(ValueUnavailable, match="whether one has expired is not known"):
        adapter.lag()

    shelf.error = None
    adapter.remember()
    assert adapter.lag() == 13


def test_what_was_read_counts_though_nothing_can_be_written() -> None:
    shelf = Shelf()
    since = expired(shelf)
    since.commits["audit"] = {("trail", 0): 1}
    rule = {"group": "billing", "topics": ["orders"], "offsetReset": "latest"}
    for error in (AdapterError("500: database space exceeded"), StateNotPersistable("403")):
        shelf.write_error = error
        adapter = Adapter(since, samples.settings(rules=[rule, {"group": "audit"}]), shelf)
        adapter.remember(2)

        assert adapter.lag() == 13


def test_without_permission_to_keep_it_the_memory_lasts_as_long_as_the_process() -> None:
    shelf = Shelf(error=StateNotPersistable("403"))
    adapter = gone(None, shelf)

    assert adapter.value(**EXACT) == 13


def test_a_write_that_failed_is_repeated() -> None:
    shelf = Shelf()
    adapter = Adapter(kafka(), LATEST, shelf)
    adapter.remember()
    adapter.kafka.commits.clear()
    shelf.write_error = AdapterError("the API server does not answer")
    shelf.text = ""
    adapter.remember(CYCLES_UNTIL_GONE)
    assert shelf.text == ""

    shelf.write_error = None
    adapter.remember()
    assert kept(shelf) == [7, 10, 5]


def test_each_reason_why_nothing_is_kept_is_logged_once(caplog: pytest.LogCaptureFixture) -> None:
    shelf = Shelf()
    adapter = Adapter(kafka(), LATEST, shelf)
    for reason in ("403", "404"):
        shelf.error = StateNotPersistable(reason)
        adapter.remember(3)

    assert [record.getMessage()[-3:] for record in caplog.records] == ["403", "404"]


def test_commits_that_only_move_are_written_rarely_and_those_that_expire_at_once() -> None:
    shelf = Shelf()
    adapter = Adapter(kafka(), LATEST, shelf)
    adapter.remember()
    assert shelf.writes == 1

    for _ in range(int(LIVE_SECONDS / ROUND_SECONDS) - 1):
        adapter.kafka.commits["billing"][ORDERS_1] += 1
        adapter.run(5)
        adapter.remember()
    assert shelf.writes == 1
    adapter.remember(8)
    assert shelf.writes == 2

    adapter.kafka.commits["billing"][ORDERS_1] += 1
    adapter.remember()
    del adapter.kafka.commits["billing"][ORDERS_1]
    adapter.run(7)
    adapter.remember()
    assert shelf.writes == 3
    assert kept(shelf) == [7, 20, 5]


def test_the_last_minute_is_written_when_the_process_stops() -> None:
    shelf = Shelf()
    adapter = Adapter(kafka(), LATEST, shelf)
    adapter.remember()
    adapter.kafka.commits["billing"][ORDERS_1] = 12
    adapter.run()
    adapter.memory.stop(timeout_seconds=60.0)

    assert kept(shelf) == [7, 12, 5]


def test_groups_that_nobody_names_are_not_kept() -> None:
    shelf = Shelf()
    Adapter(kafka(), LATEST, shelf).remember(3)

    assert loads(shelf.text, samples.EPOCH + 1000)[0].keys() == {KEY}


def test_a_group_that_is_named_no_longer_is_forgotten_after_a_day() -> None:
    shelf = Shelf()
    adapter = gone(samples.settings(rules=[{"group": "audit"}]), shelf)
    adapter.ask()
    adapter.remember()
    adapter.clock.seconds += UNNAMED_SECONDS - 300
    adapter.remember()
    assert kept(shelf) == [7, 10, 5]

    adapter.clock.seconds += 600
    adapter.kafka.commits["audit"]["orders", 0] = 1
    adapter.remember()
    assert loads(shelf.text, adapter.clock.time())[0].keys() == {("main", "audit")}


@pytest.mark.parametrize(
    "bad",
    [
        "{",
        '["main","z",{"orders":["id-1",[[1,"x",0]]]},null]',
        '["main","z",{"orders":["id-1",[[1,-2,0]]]},null]',
        '["main","caf\\udce9",{},null]',
        '[["main","billing","orders","id-1",1,[7]]]',
    ],
)
def test_a_line_that_cannot_be_read_costs_itself_and_is_logged(bad: str, caplog: pytest.LogCaptureFixture) -> None:
    shelf = Shelf()
    since = expired(shelf)
    shelf.text = shelf.text.replace("[\n", f"[\n{bad},\n", 1)
    adapter = Adapter(since, LATEST, shelf)
    adapter.remember(2)

    assert adapter.lag() == 13
    assert [record.getMessage() for record in caplog.records] == [
        f"memory: LinesDropped: lines that cannot be read are dropped: {bad}"
    ]


def test_names_of_control_characters_cost_no_other_group_its_memory(caplog: pytest.LogCaptureFixture) -> None:
    shelf, now = Shelf(), samples.EPOCH + 1000
    long = {("main", chr(1) * (30_000 + number)): group(LastCommit(NOW, 1)) for number in range(5)}
    own = {KEY: group(LastCommit(NOW, 7))}
    keeper = MemoryKeeper(
        lambda: {"main": {name: one for (_, name), one in {**long, **own}.items()}},
        samples.SteppedClock(),
        Conditions(),
        shelf.exchange,
    )
    for _ in range(3):
        keeper.run_once()

    assert loads(shelf.text, now) == (own, [])
    assert (shelf.writes, len(caplog.records)) == (1, 1)
    assert "memory: NoRoom: there is no room for some groups: '\\x01" in caplog.text


def test_where_there_is_no_room_what_kafka_may_still_report_is_left_out() -> None:
    many = {("main", f"group-{n:04}"): group(*[LastCommit(NOW + n, n)] * 500) for n in range(2000)}
    text, left_out = dumps(many)
    found, _ = loads(text, NOW + 9000.0)

    assert len(text.encode()) < 1024 * 1024
    assert [*found, *left_out] == list(many)


# -- the rule ---------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("one", "other", "expected"),
    [
        (group(LastCommit(5, 9)), group(LastCommit(8, 3)), group(LastCommit(8, 3))),
        (
            group(LastCommit(5, 9), LastCommit(9, 1)),
            group(LastCommit(8, 3)),
            group(LastCommit(8, 3), LastCommit(9, 1)),
        ),
        (
            group(LastCommit(5, 9)),
            group(LastCommit(8, 1), topic_id="id-2"),
            group(LastCommit(8, 1), topic_id="id-2"),
        ),
        (group(LastCommit(5, 9)), group(LastCommit(8, -1)), group(LastCommit(8, -1))),
        (
            group(LastCommit(5, 9, has_marker=True)),
            group(LastCommit(8, 9)),
            group(LastCommit(8, 9, has_marker=True)),
        ),
        (group(LastCommit(5, 9, has_marker=True)), group(LastCommit(8, 10)), group(LastCommit(8, 10))),
        (
            group(reads=Reads(frozenset({"old"}), 5)),
            group(reads=Reads(frozenset(), 8)),
            group(reads=Reads(frozenset(), 8)),
        ),
    ],
    ids=["reset", "by-partition", "created-again", "lost", "marker", "moved-on", "described-later"],
)
def test_of_each_fact_the_later_observation_counts(one: GroupMemory, other: GroupMemory, expected: GroupMemory) -> None:
    assert merged({1: one}, {1: other}) == merged({1: other}, {1: one}) == {1: expected}
