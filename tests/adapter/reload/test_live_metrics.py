"""Changed settings: which collectors they need, and when they take effect."""

import contextlib
import time
from collections.abc import Callable, Iterator

import pytest

from adapter.collector import threads as collector_module
from adapter.errors import MetricUnknown
from adapter.lag.rules import AskedTopics
from adapter.lag.saturation import BusyWindow
from adapter.memory.text import dumps, loads
from adapter.memory.value import GroupMemory
from adapter.metrics.problems import Refused, ValueUnavailable
from adapter.metrics.query import Metrics
from adapter.reload import live_metrics as live_module
from adapter.reload.live_metrics import LiveMetrics
from adapter.settings.models import Cluster, Settings
from adapter.telemetry import Telemetry
from tests.adapter.collector.test_threads import SECOND_APART, WallClock, kafka, wait_until
from tests.adapter.test_telemetry import samples_of
from tests.support import samples
from tests.support.kafka.fake_brokers import FakeBrokers
from tests.support.samples import SteppedClock

LAG = "kafka_consumergroup_lag"
NAMED = {"name": "backlog", "value": "lag", "cluster": "main", "group": "billing"}


def settings(*clusters: str, **parts: object) -> Settings:
    return samples.settings(clusters=[samples.cluster(name) for name in clusters], collection=SECOND_APART, **parts)


@pytest.fixture
def sent() -> dict[str, Callable[[str], None]]:
    """What counts the requests to each cluster."""
    return {}


@pytest.fixture
def opened(monkeypatch: pytest.MonkeyPatch, sent: dict[str, Callable[[str], None]]) -> list[str]:
    """The name of each cluster that was connected to; those named `down` do not answer."""
    names: list[str] = []

    def make_brokers(cluster: Cluster, count_request: Callable[[str], None]) -> FakeBrokers:
        sent[cluster.name] = count_request
        world = kafka()
        world.topics |= {"trail": [1], "other": [2]}
        world.ends["trail", 0] = 8
        if "expired" in names:
            world.commits = {}
        names.append(cluster.name)
        if cluster.bootstrap_servers == ("down:9092",):
            world.silent = {1, 2, 3}
        if cluster.bootstrap_servers == ("partly:9092",):
            world.silent = {2}
        return FakeBrokers(world, SteppedClock(time.monotonic()))

    monkeypatch.setattr(collector_module, "Brokers", make_brokers)
    return names


@pytest.fixture
def telemetry() -> Telemetry:
    return Telemetry()


@pytest.fixture
def live(opened: list[str], telemetry: Telemetry) -> Iterator[LiveMetrics]:
    """Serves the clusters main and eu."""
    made = LiveMetrics(settings("main", "eu"), telemetry, WallClock())
    made.start()
    try:
        wait_until(lambda: len(values_of(made, LAG)) == 2 and sorted(opened) == ["eu", "main"])
        yield made
    finally:
        made.stop(60.0)


