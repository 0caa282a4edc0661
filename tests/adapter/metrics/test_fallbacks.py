"""What is served while a lag is unknown for longer than the owner allows, from when on, and how that is said."""

from dataclasses import replace

import pytest

from adapter.cluster.possible_groups import any_group_possible
from adapter.conditions import FALLBACKS, Condition, Conditions, ConditionStatus
from adapter.metrics.fallbacks import FORGOTTEN_SECONDS, MOST_SELECTORS, Asked, Fallbacks
from adapter.metrics.problems import NoMatch, ValueUnavailable
from adapter.metrics.query import Metrics, Reading
from adapter.settings.models import Settings
from tests.support import samples
from tests.support.samples import EPOCH, NEVER_READ, NOW, MetricsReader, SteppedClock, row, store_of, view, wants

KNOWN = {("billing", "orders", 0): row(0, 100), ("billing", "orders", 1): row(0, 100)}
UNKNOWN = KNOWN | {("billing", "orders", 1): NEVER_READ}
METRIC = {"name": "r", "value": "replicas", "group": "billing", "topics": ["orders"]}
SHAPE = {"lagPerReplica": 100, "fallback": {"after": "3m", "replicas": 6}}


class Reader(MetricsReader):
    """Reads by these settings, as a process does that has just begun."""

    def __init__(self, settings: Settings, cluster: dict[samples.Key, samples.Row]) -> None:
        self.clock, self.conditions = SteppedClock(), Conditions(lambda: EPOCH)
        self.fallbacks = Fallbacks(self.clock.monotonic, self.conditions)
        self.settings = settings
        self.store = store_of(view(cluster, settings=settings))
        self.metrics = Metrics(settings, self.store, self.clock, fallbacks=self.fallbacks)

    def becomes(self, cluster: dict[samples.Key, samples.Row], **parts: object) -> None:
        fresh = {key: replace(one, received=one.received + self.clock.seconds - NOW) for key, one in cluster.items()}
        self.store.feeds["main"].replace(replace(view(fresh, settings=self.settings), **parts))  # type: ignore[arg-type]

    def after(self, seconds: float) -> "Reader":
        self.clock.seconds += seconds
        self.metrics.look()
        return self

    @property
    def condition(self) -> Condition:
        (found,) = self.conditions.current
        return found


def begun(settings: Settings, cluster: dict[samples.Key, samples.Row]) -> Reader:
    return Reader(settings, cluster).after(0)


def named(**keys: object) -> Settings:
    return samples.settings(metrics=[METRIC | {"replicas": SHAPE | keys}])


def by_rule(**keys: object) -> Settings:
    return samples.settings(rules=[{"group": "billing", "topics": ["orders"], "replicas": SHAPE, **keys}])


