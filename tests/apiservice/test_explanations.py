"""The lag of a group explained over HTTP: to readers of everything, and to those of one namespace."""

import asyncio
import json
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import pytest

from adapter.cluster.groups import Assignment, Client, Owned
from adapter.metrics.definitions import SERVED
from adapter.metrics.problems import NoMatch
from adapter.metrics.query import Metrics
from apiservice import explanations
from apiservice.autoscalers.autoscaler import Autoscaler, autoscaler_of
from apiservice.explanations import explained, text_of
from apiservice.pods.pod import Pod
from tests.support.kubernetes.fakes import V1BETA1, Answer, FakeCallers, House
from tests.support.kubernetes.hpas import LAG, custom, external, hpa
from tests.support.samples import Key, Row, SteppedClock, row, settings, store_of, view

ROWS = {("billing", "orders", 0): row(0, 12_000), ("mail", "orders", 0): row(1, 10)}
PATH = f"{V1BETA1}/namespaces/shop/{LAG}/billing"


def autoscalers(*documents: dict[str, Any]) -> list[Autoscaler]:
    found = (autoscaler_of(each, {*SERVED, "billing-backlog"}) for each in documents)
    return [each for each in found if each is not None]


def text(
    hpas: Sequence[Autoscaler] = (), namespace: str | None = None, rows: Mapping[Key, Row] = ROWS, **parts: object
) -> str:
    given, clock = settings(**parts), SteppedClock()
    metrics = Metrics(given, store_of(view(rows, settings=given)), clock)
    return text_of(explained("billing", metrics, given, clock, hpas, namespace))


class Door(House):
    """The HTTPS port with explanations of real metrics."""

    def __post_init__(self) -> None:
        super().__post_init__()
        given, clock = settings(rules=[{"group": "billing", "namespaces": ["shop"]}]), SteppedClock()
        metrics = Metrics(given, store_of(view(ROWS, settings=given)), clock)
        hpas = autoscalers(
            hpa("consumer", external(group="billing")), hpa("other", external(group="billing"), namespace="x")
        )
        self.open(lambda group, namespace: explained(group, metrics, given, clock, hpas, namespace))

    def open(self, explain: explanations.Explain) -> None:
        self.app = self.app_with(lambda replies: (explanations.routes(explain, replies),))


def ask(target: str, callers: FakeCallers | None = None) -> Answer:
    return Door(callers=callers or FakeCallers()).get(target)


def test_the_text_has_the_paragraph_the_rule_every_metric_and_every_partition() -> None:
    lines = text().splitlines()

    assert lines[0].startswith("Group billing in cluster main has a lag of 12000 messages.")
    assert lines[2].startswith("rule: no rule: every topic with a commit counts")
    assert "kafka_consumergroup_lag: 12000" in lines
    assert lines[-1].split() == ["orders/0", "ok", "0", "12000", "12000", "0s", "-"]


def test_each_hpa_that_asks_has_the_arithmetic_beside_its_status() -> None:
    shown = text(autoscalers(hpa("consumer", external(group="billing"), currentReplicas=6, desiredReplicas=7)))

    assert shown[shown.index("HPA ") :].splitlines() == [
        "HPA shop/consumer scales Deployment/consumer from 0 to 9 replicas",
        "  reads kafka_consumergroup_lag: 12000 (target AverageValue 1k)",
        "  ratio of value and target with 6 replicas: 2",
        "  by the metric and the tolerance: 12",
        "  minReplicas and maxReplicas make it 9",
        "  so a controller that has just started desires 9",
        "  its status: 6 replicas now, 7 desired",
    ]


def test_a_large_lag_and_its_ratio_have_all_their_digits() -> None:
    rows = {("billing", "orders", 0): row(0, 12_345_678)}
    shown = text(autoscalers(hpa("consumer", external(group="billing"), currentReplicas=1)), rows=rows)

    assert "  reads kafka_consumergroup_lag: 12345678 (target AverageValue 1k)" in shown
    assert "  ratio of value and target with 1 replica: 12346" in shown


def test_an_hpa_on_a_named_metric_of_the_group_asks_for_it() -> None:
    named = [{"name": "billing-backlog", "value": "lag", "group": "billing"}]
    shown = text(
        autoscalers(hpa("consumer", external("Billing-Backlog")), hpa("x", external(group="mail"))), metrics=named
    )

    assert "  reads Billing-Backlog: 12000 (target AverageValue 1k)" in shown
    assert "HPA shop/x" not in shown


def test_what_an_hpa_reads_may_be_refused() -> None:
    shown = text(autoscalers(hpa("consumer", external(group="billing", topic="refunds"))))

    assert "  reads kafka_consumergroup_lag: no topic 'refunds' is known" in shown


def test_a_pods_metric_of_an_unwatched_namespace_says_so() -> None:
    shown = text(autoscalers(hpa("consumer", custom("Pods", external(group="billing")))))

    assert f"  reads {LAG}: lag of group billing is not known: which partitions its members own is not known" in shown


