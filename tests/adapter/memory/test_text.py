"""The text in which the memory is kept: what it has room for, when it is written, and how two of them are merged."""

from dataclasses import replace

import pytest

from adapter.conditions import Conditions
from adapter.errors import AdapterError, StateNotPersistable
from adapter.lag.saturation import BusyWindow
from adapter.memory.keeper import LIVE_SECONDS, ROUND_SECONDS, UNNAMED_SECONDS, MemoryKeeper
from adapter.memory.text import MOST_BYTES, dumps, loads
from adapter.memory.value import GroupMemory, LastCommit, Reads, merged
from adapter.metrics.problems import Reason
from tests.support import samples
from tests.support.kafka.remembering import (
    CYCLES_UNTIL_GONE,
    EXACT,
    KEY,
    LATEST,
    Adapter,
    Shelf,
    expired,
    gone,
    group,
    hpa,
    kafka,
    kept,
    restarted,
)
from tests.support.kafka.small_cluster import ORDERS_1

NOW = int(samples.EPOCH)
AUDIT = hpa("audit", "trail", "orders")


@pytest.mark.parametrize("error", [AdapterError("no answer"), StateNotPersistable("403")])
def test_until_a_first_read_that_failed_has_been_repeated_a_missing_commit_is_unknown(error: AdapterError) -> None:
    shelf = Shelf()
    since = expired(shelf)
    shelf.error = error
    adapter = Adapter(since, LATEST, shelf)
    adapter.remember()
    assert adapter.reasons(group="billing") == [Reason.NOT_READ_YET]

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
    adapter.memory.start()
    adapter.memory.stop(timeout_seconds=60.0)

    assert kept(shelf) == [7, 12, 5]


def test_only_groups_that_a_rule_a_named_metric_or_an_hpa_names_are_kept() -> None:
    """A rule by pattern names none."""
    cluster, shelf = kafka(), Shelf()
    cluster.commits |= {group: {ORDERS_1: 1} for group in ("mail", "etl")}
    rules = [{"group": "billing"}, {"groups": ".*", "topics": ["trail", "orders"]}]
    metric = {"name": "backlog", "value": "lag", "group": "mail"}
    Adapter(cluster, samples.settings(rules=rules, metrics=[metric]), shelf, AUDIT).remember()

    assert {group for _, group in loads(shelf.text, NOW)[0]} == {"billing", "mail", "audit"}


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


def test_without_a_text_as_well_a_group_is_forgotten_a_day_after_it_was_named() -> None:
    adapter = gone(None, None)
    adapter.ask()
    adapter.remember()
    adapter.clock.seconds += UNNAMED_SECONDS - 300
    adapter.remember()
    assert KEY[1] in adapter.memory.of("main")

    adapter.clock.seconds += 600
    adapter.remember()
    assert KEY[1] not in adapter.memory.of("main")


def test_what_one_replica_has_forgotten_the_other_does_not_write_again() -> None:
    """The other one has started later."""
    shelf = Shelf()
    one = gone(None, shelf)
    other = restarted(one, shelf)
    one.clock.seconds += 600
    for adapter in (one, other):
        adapter.ask()
        adapter.remember()
    for adapter in (one, other):
        adapter.clock.seconds += UNNAMED_SECONDS
    other.clock.seconds -= 900
    one.kafka.commits["audit"]["orders", 0] = 1
    for adapter in (one, other):
        adapter.ask(AUDIT)
        adapter.remember(3)

    assert loads(shelf.text, one.clock.time())[0].keys() == {("main", "audit")}


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


def test_a_group_without_room_is_written_once_kafka_no_longer_reports_it_and_until_then_nothing_is() -> None:
    """There is room for eight of nine groups, and a different one is the latest in each minute."""
    shelf, clock, names = Shelf(), samples.SteppedClock(), [f"{n}{chr(1) * 16_000}" for n in range(9)]
    expired_at: dict[str, float] = {}

    def seen() -> dict[str, dict[str, GroupMemory]]:
        times = {name: expired_at.get(name, clock.time() - (clock.seconds + n) % 7) for n, name in enumerate(names)}
        return {"main": {name: group(LastCommit(int(at), 1)) for name, at in times.items()}}

    def written_after(minutes: int) -> set[str]:
        for _ in range(minutes):
            clock.seconds += ROUND_SECONDS
            keeper.run_once()
        return {name for _, name in loads(shelf.text, clock.time())[0]}

    keeper = MemoryKeeper(seen, clock, Conditions(), shelf.exchange)
    (left_out,) = set(names) - written_after(5)
    assert shelf.writes == 1

    expired_at[left_out] = clock.time()
    assert left_out in written_after(3)
    assert shelf.writes == 2


