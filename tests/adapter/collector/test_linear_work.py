"""Ten times as many errors, rules or names cost ten times the work, not a hundred times; messages stay short."""

from collections.abc import Callable
from dataclasses import replace

import numpy as np
import pytest

from adapter.cluster.groups import Directory, Kind, with_coordinators
from adapter.collector.takeovers import Takeovers
from adapter.errors import MetricUnknown
from adapter.kafka.answers import BrokersUnreachable, Failure, FailureCause
from adapter.lag.rules import still_committed, treatment_of
from adapter.protocol.reader import Reader
from adapter.settings.models import Settings
from tests.support import samples
from tests.support.counting import Name, is_linear, work
from tests.support.kafka.fake_cluster import NOBODY, Kafka
from tests.support.kafka.rig import Rig
from tests.support.samples import Answers, view, watching

Work = Callable[[], object]
GROUP_NOT_AUTHORIZED, TOPIC_NOT_AUTHORIZED, UNKNOWN_PARTITION = 30, 29, 3
MANY = 10_000


def names(count: int, prefix: str = "topic") -> list[str]:
    """Texts that are equal to those of another call, and never the same objects."""
    return [Name(f"{prefix}-{number}") for number in range(count)]


@pytest.fixture(autouse=True)
def _names_in_responses_count_their_comparisons(monkeypatch: pytest.MonkeyPatch) -> None:
    text = Reader.text
    monkeypatch.setattr(Reader, "text", lambda reader, *errors: Name(text(reader, *errors)))


# -- cycles with as many errors as groups or topics -----------------------------------------------------------


def many_groups(count: int) -> Kafka:
    """Each has a commit for the one topic."""
    return Kafka(topics={"orders": [1]}, commits={group: {("orders", 0): 1} for group in names(count, "group")})


def many_topics(count: int) -> Kafka:
    """One group has a commit for each."""
    topics = names(count)
    return Kafka(topics={topic: [1] for topic in topics}, commits={"billing": {(topic, 0): 1 for topic in topics}})


def a_rule_for_each(count: int) -> Settings:
    groups, topics = names(count, "group"), names(count)
    return samples.settings(
        rules=[{"group": group, "topics": [topic]} for group, topic in zip(groups, topics, strict=True)]
    )


def after_cycles(cluster: Kafka, change: Callable[[Kafka], None], settings: Settings | None = None) -> Work:
    """The cycles after a change of the cluster."""
    rig = Rig(cluster, settings)
    rig.run(2)
    change(cluster)
    return lambda: rig.run(4)


def refuse_groups(cluster: Kafka) -> None:
    cluster.commit_errors = dict.fromkeys(cluster.commits, GROUP_NOT_AUTHORIZED)


def lose_coordinators(cluster: Kafka) -> None:
    cluster.coordinators = dict.fromkeys(cluster.commits, NOBODY)


def move_coordinators(cluster: Kafka) -> None:
    cluster.coordinators = dict.fromkeys(cluster.commits, 2)


def move_to_a_coordinator_that_stays_behind(cluster: Kafka) -> None:
    move_coordinators(cluster)
    cluster.stale_commits = {2: {group: {("orders", 0): 0} for group in cluster.commits}}


def refuse_topics(cluster: Kafka) -> None:
    cluster.end_errors = {(topic, 0): TOPIC_NOT_AUTHORIZED for topic in cluster.topics}


def refuse_starts(cluster: Kafka) -> None:
    cluster.start_errors = {(topic, 0): UNKNOWN_PARTITION for topic in cluster.topics}


def lose_half_of_the_commits(cluster: Kafka) -> None:
    kept = list(cluster.commits["billing"])[::2]
    cluster.commits["billing"] = dict.fromkeys(kept, 1)


def delete_topics(cluster: Kafka) -> None:
    cluster.topics = {"other": [1]}


def hide_topics(cluster: Kafka) -> None:
    cluster.hidden = set(cluster.topics)


def change_nothing(_: Kafka) -> None:
    pass


@pytest.mark.parametrize(
    "change", [refuse_groups, lose_coordinators, move_coordinators, move_to_a_coordinator_that_stays_behind]
)
def test_a_cycle_in_which_every_group_fails_is_linear(change: Callable[[Kafka], None]) -> None:
    assert is_linear(lambda count: after_cycles(many_groups(count), change))