def values_of(live: LiveMetrics, metric: str) -> list[int]:
    with contextlib.suppress(ValueUnavailable):
        return [value.milli // 1000 for value in live.current.read(metric, ()).values]
    return []


def take_over(live: LiveMetrics, changed: Settings) -> None:
    live.prepare(changed)
    wait_until(lambda: not live.waiting_for())
    live.take_over()


def test_clusters_that_are_read_as_before_keep_their_collectors(live: LiveMetrics, opened: list[str]) -> None:
    changed = settings("main", "eu", metrics=[{**NAMED, "value": "lead_min"}])
    take_over(live, changed)
    assert sorted(opened) == ["eu", "eu", "main", "main"]
    assert live.settings == changed

    take_over(live, settings("main", "eu", metrics=[{**NAMED, "name": "other"}]))

    assert sorted(opened) == ["eu", "eu", "main", "main"]
    assert "other" in live.current.names
    with pytest.raises(MetricUnknown):
        live.current.read("backlog", ())
    assert values_of(live, "other") == [3]


def test_other_numbers_of_replicas_need_no_other_collectors(live: LiveMetrics, opened: list[str]) -> None:
    rule = {"group": "billing", "topics": ["orders"]}
    metric = NAMED | {"name": "r", "value": "replicas"}
    take_over(live, settings("main", "eu", rules=[rule | {"replicas": {}}], metrics=[metric | {"replicas": {}}]))
    assert values_of(live, "r") == [1]
    before = len(opened)

    one_each = {"lagPerReplica": 1}
    rules, metrics = [rule | {"replicas": one_each}], [metric | {"replicas": one_each}]
    take_over(live, settings("main", "eu", rules=rules, metrics=metrics))
    assert len(opened) == before
    assert values_of(live, "r") == [2]

    rules = [rule | {"replicas": {"excludePersistentLag": True}}]
    take_over(live, settings("main", "eu", rules=rules, metrics=metrics))
    assert len(opened) == before + 2


def test_an_offset_reset_that_a_rule_by_pattern_gets_replaces_the_collectors(
    live: LiveMetrics, opened: list[str]
) -> None:
    rule = {"groups": "bill.*", "topics": ["orders"]}
    take_over(live, settings("main", "eu", rules=[rule]))
    before = len(opened)

    take_over(live, settings("main", "eu", rules=[{**rule, "offsetReset": "latest"}]))

    assert len(opened) == before + 2


def test_a_cluster_that_can_be_read_is_not_replaced_by_one_that_cannot(
    live: LiveMetrics, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(live_module, "PATIENCE_SECONDS", 0.0)
    down = {"name": "main", "bootstrapServers": ["down:9092"]}
    live.prepare(samples.settings(clusters=[down, samples.cluster("eu")], collection=SECOND_APART, metrics=[NAMED]))
    before = live.current.version

    wait_until(lambda: live.current.version > before + 3)

    assert [*live.waiting_for()] == ["main"]
    live.discard()
    before = live.current.version
    wait_until(lambda: live.current.version > before)
    assert "backlog" not in live.current.names


def test_an_unreachable_new_cluster_delays_the_others_for_a_limited_time(
    live: LiveMetrics, monkeypatch: pytest.MonkeyPatch
) -> None:
    down = {"name": "new", "bootstrapServers": ["down:9092"]}
    parts = {"collection": SECOND_APART, "metrics": [NAMED]}
    live.prepare(samples.settings(clusters=[samples.cluster("main"), samples.cluster("eu"), down], **parts))
    wait_until(lambda: [*live.waiting_for()] == ["new"])

    monkeypatch.setattr(live_module, "PATIENCE_SECONDS", 0.0)

    wait_until(lambda: not live.waiting_for())
    live.take_over()
    assert values_of(live, "backlog") == [3]


def test_commits_that_have_expired_count_from_the_last_one_seen_before_the_change(
    live: LiveMetrics, opened: list[str]
) -> None:
    opened.append("expired")
    take_over(live, settings("main", "eu", metrics=[{**NAMED, "topics": ["orders"]}]))

    assert values_of(live, "backlog") == [3]


def asked(topic: str, namespace: str = "shop") -> AskedTopics:
    """By an HPA, of the group billing, which has never committed for these topics."""
    return AskedTopics(namespace, None, "billing", (topic,))


def lag_for(metrics: Metrics, topic: str) -> int | None:
    with contextlib.suppress(Refused):
        return sum(item.milli // 1000 for item in metrics.read(LAG, samples.wants(group="billing", topic=topic)).values)
    return None


def test_only_what_the_namespace_of_the_hpa_may_read_is_read(live: LiveMetrics) -> None:
    take_over(live, settings("main", rules=[{"groups": "bill.*", "namespaces": ["payments"]}]))
    live.ask(frozenset({asked("trail", "payments"), asked("other", "security")}))
    wait_until(lambda: lag_for(live.current, "trail") == 8)

    assert lag_for(live.current, "other") is None


def test_changed_settings_take_effect_with_what_hpas_asked_for_before_and_meanwhile(live: LiveMetrics) -> None:
    live.ask(frozenset({asked("trail")}))
    live.prepare(settings("main", rules=[{"group": "audit"}]))
    wait_until(lambda: not live.waiting_for())
    assert live._next
    assert lag_for(live._next.metrics, "trail") == 8, "from the first cycle on"

    live.ask(frozenset({asked("trail"), asked("other")}))
    prepared = live._next.metrics
    wait_until(lambda: lag_for(prepared, "other") == 0)


def test_collectors_that_are_kept_read_what_changed_settings_let_an_hpa_read(
    live: LiveMetrics, opened: list[str]
) -> None:
    take_over(live, settings("main", "eu", tenancy="closed"))
    live.ask(frozenset({asked("trail")}))
    assert lag_for(live.current, "trail") is None

    take_over(live, settings("main", "eu"))

    wait_until(lambda: lag_for(live.current, "trail") == 16)
    assert sorted(opened) == ["eu", "main"]


def members_asked(live: LiveMetrics) -> list[frozenset[str]]:
    return [collector._cycle.members_asked for collector in live._current.collectors.values()]


def test_members_are_asked_for_by_a_namespace_that_may_read_the_group(live: LiveMetrics, opened: list[str]) -> None:
    live.ask(frozenset({AskedTopics("shop", "main", "billing", (), of_members=True)}))
    found = [members_asked(live)]
    take_over(live, settings("main", "eu", tenancy="closed"))
    found.append(members_asked(live))

    assert found == [[{"billing"}, set()], [set(), set()]]
    assert sorted(opened) == ["eu", "main"], "no cluster is read anew for it"


def test_the_number_of_partitions_is_followed_where_maximums_may_be_changed(live: LiveMetrics) -> None:
    live.ask(frozenset({AskedTopics("shop", "main", "billing", (), of_partitions=True), asked("trail")}))
    found = []
    for changes in ({}, {"maxReplicas": True}):
        take_over(live, settings("main", "eu", autoscalers=changes))
        found.append([each._cycle.partitions_asked for each in live._current.collectors.values()])

    assert found == [[set(), set()], [{"billing"}, set()]]


def test_credentials_that_are_not_used_are_one_line_in_the_log(
    live: LiveMetrics, telemetry: Telemetry, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    not_used = ("kafka_lag_adapter_condition", frozenset({"credentials", "main", "false"}))
    wait_until(lambda: samples_of(telemetry).get(not_used) == 0)

    monkeypatch.setattr(FakeBrokers, "credentials_problem", "passwordFile /secret is empty")
    wait_until(lambda: samples_of(telemetry).get(not_used) == 1)
    version = live.current.version
    wait_until(lambda: live.current.version > version + 2)

    (line,) = (line for line in caplog.messages if line.startswith("credentials of cluster main: NotUsed: "))
    assert line.endswith(": passwordFile /secret is empty")
    assert not any("secret" in condition.message for condition in telemetry.conditions.current)


def test_a_cluster_that_is_gone_leaves_no_series(live: LiveMetrics, telemetry: Telemetry) -> None:
    take_over(live, settings("main"))

    assert not [labels for _, labels in samples_of(telemetry) if "eu" in labels]
    assert ("kafka_lag_adapter_age_seconds", frozenset({"main"})) in samples_of(telemetry)


def test_a_loop_that_still_hangs_when_its_cluster_is_gone_brings_back_no_series(
    live: LiveMetrics, telemetry: Telemetry, sent: dict[str, Callable[[str], None]]
) -> None:
    take_over(live, settings("main"))
    for count_request in sent.values():
        count_request("Metadata")

    requests = {labels for name, labels in samples_of(telemetry) if name == "kafka_lag_adapter_broker_requests_total"}
    assert requests == {frozenset({"main", "Metadata"})}


def test_a_cluster_that_was_only_prepared_leaves_no_series(
    live: LiveMetrics, telemetry: Telemetry, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("adapter.collector.cycle.Cycle.run_once", lambda _self: 1 / 0)
    live.prepare(settings("main", "eu", "new"))
    assert live._next
    prepared = live._next.collectors["new"]
    wait_until(lambda: prepared.completeness is not None)
    assert not [labels for _, labels in samples_of(telemetry) if "new" in labels]
    telemetry.count_request("new", "Metadata")

    live.discard()

    assert not [labels for _, labels in samples_of(telemetry) if "new" in labels]


def test_only_cycles_of_collectors_that_serve_are_kept(opened: list[str], telemetry: Telemetry) -> None:
    kept: list[str] = []
    live = LiveMetrics(settings("main"), telemetry, WallClock(), lambda sample: kept.append(sample.cluster))
    live.start()
    try:
        wait_until(lambda: bool(kept))
        live.prepare(settings("main", "eu"))
        wait_until(lambda: not live.waiting_for())
        assert set(kept) == {"main"}

        live.take_over()

        wait_until(lambda: set(kept) == {"main", "eu"})
    finally:
        live.stop(60.0)
    assert sorted(opened) == ["eu", "main", "main"]


def test_it_is_known_whether_values_can_be_read_once_every_cluster_was_read_and_stays_so(
    live: LiveMetrics, telemetry: Telemetry
) -> None:
    wait_until(lambda: telemetry.conditions.checks == {"values": True})
    live.prepare(settings("main", "eu", "asia"))

    assert telemetry.conditions.checks == {"values": True}


@pytest.mark.usefixtures("opened")
@pytest.mark.parametrize(("down", "changes"), [("down:9092", 1), ("partly:9092", 2)])
def test_a_cluster_that_cannot_be_read_keeps_no_process_unready_for_long(
    telemetry: Telemetry, down: str, changes: int, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """If a part can be read, its values are first unknown and later incomplete."""
    monkeypatch.setattr(collector_module, "FIRST_SECONDS", 3.0)
    given = {"name": "main", "bootstrapServers": [down]}
    made = LiveMetrics(samples.settings(clusters=[given]), telemetry, WallClock())
    made.start()
    try:
        wait_until(lambda: telemetry.conditions.checks == {"values": True})
    finally:
        made.stop(60.0)
    assert caplog.text.count("values of cluster main: ") == changes


@pytest.mark.usefixtures("opened")
def test_what_one_member_can_read_is_kept_over_restarts() -> None:
    windows = tuple(BusyWindow(time.time() - 60.0 * ago, 60.0, 50.0, 3000.0, 6) for ago in range(12, 0, -1))
    kept = [dumps({("main", group): GroupMemory(windows=windows) for group in ("billing", "gone")})[0]]
    objective = {"groups": ".*", "objective": {"maxWait": "30s"}}

    def exchange(changed: Callable[[str], str]) -> None:
        kept[0] = changed(kept[0])

    def capacity(live: LiveMetrics) -> float | None:
        with contextlib.suppress(Refused):
            (item,) = live.current.read("kafka_consumergroup_capacity", samples.wants(group="billing")).values
            return item.milli / 1000
        return None

    for _ in range(2):
        live = LiveMetrics(settings("main", rules=[objective]), Telemetry(), WallClock(), exchange=exchange)
        live.memory.run_once()
        live.start()
        try:
            wait_until(lambda live=live: capacity(live) == 50.0)  # type: ignore[misc]  # of this turn
            assert live.remembered["main"]["billing"].windows
            assert "gone" not in live.remembered["main"], "nothing names it, so it is forgotten after a day"
        finally:
            live.stop(60.0)
            live.memory.run_once(is_last=True)

    assert loads(kept[0], time.time())[0]["main", "billing"].windows
