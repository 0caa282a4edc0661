"""The document of HPAs that the history keeps: enough to replay each, and nothing of those that cannot be."""

import json
from collections.abc import Iterable
from typing import Any

import pytest

from adapter.history.notes import Note
from adapter.verdicts.hpa import hpa_of
from apiservice.autoscalers.autoscaler import Autoscaler, autoscaler_of
from apiservice.autoscalers.record import record_of
from tests.support import samples
from tests.support.kubernetes.hpas import LAG, custom, expression, external, hpa
from tests.support.samples import Answers

NOW = 1_795_003_000.0
SETTINGS = samples.settings(
    rules=[
        {"group": "secret", "namespaces": ["treasury"]},
        {"group": "billing", "topics": ["orders"], "objective": {"maxWait": "30s", "capacityHint": 60}},
    ],
    metrics=[
        {"name": "billing-backlog", "value": "lag", "cluster": "main", "group": "billing", "topics": ["orders"]},
        {
            "name": "billing-number",
            "value": "required_replicas",
            "group": "billing",
            "topics": ["orders"],
            "replicas": {"maxWait": "2m", "capacityHint": 60},
        },
        {"name": "billing-age", "value": "lag_seconds", "group": "billing", "topics": ["orders"]},
    ],
)
METRICS = Answers([], SETTINGS).metrics
ORDERS = external(group="billing", topic="orders")
REQUIRED = "kafka_consumergroup_required_replicas"


def seen(*hpas: Any) -> list[Autoscaler]:  # noqa: ANN401 - JSON
    return [one for each in hpas if (one := autoscaler_of(each, {*map(str.lower, METRICS.names)})) is not None]


def record(hpas: Iterable[Autoscaler]) -> Note:
    return record_of(hpas, ["main"], METRICS, NOW)


def entries(*hpas: Any) -> list[dict[str, Any]]:  # noqa: ANN401 - JSON
    found: list[dict[str, Any]] = json.loads(record(seen(*hpas)).text)["autoscalers"]
    return found


def as_written(entry: dict[str, Any]) -> dict[str, Any]:
    return {"apiVersion": "autoscaling/v2", "kind": "HorizontalPodAutoscaler", "spec": entry["spec"]}


def test_an_hpa_is_written_with_what_decides_how_it_scales() -> None:
    document = json.loads(record(seen(hpa("consumer", ORDERS))).text)

    assert document == {
        "seenAt": "2026-11-18T11:56:40Z",
        "clusters": ["main"],
        "autoscalers": [
            {
                "cluster": None,
                "group": "billing",
                "topics": ["orders"],
                "values": ["lag"],
                "maxWaitSeconds": None,
                "namespace": "shop",
                "name": "consumer",
                "currentReplicas": 1,
                "spec": {
                    "scaleTargetRef": {"apiVersion": "apps/v1", "kind": "Deployment", "name": "consumer"},
                    "minReplicas": 0,
                    "maxReplicas": 9,
                    "metrics": [
                        {
                            "type": "External",
                            "external": {
                                "metric": {
                                    "name": LAG,
                                    "selector": {"matchLabels": {"group": "billing", "topic": "orders"}},
                                },
                                "target": {"type": "AverageValue", "averageValue": "1k"},
                            },
                        }
                    ],
                    "behavior": {"scaleDown": {"stabilizationWindowSeconds": 60}},
                },
            }
        ],
    }


@pytest.mark.parametrize(
    "metric",
    [
        ORDERS,
        external(LAG, expression("topic", "In", "refunds", "orders"), group="billing"),
        custom("Object", ORDERS),
        external("billing-backlog"),
    ],
)
def test_what_is_written_is_the_hpa_for_who_replays_it(metric: dict[str, Any]) -> None:
    given = hpa("consumer", metric)
    (entry,) = entries(given)
    parsed, original = hpa_of(as_written(entry)), hpa_of({**as_written(entry), "spec": given["spec"]})

    assert parsed.model_dump(exclude={"metrics"}) == original.model_dump(exclude={"metrics"})
    assert [each.source.target for each in parsed.metrics] == [each.source.target for each in original.metrics]
    assert parsed.metrics[0].source.metric.name == original.metrics[0].source.metric.name


def test_of_a_named_metric_the_group_topics_and_value_are_those_of_the_settings() -> None:
    ((of_lag,), (of_age,)) = (entries(hpa("consumer", external(name))) for name in ("billing-backlog", "Billing-Age"))

    assert [of_lag[key] for key in ("cluster", "group", "topics", "values")] == ["main", "billing", ["orders"], ["lag"]]
    assert [of_age[key] for key in ("cluster", "values")] == [None, ["lag_seconds"]]


@pytest.mark.parametrize(
    ("metrics", "seconds"),
    [
        ([ORDERS], None),
        ([external(REQUIRED, group="billing", topic="orders")], 30),
        ([external("billing-number")], 120),
        ([external("billing-number"), external(REQUIRED, group="billing", topic="orders")], None),
    ],
    ids=["a lag", "by the rule", "by the named metric", "one of each"],
)
def test_of_a_number_that_keeps_a_promise_it_is_written_how_long_a_message_may_wait(
    metrics: list[Any], seconds: float | None
) -> None:
    ((entry),) = entries(hpa("consumer", *metrics))

    assert entry["maxWaitSeconds"] == seconds


@pytest.mark.parametrize(
    "metrics",
    [
        [external(LAG, topic="orders")],
        [external(LAG, expression("group", "In", "billing", "mail"))],
        [ORDERS, external(group="mail")],
        [ORDERS, {"type": "Resource", "resource": {"name": "cpu", "target": {"type": "Utilization"}}}],
        [custom("Pods", ORDERS)],
        [external(group="secret")],
    ],
    ids=["no group", "two groups", "a group each", "another metric", "of pods", "a group of others"],
)
def test_an_hpa_that_nobody_can_replay_or_that_may_not_read_its_group_is_left_out(metrics: list[Any]) -> None:
    assert entries(hpa("consumer", *metrics)) == []
    assert record(seen(hpa("consumer", *metrics))).is_empty


def test_an_hpa_that_scaled_changes_the_document_and_is_no_reason_to_write_it() -> None:
    before, after, edited = (
        record(seen(hpa("consumer", metric, currentReplicas=replicas)))
        for metric, replicas in ((ORDERS, 1), (ORDERS, 5), (external(group="billing", topic="refunds"), 5))
    )

    assert before.text != after.text
    assert before.essence == after.essence != edited.essence
