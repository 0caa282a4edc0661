"""Topics that only a label selector names for a group: they count for it, and for nobody else."""

from collections.abc import Callable

import pytest

from adapter.collector.cycle import Cycle
from adapter.collector.last_commits import ASKED_SECONDS, MOST_BYTES, LastCommits, dumps
from adapter.errors import AdapterError, NothingChosen, ValueUnavailable
from adapter.lag.last_commit import LastCommit
from adapter.lag.rules import Watching
from adapter.lag.snapshot import State
from adapter.metrics import selector_topics
from adapter.metrics.query import Metrics
from adapter.metrics.selector_topics import KEEP_SECONDS, PARTITIONS_MORE, SelectorTopics
from adapter.metrics.waking import MOST_PAIRS
from adapter.settings.models import Settings
from tests.support import samples
from tests.support.kafka.fake_cluster import Kafka
from tests.support.kafka.rig import Rig
from tests.support.kafka.small_cluster import ORDERS_0, ORDERS_1, ORDERS_2
from tests.support.samples import wants

CYCLES_UNTIL_GONE = 16
EXACT = {"group": "billing", "topic": "orders"}


class Adapter:
    """An adapter with its memory, over a fake cluster."""

    def __init__(self, kafka: Kafka, settings: Settings | None = None, kept: list[str] | None = None) -> None:
        self.rig = Rig(kafka, settings)
        self.text = kept if kept is not None else [""]
        clock, given = self.rig.clock, self.rig.settings
        self.topics = SelectorTopics(clock.monotonic)
        self.memory = LastCommits(lambda: self.rig.store.views, clock, self._exchange, self.topics)
        self.rig.cycle = Cycle(
            "main", given.collection.interval, Watching(given, "main"), self.rig.brokers, self.rig.store, clock,
            keep=self.rig.samples.append, memory=self.memory, selector_topics=self.topics,
        )  # fmt: skip
        self.rig.metrics = Metrics(given, self.rig.store, clock, self.topics)
        self.run()

    def _exchange(self, change: Callable[[str], str]) -> None:
        self.text[0] = change(self.text[0])

    def run(self, cycles: int = 1) -> None:
        for _ in range(cycles):
            self.memory.run_once()
            self.rig.run()
            self.memory.run_once()

    def error(self, metric: str = "lag", namespace: str | None = None, **labels: str | list[str]) -> AdapterError:
        with pytest.raises(AdapterError) as caught:
            self.rig.metrics.read(f"kafka_consumergroup_{metric}", wants(**labels), namespace)
        return caught.value

    def value(self, metric: str = "lag", namespace: str | None = None, **labels: str | list[str]) -> int:
        reading = self.rig.metrics.read(f"kafka_consumergroup_{metric}", wants(**labels), namespace)
        return sum(item.value for item in reading.values)

    def woken(self, namespace: str | None = None, **labels: str | list[str]) -> int:
        """The value, after the first read was refused and a cycle has run."""
        assert isinstance(self.error("lag", namespace, **labels), ValueUnavailable)
        self.run()
        return self.value("lag", namespace, **labels)


def kafka() -> Kafka:
    """Billing has committed for orders, audit for trail; nobody reads other, which has 8 messages."""
    return Kafka(
        topics={"orders": [1, 2, 3], "trail": [1], "other": [1]},
        generations={"orders": "id-1", "trail": "id-2", "other": "id-3"},
        commits={"billing": {ORDERS_0: 7, ORDERS_1: 10, ORDERS_2: 5}, "audit": {("trail", 0): 1}},
        coordinators={"billing": 2, "audit": 1},
        ends={ORDERS_0: 10, ORDERS_1: 20, ORDERS_2: 5, ("trail", 0): 4, ("other", 0): 8},
    )


def gone(settings: Settings | None = None, kept: list[str] | None = None) -> Adapter:
    """Billing's commits have expired, and Kafka no longer knows it; nobody has asked yet."""
    adapter = Adapter(kafka(), settings, kept)
    adapter.rig.kafka.commits.pop("billing")
    adapter.run(CYCLES_UNTIL_GONE)
    assert "billing" not in adapter.rig.view.layout.groups
    return adapter