def numbers(reading: Reading) -> list[int]:
    return [value.milli // 1000 for value in reading.values]


def test_the_fallback_is_served_once_the_lag_has_been_unknown_for_longer_than_it_says() -> None:
    reader = begun(named(), UNKNOWN)

    assert isinstance(reader.after(180).refusal("r"), ValueUnavailable)
    reading = reader.after(1).read("r")
    assert reading.values == (({"group": "billing", "topic": "orders"}, 6000, EPOCH + 181),)
    assert reading.is_fallback
    (warning,) = reading.warnings
    assert warning == (
        "6 replicas by the fallback, refused since 2026-11-18T11:06:40Z: number of replicas of group billing is not"
        " known: orders/1: broker 2 at kafka-2:9092 does not answer"
    )


def test_it_begins_with_the_first_refusal_whether_anybody_reads_or_not() -> None:
    reader = begun(named(), KNOWN)
    reader.clock.seconds += 1000
    reader.becomes(UNKNOWN)

    reader.after(5)
    assert isinstance(reader.after(180).refusal("r"), ValueUnavailable)
    assert numbers(reader.after(1).read("r")) == [6]


def test_a_known_lag_ends_it_at_once_and_begins_the_time_anew() -> None:
    reader = begun(named(), UNKNOWN).after(200)
    reader.becomes(KNOWN)
    assert numbers(reader.read("r")) == [2]

    reader.becomes(UNKNOWN)
    assert isinstance(reader.after(170).refusal("r"), ValueUnavailable)


def test_without_a_fallback_the_value_stays_refused() -> None:
    assert isinstance(begun(named(fallback=None), UNKNOWN).after(10_000).refusal("r"), ValueUnavailable)


def test_a_group_that_is_known_to_be_absent_has_no_fallback() -> None:
    assert isinstance(begun(named(), {}).after(10_000).refusal("r"), NoMatch)


def test_a_rule_has_a_fallback_too_for_every_selector_of_its_group() -> None:
    reader = begun(by_rule(), UNKNOWN).after(181)

    assert numbers(reader.read("replicas", wants(group="billing"))) == [6]
    assert numbers(reader.read("replicas", wants(group="billing", topic="orders"))) == [6]


def test_a_selector_of_known_partitions_does_not_end_the_time_of_the_others() -> None:
    reader = begun(by_rule(), UNKNOWN)
    part, other = wants(group="billing", partition="0"), wants(group="billing", partition="1")
    reader.refusal("replicas", other)
    reader.clock.seconds += 100
    reader.becomes(UNKNOWN)
    assert numbers(reader.read("replicas", part)) == [1]

    reader.clock.seconds += 81
    reader.becomes(UNKNOWN)
    assert numbers(reader.read("replicas", other)) == [6]
    assert numbers(reader.read("replicas", part)) == [1]


def test_a_reader_who_may_not_see_the_group_gets_no_fallback() -> None:
    reader = begun(by_rule(namespaces=["payments"]), {})
    reader.becomes({}, possible_groups=any_group_possible("broker 2 does not answer"))
    reader.after(0).after(200)
    assert numbers(reader.read("replicas", wants(group="billing"))) == [6]

    reader.namespace = "shop"
    assert isinstance(reader.refusal("replicas", group="billing"), ValueUnavailable)


def test_a_reader_who_may_not_see_the_group_does_not_end_the_time_of_others() -> None:
    reader = begun(by_rule(namespaces=["payments"]), UNKNOWN).after(181)

    reader.namespace = "shop"
    assert isinstance(reader.refusal("replicas", group="billing"), NoMatch)
    reader.namespace = "payments"
    assert numbers(reader.read("replicas", wants(group="billing"))) == [6]


def test_a_condition_says_that_fallbacks_are_used_and_the_log_which(caplog: pytest.LogCaptureFixture) -> None:
    reader = begun(named(), KNOWN)
    assert (reader.condition.name, reader.condition.status) == (FALLBACKS.name, ConditionStatus.TRUE)

    reader.becomes(UNKNOWN)
    reader.after(5).after(181).after(5)
    assert (reader.condition.status, reader.condition.reason) == (ConditionStatus.FALSE, "Used")
    assert "r" not in reader.condition.message.split()
    reader.becomes(KNOWN)
    assert reader.after(5).condition.status is ConditionStatus.TRUE
    assert [message for message in caplog.messages if "Used" in message and message.endswith("log has the metrics: r")]


def test_there_is_no_condition_where_no_fallback_is_configured() -> None:
    assert begun(named(fallback=None), UNKNOWN).after(1000).conditions.current == ()


def test_the_condition_goes_with_the_last_fallback_of_the_settings() -> None:
    reader = begun(named(), UNKNOWN).after(200)
    changed = samples.settings()
    reader.metrics = Metrics(changed, reader.store, reader.clock, fallbacks=reader.fallbacks)
    reader.after(FORGOTTEN_SECONDS).after(FORGOTTEN_SECONDS)

    assert reader.conditions.current == ()


def test_the_time_is_kept_when_settings_change() -> None:
    reader = begun(named(), UNKNOWN).after(150)
    reader.metrics = Metrics(named(activation=1), reader.store, reader.clock, fallbacks=reader.fallbacks)

    assert numbers(reader.after(31).read("r")) == [6]


def test_selectors_of_readers_take_bounded_memory_and_are_forgotten() -> None:
    reader = begun(by_rule(), UNKNOWN)
    for number in range(2 * MOST_SELECTORS):
        reader.refusal("replicas", wants(group="billing", topic=["orders", str(number)]))
    assert len(reader.fallbacks._values) == MOST_SELECTORS

    reader.after(FORGOTTEN_SECONDS + 1)
    assert len(reader.fallbacks._values) == 1


def test_a_selector_for_which_there_is_no_place_gets_the_fallback_with_the_whole_value() -> None:
    reader = begun(by_rule(), UNKNOWN).after(181)
    for number in range(MOST_SELECTORS):
        reader.fallbacks.refused(Asked("other", wants(topic=str(number))), Asked("other", ()), 180)

    assert numbers(reader.read("replicas", wants(group="billing", topic="orders"))) == [6]
    reader.becomes(KNOWN)
    reader.after(0).becomes(UNKNOWN)
    assert isinstance(reader.refusal("replicas", group="billing", topic="orders"), ValueUnavailable)
