"""Which HPAs are ours, and what they ask for."""

import tracemalloc
from dataclasses import replace
from typing import Any

import pytest

from adapter.lag.rules import AskedTopics
from adapter.metrics.definitions import SERVED
from adapter.metrics.requirement import Operator, Requirement
from apiservice.autoscalers import followed as followed_module
from apiservice.autoscalers.annotations import MAX_REPLICAS
from apiservice.autoscalers.asked import NamedGroups, asked_topics
from apiservice.autoscalers.autoscaler import (
    LONGEST,
    Autoscaler,
    AutoscalerCondition,
    ScaleTarget,
    Source,
    UsedMetric,
    autoscaler_of,
)
from apiservice.autoscalers.followed import Autoscalers
from tests.support import samples
from tests.support.kubernetes.hpas import LAG, custom, expression, external, hpa

CPU: dict[str, Any] = {"type": "Resource", "resource": {"name": "cpu", "target": {"type": "Utilization"}}}
AGE = "kafka_consumergroup_lag_seconds"
ORDERS = external(group="billing", topic="orders")
ASKED = AskedTopics("shop", None, "billing", ("orders",))
BILLING, MAIL = (AskedTopics("shop", None, group, ()) for group in ("billing", "mail"))
"""No topics: remembered, and nothing more."""


def asked_by(metric: dict[str, Any]) -> frozenset[AskedTopics]:
    autoscaler = autoscaler_of(hpa("consumer", metric), SERVED)
    return frozenset(asked_topics(autoscaler) if autoscaler else ())


class Followed:
    """`Autoscalers`, and what it asked for."""

    def __init__(self) -> None:
        self.names: tuple[str, ...] = (LAG,)
        self.asked: list[frozenset[AskedTopics]] = []
        self.serves_custom = True
        self.autoscalers = Autoscalers(lambda: self.names, self.asked.append, serves_custom=lambda: self.serves_custom)

    def kept(self) -> list[str]:
        return [each.name for each in self.autoscalers.current]


def test_an_hpa_is_kept_with_what_decides_how_it_scales() -> None:
    condition = {"type": "ScalingActive", "status": "False", "reason": "FailedGetExternalMetric", "message": "no"}
    found = autoscaler_of(hpa("consumer", CPU, ORDERS, conditions=[condition]), SERVED)

    selector = tuple(
        Requirement(key, Operator.EQUALS, (value,)) for key, value in (("group", "billing"), ("topic", "orders"))
    )
    assert found == Autoscaler(
        namespace="shop",
        name="consumer",
        target=ScaleTarget("apps/v1", "Deployment", "consumer"),
        metrics=(UsedMetric(Source.EXTERNAL, LAG, selector, "AverageValue", "1k"),),
        minimum=0,
        maximum=9,
        behavior='{"scaleDown": {"stabilizationWindowSeconds": 60}}',
        current_replicas=1,
        desired_replicas=2,
        last_scale_time="",
        conditions=(AutoscalerCondition("ScalingActive", "False", "FailedGetExternalMetric", "no"),),
        annotations={"kafka-lag-adapter/cooldown": "1m"},
        has_other_metrics=True,
    )


@pytest.mark.parametrize("metrics", [[], [CPU], [external("s0-kafka-orders", group="billing", topic="orders")]])
def test_an_hpa_without_a_metric_of_ours_is_not_kept(metrics: list[dict[str, Any]]) -> None:
    assert autoscaler_of(hpa("consumer", *metrics), SERVED) is None