def test_a_selector_counts_a_gone_group_from_its_last_commit() -> None:
    adapter = gone()
    assert str(adapter.error(**EXACT)) == (
        "topic orders has no commit of group billing; it is read from the next cycle on"
    )
    adapter.run()
    assert adapter.value(**EXACT) == 13
    assert adapter.value("uncommitted_partitions", **EXACT) == 3
    assert adapter.value("records_lag_max", **EXACT) == 10

    adapter.rig.kafka.ends[ORDERS_2] += 4
    adapter.run()

    assert adapter.value(**EXACT) == 17


def test_it_counts_for_this_selector_alone() -> None:
    adapter = gone()
    adapter.woken(**EXACT)

    assert isinstance(adapter.error(group="billing"), NothingChosen)
    assert isinstance(adapter.error(topic="orders"), NothingChosen)
    assert [item.labels["group"] for item in adapter.rig.read("lag").values] == ["audit"]
    assert adapter.value("records_lag_max") == 3
    assert str(adapter.error(group="billings")).endswith("known groups are audit")


def test_trouble_with_it_matters_to_this_selector_alone() -> None:
    adapter = gone()
    adapter.woken(**EXACT)
    adapter.rig.kafka.commit_errors = {"billing": 30}
    adapter.rig.clock.seconds += 120
    adapter.run()

    assert isinstance(adapter.error(**EXACT), ValueUnavailable)
    assert adapter.value("records_lag_max") == 3
    assert adapter.rig.read("lag").warnings == ()


def test_what_was_never_committed_counts_whole() -> None:
    assert gone().woken(group="billing", topic="other") == 8


def test_a_rule_that_says_latest_is_obeyed() -> None:
    rules = [{"groups": "bill.*", "offsetReset": "latest"}]

    assert gone(samples.settings(rules=rules)).woken(group="billing", topic="other") == 0


def test_a_rule_that_says_nothing_about_it_changes_nothing() -> None:
    rules = [{"groups": "bill.*", "namespaces": ["payments"]}]

    assert gone(samples.settings(rules=rules)).woken("payments", group="billing", topic="orders") == 13


def test_a_group_that_kafka_knows_counts_a_topic_without_commits_for_this_selector_alone() -> None:
    adapter = Adapter(kafka())

    assert adapter.woken(group="audit", topic=["trail", "other"]) == 3 + 8
    assert adapter.value(group="audit") == 3


def test_topics_outside_of_the_groups_rule_stay_outside() -> None:
    rules = [{"group": "billing", "topics": ["orders"]}]
    adapter = Adapter(kafka(), samples.settings(rules=rules))

    assert isinstance(adapter.error(group="billing", topic="other"), NothingChosen)


@pytest.mark.parametrize(
    ("labels", "message"),
    [
        ({"group": "biling", "topic": "orders"}, "no group 'biling' is known"),
        ({"group": "audit", "topic": "order"}, "no topic 'order' is known; known topics are orders"),
        ({"group": "billing", "topic": "order"}, "no group 'billing' is known"),
    ],
)
def test_a_typo_is_not_found(labels: dict[str, str], message: str) -> None:
    adapter = gone()
    error = adapter.error(**labels)

    assert isinstance(error, NothingChosen)
    assert str(error).startswith(message)
    assert adapter.topics.of("main", 10.0) == {}


def test_a_topic_that_is_deleted_is_not_found() -> None:
    adapter = gone()
    adapter.woken(**EXACT)
    del adapter.rig.kafka.topics["orders"]
    adapter.run(CYCLES_UNTIL_GONE)

    assert isinstance(adapter.error(**EXACT), NothingChosen)


def test_after_a_restart_it_counts_from_the_kept_commits() -> None:
    kept = [""]
    before = gone(kept=kept)
    before.woken(**EXACT)
    before.memory.run_once()
    restarted = Adapter(before.rig.kafka, kept=kept)

    assert restarted.value(**EXACT) == 13, "without a refusal, because selectors had asked for it"
    assert restarted.woken(group="billing", topic="other") == 8