def of_pods(lags: Sequence[int], current: int) -> str:
    """What is shown of an HPA with a Pods metric, each of whose pods has one partition."""
    names = [f"consumer-{number}" for number in range(len(lags))]
    owned = tuple(Owned(name, "orders", (number,)) for number, name in enumerate(names))
    given, clock = settings(), SteppedClock()
    assignment = Assignment(clock.monotonic(), tuple(Client(name, "", name, "") for name in names), owned)
    made = view({("billing", "orders", number): row(0, lag) for number, lag in enumerate(lags)}, settings=given)
    metrics = Metrics(given, store_of(replace(made, assignments={"billing": assignment})), clock)
    hpas = autoscalers(hpa("consumer", custom("Pods", external(group="billing")), currentReplicas=current))
    pods = [Pod(name, {}, ()) for name in names]
    return text_of(explained("billing", metrics, given, clock, hpas, pods_in=lambda _: pods))


def test_a_pods_metric_has_the_arithmetic_of_the_mean_over_its_pods() -> None:
    shown = of_pods([3000, 1500], current=2)

    assert f"  reads {LAG}: 4500 of 2 pods (target AverageValue 1k)" in shown
    assert "  ratio of value and target with 2 replicas: 2.25" in shown
    assert "  by the metric and the tolerance: 5" in shown


def test_a_pods_metric_is_not_followed_while_a_replica_has_no_value() -> None:
    shown = of_pods([3000, 1500], current=3)

    assert "  which is not followed, because not every replica has a value" in shown
    assert "ratio" not in shown


def test_a_group_that_only_hpas_name_is_explained_with_them() -> None:
    rows = {**ROWS, ("new", "orders", 0): row(None, 12_000)}
    made = view(rows, assumed=frozenset({"new"}), asked=frozenset({("new", "orders")}))
    given, clock = settings(), SteppedClock()
    metrics = Metrics(given, store_of(made), clock)
    hpas = autoscalers(hpa("consumer", external(group="new", topic="orders"), currentReplicas=6))

    shown = text_of(explained("new", metrics, given, clock, hpas, "shop"))
    assert "  reads kafka_consumergroup_lag: 12000 (target AverageValue 1k)" in shown
    with pytest.raises(NoMatch):
        explained("new", metrics, given, clock, hpas, "mall")


def test_conditions_of_the_hpa_are_shown() -> None:
    condition = {"type": "ScalingLimited", "status": "True", "reason": "TooManyReplicas", "message": "more\nthan"}
    shown = text(autoscalers(hpa("consumer", external(group="billing"), conditions=[condition])))

    assert "  ScalingLimited True: TooManyReplicas: more than" in shown


def test_a_reader_of_everything_sees_the_hpas_of_all_namespaces() -> None:
    answer = ask("/explain/billing")

    assert (answer.code, answer.headers["content-type"]) == (200, "text/plain; charset=utf-8")
    assert b"HPA shop/consumer" in answer.body
    assert b"HPA x/other" in answer.body


def test_below_the_api_group_a_reader_sees_the_hpas_of_the_namespace_alone() -> None:
    body = ask(PATH).body

    assert b"HPA shop/consumer" in body
    assert b"HPA x/other" not in body


def test_the_review_is_that_of_reading_the_metric() -> None:
    callers = FakeCallers()
    ask(PATH, callers)

    (attributes,) = callers.reviewed
    assert (attributes.verb, attributes.resource, attributes.namespace) == ("get", LAG, "shop")
    assert ask(PATH, FakeCallers(allowed=frozenset())).code == 403
    assert ask("/explain/billing", FakeCallers(allowed=frozenset({("get", LAG)}))).code == 403


def test_a_group_of_others_is_unknown_in_another_namespace() -> None:
    assert ask(PATH.replace("shop", "mall")).is_status(404, "no group 'billing' is known; known groups are mail")


def test_json_has_the_same() -> None:
    document = ask(f"{PATH}?output=json").document

    (group,), (autoscaler,) = document["groups"], document["hpas"]
    assert (group["group"], group["partitions"][0]["lag"], autoscaler["arithmetic"]["asked"]) == ("billing", 12_000, 12)


@pytest.mark.parametrize("group", ["Mail%20Service/eu", "a%2Fb"])
def test_names_with_slashes_are_names(group: str) -> None:
    seen: list[str] = []

    def explain(name: str, _: str | None) -> explanations.Explained:
        seen.append(name)
        return explanations.Explained((), ())

    door = Door()
    door.open(explain)
    assert asyncio.run(door.asked("GET", f"/explain/{group}")).code == 200
    assert asyncio.run(door.asked("GET", PATH.replace("billing", group))).code == 200
    assert seen == [{"Mail%20Service/eu": "Mail Service/eu", "a%2Fb": "a/b"}[group]] * 2
    assert json.loads(asyncio.run(door.asked("GET", f"/explain/{group}?output=json")).body) == {
        "groups": [],
        "hpas": [],
    }