@pytest.mark.parametrize(
    ("metric", "asked"),
    [
        (ORDERS, [ASKED]),
        (external(LAG.upper(), group="billing", topic="orders"), [ASKED]),
        (external("records-lag-max", group="billing", topic="orders"), [ASKED]),
        (external(LAG, expression("topic", "In", "orders"), group="billing"), [ASKED]),
        (external(LAG, expression("partition", "NotIn", "0"), group="billing", topic="orders"), [ASKED]),
        (external(AGE, group="billing", topic="orders", bound="exact"), [ASKED]),
        (
            external(LAG, expression("topic", "In", "returns", "orders"), group="billing", cluster="main"),
            [AskedTopics("shop", "main", "billing", ("orders", "returns"))],
        ),
        (external(group="billing"), [BILLING]),
        (external(topic="orders"), []),
        (external(LAG, expression("group", "In", "billing", "mail"), topic="orders"), [BILLING, MAIL]),
        (external(LAG, expression("topic", "Exists"), group="billing", topic="orders"), [BILLING]),
        (external(LAG, expression("topic", "NotIn", "orders"), group="billing"), [BILLING]),
        (external(LAG, expression("topic", "In", "returns"), group="billing", topic="orders"), [BILLING]),
        (external(group="billing", topic="orders", team="shop"), [BILLING]),
        (external(LAG, expression("topic", "Near", "orders"), group="billing", topic="orders"), []),
    ],
)
def test_a_selector_asks_for_the_groups_that_it_names_and_for_the_topics_of_one_group(
    metric: dict[str, Any], asked: list[AskedTopics]
) -> None:
    assert asked_by(metric) == set(asked)


@pytest.mark.parametrize("source", ["Object", "Pods"])
def test_a_custom_metric_asks_for_the_same_as_the_external_one_and_for_the_members_if_it_is_of_pods(
    source: str,
) -> None:
    for metric in (ORDERS, external(group="billing"), external(LAG, expression("topic", "Exists"), group="billing")):
        expected = {replace(asked, of_members=source == "Pods") for asked in asked_by(metric)}
        assert asked_by(custom(source, metric)) == expected


def test_a_named_metric_of_pods_asks_for_the_members_of_its_group() -> None:
    named = {"billing-backlog": ("main", "Billing Service/eu")}
    found = []
    for source in ("Pods", "Object"):
        autoscaler = autoscaler_of(hpa("consumer", custom(source, external("Billing-Backlog"))), named)
        assert autoscaler is not None
        found.append(asked_topics(autoscaler, named))

    assert found == [(AskedTopics("shop", "main", "Billing Service/eu", (), of_members=True),), ()]


def test_an_hpa_whose_maximum_follows_the_partitions_asks_for_their_number() -> None:
    named = {"billing-backlog": ("main", "Billing Service/eu")}
    document = hpa("consumer", ORDERS, external("billing-backlog"))
    document["metadata"]["annotations"] = {MAX_REPLICAS: "partitions"}
    autoscaler = autoscaler_of(document, {LAG, *named})
    assert autoscaler is not None

    expected = (ASKED, AskedTopics("shop", "main", "Billing Service/eu", ()))
    assert asked_topics(autoscaler, named) == tuple(replace(each, of_partitions=True) for each in expected)


def test_the_namespaces_of_hpas_with_a_metric_of_pods_are_known() -> None:
    followed, pods = Followed(), custom("Pods", ORDERS)
    hpas = [hpa("first", pods), hpa("second", pods, namespace="mail"), hpa("third", ORDERS, namespace="other")]
    followed.autoscalers.listed(iter(hpas))
    assert followed.autoscalers.namespaces_of_pods == {"shop", "mail"}

    followed.autoscalers.changed("DELETED", hpa("first", pods))
    assert followed.autoscalers.namespaces_of_pods == {"mail"}


@pytest.mark.parametrize("source", ["Object", "Pods"])
def test_a_custom_metric_of_our_name_is_anothers_where_none_are_served(source: str) -> None:
    """prometheus-adapter serves metrics of the same names."""
    followed, of_others = Followed(), hpa("other", custom(source, ORDERS))
    followed.serves_custom = False
    followed.autoscalers.listed(iter([of_others, hpa("both", ORDERS, custom(source, ORDERS))]))
    followed.autoscalers.changed("MODIFIED", of_others)
    assert followed.kept() == ["both"]
    assert followed.autoscalers.current[0].has_other_metrics
    assert followed.autoscalers.namespaces_of_pods == set()

    followed.serves_custom = True
    followed.autoscalers.listed(iter([of_others]))
    assert followed.kept() == ["other"]