def test_another_replica_answers_at_once_what_selectors_ask_this_one_for() -> None:
    kept = [""]
    one = gone(kept=kept)
    other = Adapter(one.rig.kafka, kept=kept)
    one.woken(**EXACT)
    one.memory.run_once()
    other.run()

    assert other.value(**EXACT) == 13

    one.rig.clock.seconds += ASKED_SECONDS + 60
    other.rig.clock.seconds = one.rig.clock.seconds
    for adapter in (one, other):
        adapter.run()

    assert one.topics.of("main", 10.0) == other.topics.of("main", 10.0) == {}


def test_a_group_that_never_committed_is_kept_over_a_restart_once_a_selector_names_it() -> None:
    kept = [""]
    made = kafka()
    made.commits["billing"] = {}
    before = Adapter(made, kept=kept)
    before.rig.kafka.commits.pop("billing")
    before.run(CYCLES_UNTIL_GONE)
    assert before.woken(group="billing", topic="other") == 8
    before.memory.run_once()

    assert Adapter(before.rig.kafka, kept=kept).value(group="billing", topic="other") == 8


def test_a_gone_group_that_nobody_names_is_kept_within_an_hour() -> None:
    kept = [""]
    before = gone(kept=kept)
    before.rig.clock.seconds += 3601
    before.memory.run_once()

    assert Adapter(before.rig.kafka, kept=kept).woken(**EXACT) == 13


def test_until_the_kept_groups_are_read_an_unknown_group_is_not_called_absent() -> None:
    adapter = gone()
    adapter.memory.is_loaded = False
    adapter.rig.run()
    error = adapter.error(group="refunds", topic="orders")

    assert isinstance(error, ValueUnavailable)
    assert str(error) == "whether Kafka once knew group refunds has not been read yet"


def test_a_group_that_wakes_up_counts_as_any_other_and_is_no_longer_asked_for() -> None:
    adapter = gone()
    adapter.woken(**EXACT)
    adapter.rig.kafka.coordinators["billing"] = 2
    adapter.rig.kafka.commits["billing"] = {ORDERS_0: 9, ORDERS_1: 20, ORDERS_2: 5}
    adapter.run()
    assert adapter.value(**EXACT) == adapter.value(group="billing") == 1

    adapter.rig.clock.seconds += ASKED_SECONDS + 60
    adapter.run()

    assert adapter.topics.of("main", 10.0) == {}
    assert adapter.value(**EXACT) == 1


def test_from_the_first_commit_on_other_partitions_count_as_for_any_other_group() -> None:
    """A rule that names group and topic counts them on."""
    values = []
    for rules in ([], [{"group": "audit", "topics": ["trail", "orders"]}]):
        adapter = Adapter(kafka(), samples.settings(rules=rules))
        if not rules:
            assert adapter.woken(group="audit", topic="orders") == 35
        adapter.rig.kafka.commits["audit"][ORDERS_0] = 10
        adapter.run()
        values.append(adapter.value(group="audit", topic="orders"))

    assert values == [0, 25]


def test_what_nobody_asks_for_any_more_is_forgotten() -> None:
    adapter = gone()
    adapter.woken(**EXACT)
    adapter.rig.clock.seconds += ASKED_SECONDS + 60
    adapter.run()

    assert "billing" not in adapter.rig.view.layout.groups
    assert "billing" not in adapter.rig.cycle._commits.topics


def test_without_a_config_map_it_is_forgotten_after_ten_minutes() -> None:
    adapter = gone()
    adapter.memory._exchange = None
    adapter.woken(**EXACT)
    adapter.rig.clock.seconds += KEEP_SECONDS + 1
    adapter.run()

    assert adapter.topics.of("main", 10.0) == {}