def test_a_group_without_room_is_written_when_there_is_some_at_the_latest_when_the_process_stops() -> None:
    shelf, names = Shelf(), [f"{n}{chr(1) * 16_000}" for n in range(9)]
    known = {name: group(LastCommit(NOW, 1)) for name in names}
    keeper = MemoryKeeper(lambda: {"main": known}, samples.SteppedClock(), Conditions(), shelf.exchange)
    keeper.run_once()
    del known[names[0]]
    shelf.text, _ = dumps({("main", name): known[name] for name in names[1:8]})
    keeper.run_once(is_last=True)

    assert {name for _, name in loads(shelf.text, NOW)[0]} == known.keys()


def test_where_there_is_no_room_what_kafka_may_still_report_is_left_out() -> None:
    many = {("main", f"group-{n:04}"): group(*[LastCommit(NOW + n, n)] * 500) for n in range(2000)}
    text, left_out = dumps(dict(reversed(many.items())))
    found, _ = loads(text, NOW + 9000.0)

    assert len(text.encode()) < 1024 * 1024
    assert [*found, *left_out] == list(many)


@pytest.mark.parametrize(("ahead", "seen_at"), [(30, NOW), (61, 1)])
def test_nothing_was_seen_later_than_now(ahead: int, seen_at: int) -> None:
    text, _ = dumps({KEY: group(LastCommit(NOW + ahead, 7))})

    assert loads(text, NOW)[0] == {KEY: group(LastCommit(seen_at, 7))}


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


def test_spans_in_which_members_were_busy_are_kept_and_merged() -> None:
    early, late = (BusyWindow(float(NOW - ago), 60.0, 51.25, 3075.0, 6) for ago in (600, 120))
    text, _ = dumps({KEY: GroupMemory(windows=(early,))})

    found, bad = loads(text, NOW)

    assert (found[KEY].windows, bad) == ((early,), [])
    assert merged(found, {KEY: GroupMemory(windows=(late,))})[KEY].windows == (early, late)


def busy_groups() -> dict[str, GroupMemory]:
    windows = tuple(BusyWindow(NOW - 60.0 * ago, 60.0, 51.25, 3075.0, 6) for ago in range(99, 39, -1))
    return {f"{n}{chr(1) * 14_600}": replace(group(LastCommit(NOW, 1)), windows=windows) for n in range(9)}


def test_busy_spans_take_no_room_from_other_memory() -> None:
    """There is room for nine groups, and for the spans of some of them."""
    many = {("main", name): one for name, one in busy_groups().items()}
    text, left_out = dumps(many)
    found, _ = loads(text, NOW)

    assert found.keys() == many.keys()
    assert {key for key, one in found.items() if not one.windows} == set(left_out)
    assert 0 < len(left_out) < 9
    assert len(text) < MOST_BYTES + 10


def test_busy_spans_without_room_are_said_once_and_not_written_again_and_again() -> None:
    shelf, conditions, many = Shelf(), Conditions(), busy_groups()
    keeper = MemoryKeeper(lambda: {"main": many}, samples.SteppedClock(), conditions, shelf.exchange)
    reasons = []
    for _ in range(3):
        keeper.run_once()
        reasons += [each.reason for each in conditions.current]

    assert (shelf.writes, reasons) == (1, ["NoRoom"] * 3)


def test_a_line_without_busy_spans_is_read() -> None:
    plain = GroupMemory(reads=Reads(frozenset({"orders"}), NOW))

    assert loads(dumps({KEY: plain})[0], NOW)[0] == {KEY: plain}


@pytest.mark.parametrize("window", ["[1,60,-1,3000,6]", "[1,60,50,3000]", '["a",60,50,3000,6]', "[1,60,1e400,3000,6]"])
def test_a_line_with_a_busy_span_that_cannot_be_read_costs_itself(window: str) -> None:
    assert loads(f'["main","billing",{{}},null,[{window}]]', NOW)[0] == {}


def test_a_busy_span_is_news_only_when_it_is_time_to_write() -> None:
    written, now = GroupMemory(), GroupMemory(windows=(BusyWindow(NOW - 30.0, 60.0, 50.0, 3000.0, 6),))

    assert not now.has_news(written, NOW - 60.0)
    assert now.has_news(written, float("inf"))
    assert not now.has_news(now, float("inf"))