@pytest.mark.parametrize("source", ["Object", "Pods"])
def test_a_custom_metric_is_kept_with_its_source(source: str) -> None:
    found = autoscaler_of(hpa("consumer", CPU, custom(source, ORDERS)), SERVED)

    assert found is not None
    assert [(one.source, one.name, one.target) for one in found.metrics] == [(source, LAG, "1k")]


def test_what_several_hpas_ask_for_is_passed_on_once() -> None:
    followed = Followed()
    returns = external(group="billing", topic="returns")
    metrics = {"b": returns, "a": ORDERS, "c": returns}
    followed.autoscalers.listed(iter([hpa(name, metric) for name, metric in metrics.items()]))

    assert followed.asked == [{ASKED, AskedTopics("shop", None, "billing", ("returns",))}]


def test_only_what_changes_the_asked_topics_is_passed_on() -> None:
    followed = Followed()
    followed.autoscalers.listed(iter([hpa("first", ORDERS), hpa("other", CPU)]))
    assert followed.asked == [{ASKED}]

    followed.autoscalers.changed("MODIFIED", hpa("first", ORDERS, currentReplicas=5))
    followed.autoscalers.changed("ADDED", hpa("second", ORDERS))
    followed.autoscalers.changed("DELETED", hpa("first", ORDERS))
    assert followed.asked == [{ASKED}]
    assert followed.kept() == ["second"]

    followed.autoscalers.changed("MODIFIED", hpa("second", CPU))
    assert followed.asked == [{ASKED}, set()]
    assert followed.kept() == []


@pytest.mark.parametrize("key", ["cluster", "group", "topic"])
@pytest.mark.parametrize("many", [1000, 2500])
def test_hpas_that_name_a_thousand_things_take_little_memory(key: str, many: int) -> None:
    count, of_5000 = 500, 10 * 2**20
    named = expression(key, "In", *(f"{number:x}" for number in range(many)))
    others = {each: "a" for each in ("cluster", "group", "topic") if each != key}
    followed = Followed()
    tracemalloc.start()
    try:
        hpas = (hpa(f"consumer-{number}", external(LAG, named, **others)) for number in range(count))
        followed.autoscalers.listed(hpas)
        followed.autoscalers.changed("ADDED", hpa("first", ORDERS))
        assert tracemalloc.get_traced_memory()[0] < of_5000 * count / 5000
    finally:
        tracemalloc.stop()
    assert followed.asked[-1] == {ASKED}


def test_an_hpa_whose_metrics_name_more_than_20_things_is_logged_once(caplog: pytest.LogCaptureFixture) -> None:
    ten, eleven = (external(LAG, expression("topic", "In", *map(str, range(count)))) for count in (10, 11))
    followed = Followed()
    followed.autoscalers.listed(iter([hpa("full", ten, ten), hpa("crowded", ten, eleven)]))
    followed.autoscalers.changed("MODIFIED", hpa("crowded", ten, eleven))

    assert followed.kept() == ["full"]
    assert [record.getMessage().partition(":")[0] for record in caplog.records] == ["HPA shop/crowded is ignored"]


def test_a_change_of_one_hpa_looks_at_no_other(monkeypatch: pytest.MonkeyPatch) -> None:
    followed, looked_at = Followed(), list[str]()

    def counted(autoscaler: Autoscaler, _named_groups: NamedGroups) -> tuple[AskedTopics, ...]:
        looked_at.append(autoscaler.name)
        return asked_topics(autoscaler)

    monkeypatch.setattr(followed_module, "asked_topics", counted)
    followed.autoscalers.listed(iter([hpa("first", ORDERS), hpa("second", ORDERS)]))
    looked_at.clear()
    followed.autoscalers.changed("MODIFIED", hpa("second", external(group="billing", topic="returns")))

    assert looked_at == ["second"]
    assert followed.asked[-1] == {ASKED, AskedTopics("shop", None, "billing", ("returns",))}