def test_no_namespace_takes_the_room_of_others(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(selector_topics, "MOST_OF_NAMESPACE", 3 + PARTITIONS_MORE)
    adapter = gone()
    adapter.woken("payments", **EXACT)

    full = adapter.error(namespace="payments", group="audit", topic="other")
    assert isinstance(full, ValueUnavailable)
    assert str(full) == "selectors already name too many topics that no commit is known for: other"
    assert adapter.woken("logistics", group="audit", topic="other") == 8


def test_all_namespaces_together_have_a_bound(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(selector_topics, "MOST_PARTITIONS", 3 + PARTITIONS_MORE)
    adapter = gone()
    adapter.woken("payments", **EXACT)

    assert "too many topics" in str(adapter.error(namespace="logistics", group="audit", topic="other"))


def test_topics_that_selectors_name_leave_room_for_the_last_commits() -> None:
    topics = SelectorTopics(lambda: 0.0)
    for number in range(5000):
        topics.ask(("main", f"group-{number}", "orders"), 1, f"namespace-{number % 50}")
    asked = topics.asked_here()
    kept = {key: LastCommit("", 0, (partitions,)) for key, partitions in asked.items()}

    assert 900 < len(asked) <= 1000
    assert len(dumps(kept)) < MOST_BYTES / 10


def test_clusters_that_are_no_longer_read_leave_their_room_to_others(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(selector_topics, "MOST_OF_NAMESPACE", PARTITIONS_MORE + 3)
    clock = samples.SteppedClock()
    topics = SelectorTopics(clock.monotonic)
    assert topics.ask(("former", "billing", "orders"), 3, "shop")
    clock.seconds += KEEP_SECONDS + 1
    assert topics.of("main", 10.0) == {}

    assert topics.ask(("main", "billing", "orders"), 3, "shop")


@pytest.mark.parametrize(("collection", "excluded"), [("groups", "audit"), ("topics", "other")])
def test_what_the_settings_exclude_meanwhile_is_not_read_again(collection: str, excluded: str) -> None:
    kept = [""]
    asked = Adapter(kafka(), kept=kept)
    assert asked.woken(group="audit", topic="other") == 8
    asked.run()
    adapter = Adapter(kafka(), samples.settings(collection={collection: {"exclude": [excluded]}}), kept)
    adapter.run()

    layout = adapter.rig.view.layout
    assert excluded not in {*layout.groups, *layout.topics}


def test_a_selector_of_very_many_names_asks_for_nothing() -> None:
    adapter = gone()
    many = [f"nobody-{number}" for number in range(MOST_PAIRS)]

    assert isinstance(adapter.error(group=["billing", *many], topic="orders"), NothingChosen)
    assert adapter.topics.of("main", 10.0) == {}


def test_a_namespace_wakes_neither_the_groups_of_others_nor_sees_the_size_of_their_topics() -> None:
    rules = [{"group": "billing", "namespaces": ["payments"]}, {"group": "audit", "namespaces": ["security"]}]
    adapter = gone(samples.settings(rules=rules, tenancy="closed"))

    assert isinstance(adapter.error(namespace="security", **EXACT), NothingChosen)
    assert isinstance(adapter.error(namespace="payments", group="billing", topic="trail"), NothingChosen)
    assert isinstance(adapter.error(namespace="payments", group="billing", topic="other"), NothingChosen)
    assert adapter.woken("payments", **EXACT) == 13
    assert isinstance(adapter.error(namespace="security", **EXACT), NothingChosen)


def test_a_topic_that_others_ask_for_is_not_shown_to_a_namespace_that_reads_the_group() -> None:
    rules = [{"group": "audit", "namespaces": ["security"]}]
    adapter = Adapter(kafka(), samples.settings(rules=rules, tenancy="closed"))
    assert adapter.woken(group="audit", topic="other") == 8

    assert str(adapter.error(namespace="security", topic="others")) == (
        "no topic 'others' is known; known topics are trail"
    )
    assert isinstance(adapter.error(namespace="security", group="audit", topic="other"), NothingChosen)


def test_the_history_does_not_count_it() -> None:
    adapter = gone()
    adapter.woken(**EXACT)
    (sample,) = adapter.rig.samples
    rows = sample.layout.pairs["billing", "orders"]

    assert {State(state).name for state in sample.state[rows].tolist()} == {"STALE"}


def test_a_topic_that_the_members_of_the_group_do_not_read_is_left_out() -> None:
    adapter = Adapter(kafka())
    adapter.rig.kafka.members["audit"] = {"trail"}
    adapter.error(group="audit", topic="other")
    adapter.run(8)

    assert isinstance(adapter.error(group="audit", topic="other"), NothingChosen)