@pytest.mark.parametrize("change", [refuse_topics, refuse_starts, lose_half_of_the_commits, delete_topics])
def test_a_cycle_in_which_every_topic_fails_is_linear(change: Callable[[Kafka], None]) -> None:
    assert is_linear(lambda count: after_cycles(many_topics(count), change))


def test_a_cycle_in_which_every_share_group_fails_is_linear() -> None:
    def prepared(count: int) -> Work:
        cluster = many_groups(count)
        cluster.kinds = dict.fromkeys(cluster.commits, Kind.SHARE)
        cluster.share_errors = dict.fromkeys(cluster.commits, GROUP_NOT_AUTHORIZED)
        return after_cycles(cluster, change_nothing)

    assert is_linear(prepared)


@pytest.mark.parametrize("change", [delete_topics, hide_topics])
def test_a_cycle_in_which_the_topic_of_every_rule_is_missing_or_hidden_is_linear(
    change: Callable[[Kafka], None],
) -> None:
    assert is_linear(lambda count: after_cycles(many_topics(count), change, a_rule_for_each(count)))


def test_the_partitions_of_a_topic_that_fail_alike_cost_no_more_than_one() -> None:
    def refused(partitions: int) -> Work:
        cluster = Kafka(topics={"orders": [1] * partitions}, commits={"billing": {("orders", 0): 1}})
        cluster.end_errors = {("orders", index): TOPIC_NOT_AUTHORIZED for index in range(partitions)}
        return after_cycles(cluster, change_nothing)

    assert work(refused(1000)) < 1.5 * work(refused(1))


# -- what the settings name -----------------------------------------------------------------------------------


def test_finding_the_rule_of_each_group_is_linear() -> None:
    def prepared(count: int) -> Work:
        rules = watching(a_rule_for_each(count))
        return lambda: [rules.given(group).rule for group in names(count, "group")]

    assert is_linear(prepared)


def test_the_treatment_of_a_group_with_many_topics_in_its_rule_is_linear() -> None:
    def prepared(count: int) -> Work:
        rules = watching(samples.settings(rules=[{"group": "billing", "topics": names(count)}]))
        layout = samples.layout(("billing", topic, 0) for topic in names(count))
        return lambda: treatment_of(layout, rules, {"billing": frozenset({"topic-0"})})

    assert is_linear(prepared)


def test_the_topics_of_a_rule_are_the_same_object_for_all_its_groups() -> None:
    rules = watching(samples.settings(rules=[{"groups": ".*", "topics": names(3)}, {"group": "b", "topics": ["x"]}]))

    assert rules.given("a").topics == {"topic-0", "topic-1", "topic-2"}
    assert rules.given("a").topics is rules.given("b").topics


def test_the_topics_of_many_metrics_of_one_group_are_collected_once() -> None:
    metrics = [{"name": f"metric-{topic}", "value": "lag", "group": "billing", "topics": [topic]} for topic in names(3)]
    rules = watching(samples.settings(metrics=metrics, rules=[{"group": "billing", "topics": ["x"]}]))

    assert rules.given("billing").topics_by_name == {"x", "topic-0", "topic-1", "topic-2"}
    assert rules.given("billing").topics_by_name is rules.given("billing").topics_by_name


# -- tables ---------------------------------------------------------------------------------------------------


def test_forgetting_coordinators_is_linear() -> None:
    def prepared(count: int) -> Work:
        known = Directory(coordinators=dict.fromkeys(names(count, "group"), 1))
        refused = names(count, "group")
        return lambda: with_coordinators(known, {}, refused)

    assert is_linear(prepared)


def test_the_first_answers_for_groups_that_are_asked_one_by_one_are_linear() -> None:
    def prepared(count: int) -> Work:
        takeovers = Takeovers(10.0)
        takeovers.follow(
            tuple(names(count, "group")), {group: code for code, group in enumerate(names(count, "group"))}
        )
        return lambda: [takeovers.note_answer(np.array([code]), 1, 0.0) for code in range(count)]

    assert is_linear(prepared)


def test_noticing_missing_commits_is_linear() -> None:
    def prepared(count: int) -> Work:
        known, seen = dict.fromkeys(names(count), 0), names(count)[::2]
        return lambda: still_committed(known, seen, can_vanish=True)

    assert is_linear(prepared)