def test_a_longer_hpa_is_not_kept() -> None:
    long = expression("topic", "In", "x" * LONGEST)
    assert autoscaler_of(hpa("consumer", external(LAG, long, group="billing")), SERVED) is None


def test_a_list_replaces_what_was_known_by_the_names_in_force() -> None:
    followed, named = Followed(), external("Billing-Backlog", group="billing", topic="orders")
    cluster = [hpa("first", ORDERS), hpa("second", named)]
    followed.autoscalers.listed(iter(cluster))
    assert followed.kept() == ["first"]

    followed.names = ("billing-backlog",)
    followed.autoscalers.listed(iter(cluster))

    assert followed.kept() == ["second"]
    assert followed.asked == [{ASKED}]


def with_replicas(name: str, replicas: int, *metrics: dict[str, Any]) -> dict[str, Any]:
    made = hpa(name, *metrics)
    return {**made, "status": {**made["status"], "currentReplicas": replicas}}


def test_the_replicas_of_a_group_are_those_of_all_targets_whose_hpas_read_its_metrics() -> None:
    followed = Followed()
    followed.autoscalers.listed(iter([with_replicas("one", 3, ORDERS), with_replicas("two", 4, ORDERS)]))

    assert followed.autoscalers.replicas_of("main", "billing") == 7
    assert followed.autoscalers.replicas_of("main", "mail") is None


def test_the_replicas_of_a_group_follow_the_status_of_its_hpa_until_it_is_deleted() -> None:
    followed = Followed()
    followed.autoscalers.listed(iter([with_replicas("one", 3, ORDERS)]))

    followed.autoscalers.changed("MODIFIED", with_replicas("one", 5, ORDERS))
    grown = followed.autoscalers.replicas_of("main", "billing")
    followed.autoscalers.changed("DELETED", with_replicas("one", 5, ORDERS))

    assert (grown, followed.autoscalers.replicas_of("main", "billing")) == (5, None)


def test_the_replicas_of_a_group_in_another_cluster_are_not_its_own() -> None:
    followed = Followed()
    in_eu = external(group="billing", topic="orders", cluster="eu")
    followed.autoscalers.listed(iter([with_replicas("one", 3, in_eu)]))

    assert followed.autoscalers.replicas_of("main", "billing") is None
    assert followed.autoscalers.replicas_of("eu", "billing") == 3


@pytest.mark.parametrize("metric", [ORDERS, external(group="billing"), external("required")])
def test_an_hpa_whose_namespace_may_not_read_the_group_does_not_count(metric: dict[str, Any]) -> None:
    """Neither by its selector nor by a named metric; others could change the number of replicas by an HPA of theirs."""
    settings = samples.settings(
        rules=[{"group": "billing", "namespaces": ["billing"]}],
        metrics=[{"name": "required", "value": "lag", "group": "billing", "namespaces": ["accounts"]}],
    )
    metrics = samples.Answers([samples.view({})], settings).metrics
    autoscalers = Autoscalers(
        lambda: (LAG, "required"), lambda _: None, lambda: metrics.named_groups, may_read=metrics.may_read
    )
    made = with_replicas("one", 3, metric)
    in_namespaces = ("billing", "accounts", "shop")
    autoscalers.listed(iter([made | {"metadata": made["metadata"] | {"namespace": each}} for each in in_namespaces]))

    assert autoscalers.replicas_of("main", "billing") == 3


def test_a_named_metric_has_the_replicas_of_its_group() -> None:
    autoscalers = Autoscalers(lambda: ("required",), lambda _: None, lambda: {"required": (None, "billing")})
    autoscalers.listed(iter([with_replicas("one", 3, external("required"))]))

    assert autoscalers.replicas_of("main", "billing") == 3
