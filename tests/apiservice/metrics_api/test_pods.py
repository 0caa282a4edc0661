"""Reads of Pods metrics: the values of the members that run in pods."""

import threading
from dataclasses import replace
from typing import Any, ClassVar

import pytest

from adapter.cluster.groups import Assignment, Client, Owned
from adapter.metrics.query import CHEAP_EFFORT, Metrics
from apiservice.pods.pod import Pod
from tests.support import samples
from tests.support.kafka.questions import BILLING
from tests.support.kubernetes.fakes import House
from tests.support.samples import SteppedClock, store_of, view

LAG = "kafka_consumergroup_lag"
ALL = "/apis/custom.metrics.k8s.io/v1beta2/namespaces/shop/pods/*"
SELECTED = "metricLabelSelector=group%3Dbilling"
CLIENTS = (Client("m0", "", "web-0", ""), Client("m1", "", "web-1-a", ""), Client("m2", "", "web-1-b", ""))
"""Two members in one pod."""
ELSEWHERE = Client("m3", "", "worker", "/10.0.0.9")
OWNED = (Owned("m0", "orders", (0,)), Owned("m1", "refunds", (0,)), Owned("m2", "orders", (1,)))
PODS = tuple(Pod(name, {"app": name.partition("-")[0]}, ()) for name in ("web-0", "web-1", "web-2", "mail"))


def house(*clients: Client, pods: tuple[Pod, ...] = PODS, **settings: Any) -> House:  # noqa: ANN401 - of the settings
    clock = SteppedClock()
    known = {"billing": Assignment(clock.monotonic(), clients or CLIENTS, OWNED)}
    store = store_of(replace(view(BILLING), assignments=known))
    metrics = Metrics(samples.settings(**settings), store, clock)
    return House(metrics=metrics, pods={"shop": pods})  # type: ignore[arg-type]  # the real one instead of a fake


def values(house: House, query: str = SELECTED, metric: str = LAG, pods: str = ALL) -> dict[str, str]:
    answer = house.get(f"{pods}/{metric}?{query}")
    assert answer.code == 200, answer
    return {item["describedObject"]["name"]: item["value"] for item in answer.document["items"]}


def test_a_pod_has_the_sum_of_its_members_and_a_pod_without_a_member_is_left_out() -> None:
    assert values(house()) == {"web-0": "3", "web-1": "10"}


def test_a_pods_largest_lag_is_that_of_its_members() -> None:
    assert values(house(), metric="kafka_consumer_fetch_manager_records_lag_max") == {"web-0": "3", "web-1": "10"}


def test_a_member_without_partitions_is_an_explicit_0() -> None:
    assert values(house(*CLIENTS, Client("m4", "", "web-2", ""))) == {"web-0": "3", "web-1": "10", "web-2": "0"}


@pytest.mark.parametrize("selector", ["app%3Dweb", "app", "app%20in%20%28web%2Cmail%29%2C%21x"])
def test_the_labels_of_pods_select_them(selector: str) -> None:
    assert values(house(), f"labelSelector={selector}&{SELECTED}").keys() == {"web-0", "web-1"}


@pytest.mark.parametrize("selector", ["app%3Dmail", "app%20notin%20%28web%29"])
def test_where_no_selected_pod_has_a_member_the_reply_says_how_many_there_are(selector: str) -> None:
    answer = house().get(f"{ALL}/{LAG}?labelSelector={selector}&{SELECTED}")

    assert answer.is_status(404, "none of the 1 selected pods of namespace shop has a member of the group")
    assert answer.document["message"].endswith("which has 3 members, 3 of them in pods of the namespace")


def test_an_item_describes_its_pod_as_kubernetes_names_it() -> None:
    item = house().get(f"{ALL}/{LAG}?{SELECTED}").document["items"][0]

    assert item["describedObject"] == {"kind": "Pod", "namespace": "shop", "name": "web-0", "apiVersion": "v1"}
    assert item["metric"] == {"name": LAG, "selector": {"matchLabels": {"group": "billing"}}}