def test_refusing_a_named_metric_whose_topics_are_all_missing_is_linear() -> None:
    def prepared(count: int) -> Work:
        metric = {"name": "backlog", "value": "lag", "group": "billing", "topics": names(count)}
        made = view({}, problems=[samples.missing("billing", topic) for topic in names(count)])
        answers = Answers([made], samples.settings(metrics=[metric]))
        return lambda: answers.reasons("backlog")

    assert is_linear(prepared)


class CopiedGroups(frozenset[str]):
    """Groups whose union with others is counted, as it copies all of them."""

    copied = 0

    def __or__(self, other: object) -> "CopiedGroups":
        CopiedGroups.copied += len(self)
        return CopiedGroups(frozenset.__or__(self, frozenset(other)))  # type: ignore[call-overload]


def test_unlisted_groups_are_added_to_the_directory_all_at_once() -> None:
    cluster = Kafka(topics={"orders": [1]})
    rig = Rig(cluster, a_rule_for_each(100))
    rig.run()
    cluster.commits = {group: {("orders", 0): 1} for group in names(100, "group")}
    commits = rig.cycle._commits
    commits.directory = replace(commits.directory, groups=CopiedGroups({"other"}))
    rig.run()

    assert len(commits.directory.groups) == 101
    assert CopiedGroups.copied <= 101


# -- messages -------------------------------------------------------------------------------------------------


def test_an_unknown_metric_is_refused_with_a_few_names_of_the_thousands_that_are_served() -> None:
    metrics = [{"name": f"backlog-{number}", "value": "lag", "group": "billing"} for number in range(MANY)]
    with pytest.raises(MetricUnknown, match=r", and \d\d?,\d{3} more$") as caught:
        Answers([view({})], samples.settings(metrics=metrics)).read("backlog-10000")

    assert len(str(caught.value)) < 500


def test_a_listing_without_any_number_names_a_few_of_the_groups_that_fail() -> None:
    unread = [samples.unread(group, "no broker coordinates it") for group in names(MANY, "group")]
    message = str(Answers([view({}, problems=unread)]).refusal())

    assert message.endswith("; and 9,997 more")
    assert len(message) < 500


def test_a_cluster_that_no_metric_may_name_is_refused_with_a_few_names_of_those_there_are() -> None:
    clusters = [samples.cluster(f"kafka-{number}") for number in range(1000)]
    metric = {"name": "backlog", "value": "lag", "group": "billing", "cluster": "other"}
    (problem,) = samples.settings_problems(clusters=clusters, metrics=[metric])

    assert problem.endswith("'other' is not one of the clusters kafka-0, kafka-1, kafka-2, and 997 more")


def test_a_cluster_with_many_brokers_that_refuse_is_described_by_a_few_of_them() -> None:
    failures = [
        Failure(FailureCause.REFUSED, f"bootstrap server kafka-{number}:9092 refuses") for number in range(MANY)
    ]

    assert str(BrokersUnreachable(failures)) == (
        "bootstrap server kafka-0:9092 refuses; bootstrap server kafka-1:9092 refuses; "
        "bootstrap server kafka-2:9092 refuses; and 9,997 more"
    )


# -- tenants --------------------------------------------------------------------------------------------------


def tenants(count: int) -> tuple[Rig, Work]:
    """So many groups, half of them of another namespace; a read of one group, with the estimate of its effort."""
    rules = [{"groups": ".*[13579]", "namespaces": ["payments"]}, {"groups": ".*", "namespaces": ["shipping"]}]
    cluster = many_groups(count)
    cluster.ends = {("orders", 0): 5}
    rig = Rig(cluster, samples.settings(rules=rules))
    rig.run()
    asked, metric = samples.wants(group="group-1"), "kafka_consumergroup_lag"
    return rig, lambda: (rig.metrics.effort(metric, asked, "payments"), rig.metrics.read(metric, asked, "payments"))


def test_the_first_read_of_a_namespace_after_a_cycle_costs_the_same_however_many_groups_there_are() -> None:
    def after_a_cycle(count: int) -> Work:
        rig, read = tenants(count)
        read()
        rig.run()
        return read

    assert work(after_a_cycle(1500)) < 1.2 * work(after_a_cycle(150))


def test_groups_that_were_never_gone_through_for_a_namespace_are_so_off_the_event_loop() -> None:
    rig, _ = tenants(2000)
    efforts: list[int] = []
    estimate = work(
        lambda: efforts.append(
            rig.metrics.effort("kafka_consumergroup_lag", samples.wants(group="group-1"), "payments")
        )
    )

    assert efforts[0] > 1000
    assert estimate < 100