def test_one_pod_is_read_by_its_name_whatever_its_labels_are() -> None:
    assert values(house(), pods=ALL.replace("*", "web-1"), query=f"labelSelector=app%3Dx&{SELECTED}") == {"web-1": "10"}
    assert house().get(f"{ALL.replace('*', 'web-2')}/{LAG}?{SELECTED}").is_status(404, "none of the 1 selected pods")


def test_a_member_that_runs_elsewhere_counts_for_no_pod() -> None:
    answer = house(ELSEWHERE).get(f"{ALL}/{LAG}?{SELECTED}")

    assert answer.is_status(404, "none of the 4 selected pods of namespace shop has a member")
    assert answer.document["details"]["causes"][0]["reason"] == "NoMember"


def test_pods_that_are_not_known_are_a_503_that_says_what_is_missing() -> None:
    answer = house().get(f"{ALL.replace('shop', 'other')}/{LAG}?{SELECTED}")

    assert answer.is_status(
        503, "the pods of namespace other are not known: the adapter watches them while an HPA there"
    )
    assert answer.document["details"]["causes"][0]["reason"] == "PodsUnknown"


def test_new_pods_count_at_once() -> None:
    """The reply does not wait for the next cycle."""
    growing = house(pods=PODS[:1])
    assert values(growing).keys() == {"web-0"}
    growing.pods["shop"] = PODS  # type: ignore[index]  # a dictionary

    assert values(growing).keys() == {"web-0", "web-1"}


def test_a_namespace_reads_no_pods_of_a_group_that_it_may_not_read() -> None:
    closed = house(tenancy="closed")

    assert closed.get(f"{ALL}/{LAG}?{SELECTED}").is_status(404, "no group 'billing' is known")


def test_reading_pods_is_reviewed_as_getting_the_metric_of_all_pods() -> None:
    asked = house()
    asked.get(f"{ALL}/{LAG}?{SELECTED}")
    (attributes,) = asked.callers.reviewed

    assert (attributes.verb, attributes.resource, attributes.name, attributes.subresource, attributes.namespace) == (
        *("get", "pods", "*", LAG, "shop"),
    )


def test_the_members_of_a_large_group_are_too_many_for_the_event_loop() -> None:
    asked = house(*(Client(f"m{number}", "", f"web-{number}", "") for number in range(501)))
    few, many = house().metrics, asked.metrics

    assert few.effort_of_members(LAG, samples.wants(group="billing"), "shop") < CHEAP_EFFORT  # type: ignore[attr-defined]
    assert many.effort_of_members(LAG, samples.wants(group="billing"), "shop") > CHEAP_EFFORT  # type: ignore[attr-defined]
    assert values(asked).keys() == {"web-0", "web-1", "web-2"}


class Watched(dict[str, str]):
    """Labels that note in which thread they are matched."""

    threads: ClassVar[set[str]] = set()

    def get(self, key: str, default: Any = None) -> Any:  # noqa: ANN401 - as of a dictionary
        self.threads.add(threading.current_thread().name)
        return super().get(key, default)


@pytest.mark.parametrize(("requirements", "is_large"), [(1, False), (250, True)])
def test_many_pods_and_a_long_selector_are_too_much_for_the_event_loop(requirements: int, *, is_large: bool) -> None:
    Watched.threads.clear()
    asked = house(ELSEWHERE, pods=tuple(Pod(f"web-{number}", Watched(), ()) for number in range(100)))
    selector = ",".join(f"!{number}" for number in range(requirements))
    answer = asked.get(f"{ALL}/{LAG}?{SELECTED}&labelSelector={selector}")
    asked.replies.thread.stop(60.0)

    assert answer.is_status(404, "none of the 100 selected pods")
    assert [name.startswith("large-reads") for name in Watched.threads] == [is_large]


def test_a_selector_without_a_group_says_what_is_missing() -> None:
    answer = house().get(f"{ALL}/{LAG}?metricLabelSelector=topic%3Dorders")

    assert answer.is_status(404, "the selector of a metric of pods must name their group")


def test_a_bad_selector_of_pods_is_a_400() -> None:
    assert (
        house().get(f"{ALL}/{LAG}?labelSelector=a%3D%3D%3Db&{SELECTED}").is_status(400, "unable to parse requirement")
    )
