"""Reads of single metrics: what comes back, and how long a reply is kept."""

import pytest

from adapter.metrics.aggregation import MetricValue
from adapter.metrics.problems import NoMatch, Problem, Reason, ValueUnavailable
from tests.support.kubernetes.fakes import (
    LAG,
    LAG_OF_ORDERS,
    MEASURED_AT,
    NAMESPACE,
    FakeMetrics,
    House,
    ask,
    plain_port,
)


def test_a_value_is_served_as_the_autoscaler_decodes_it() -> None:
    answer = House().get(f"{LAG}?labelSelector=group%3Dbilling%2Ctopic+in+%28orders%29")

    assert answer.code == 200
    assert answer.document == {
        "kind": "ExternalMetricValueList",
        "apiVersion": "external.metrics.k8s.io/v1beta1",
        "metadata": {},
        "items": [
            {
                "metricName": "kafka_consumergroup_lag",
                "metricLabels": {"cluster": "main", "group": "billing", "topic": "orders"},
                "timestamp": "2026-11-21T11:48:29Z",
                "value": "42",
            }
        ],
    }
    assert answer.headers == {
        "content-type": "application/json",
        "cache-control": "no-cache, private",
        "x-content-type-options": "nosniff",
        "content-length": str(len(answer.body)),
    }


def test_a_selector_reaches_the_metrics_as_its_requirements() -> None:
    house = House()
    house.get(f"{LAG}?labelSelector=topic%21%3Da%2Cgroup%3Dbilling")

    ((metric, requirements),) = house.metrics.asked
    assert metric == "kafka_consumergroup_lag"
    assert [(one.key, one.only, one.matches("billing")) for one in requirements] == [
        ("group", frozenset({"billing"}), True),
        ("topic", None, True),
    ]


def test_namespaces_with_different_rights_share_no_reply() -> None:
    house = House(metrics=FakeMetrics({"kafka_consumergroup_lag": (LAG_OF_ORDERS,)}, tenants=frozenset({"shop"})))
    for path in (LAG, LAG.replace("shop", "audit"), LAG.replace("shop", "office"), LAG):
        house.get(path)

    assert house.metrics.namespaces == ["shop", "audit"]


def test_a_reply_made_while_the_settings_change_is_not_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    """Its audience may be that of the old settings, and its groups those of the new ones."""
    house = House()
    before = house.metrics.audience_of

    def changes(namespace: str) -> frozenset[str] | None:
        house.metrics.version += 1
        monkeypatch.setattr(house.metrics, "audience_of", before)
        return before(namespace)

    monkeypatch.setattr(house.metrics, "audience_of", changes)
    for _ in range(3):
        house.get(LAG)

    assert len(house.metrics.asked) == 2


@pytest.mark.parametrize("asked", ["billing-backlog", "Billing-Backlog", "BILLING-BACKLOG"])
def test_a_metric_is_echoed_as_discovery_lists_it(asked: str) -> None:
    house = House(metrics=FakeMetrics({"billing-backlog": (LAG_OF_ORDERS,)}))

    assert house.get(f"{NAMESPACE}/{asked}").document["items"][0]["metricName"] == "Billing-Backlog"


@pytest.mark.parametrize(
    "query",
    [
        "limit=1",
        "limit=-1",
        "limit=007&limit=x",
        "continue=abc",
        "pretty=true",
        "resourceVersion=x",
        "timeoutSeconds=-5",
        "watch=false",
        "watch=0",
        "fieldSelector=",
        "a=%zz",
        "unknown=1&&=&x",
        "labelSelector=",
    ],
)
def test_parameters_without_meaning_for_metrics_change_nothing(query: str) -> None:
    assert House().get(f"{LAG}?{query}").body == House().get(LAG).body


@pytest.mark.parametrize(
    ("query", "message"),
    [
        ("limit=x", 'parsing "x": invalid syntax'),
        ("limit=&watch=true", 'parsing "": invalid syntax'),
        ("limit=x&timeoutSeconds=1e3", 'parsing "1e3": invalid syntax'),
        ("timeoutSeconds=%201&labelSelector=!!", 'parsing " 1": invalid syntax'),
        ("limit=%D9%A1", 'parsing "\\u0661": invalid syntax'),
        (f"limit={2**63}", f'parsing "{2**63}": value out of range'),
        (f"limit={'9' * 6000}", "value out of range"),
    ],
)
def test_numbers_that_are_none_are_refused_in_kube_apiservers_words(query: str, message: str) -> None:
    answer = House().get(f"{LAG}?{query}")

    assert answer.is_status(400, "strconv.ParseInt: ")
    assert answer.document["message"].endswith(message)


def test_an_explicit_zero_is_a_value() -> None:
    house = House(metrics=FakeMetrics({"kafka_consumergroup_lag": (MetricValue({}, 0, MEASURED_AT),)}))

    assert house.get(LAG).document["items"][0]["value"] == "0"


@pytest.mark.parametrize(
    ("error", "code"),
    [
        (ValueUnavailable("lag of group billing is 95 s old, limit 60 s"), 503),
        (NoMatch("no group payments; near it: billing"), 404),
    ],
)
def test_a_value_that_is_not_served_says_why(error: Exception, code: int) -> None:
    house = House(metrics=FakeMetrics({"kafka_consumergroup_lag": error}))

    answer = house.get(LAG)

    assert answer.is_status(code, str(error))
    assert "details" not in answer.document


def test_a_refused_read_has_the_problems_as_causes() -> None:
    problems = [
        Problem(Reason.IN_DOUBT, "the group has not been described as Stable", "main", "billing", "orders"),
        *[Problem(Reason.NOT_READ_YET, "broker 2 does not answer", "main", "g" * 30_000, partition=3)] * 1009,
    ]
    house = House(metrics=FakeMetrics({"kafka_consumergroup_lag": ValueUnavailable("no value", problems)}))
    doubt, unread, *_, others = house.get(LAG).document["details"]["causes"]

    assert doubt == {
        "reason": "InDoubt",
        "message": "the group has not been described as Stable",
        "field": "cluster=main,group=billing,topic=orders",
    }
    assert len(unread["field"]) < 300
    assert unread["field"].endswith("ggg,partition=3")
    assert others == {"message": "and 1,000 more"}


def test_an_internal_error_is_a_status_without_secrets(caplog: pytest.LogCaptureFixture) -> None:
    house = House(metrics=FakeMetrics({"kafka_consumergroup_lag": ZeroDivisionError("password=secret")}))

    answer = house.get(LAG)

    assert answer.is_status(500, "Internal error occurred: ZeroDivisionError")
    assert b"secret" not in answer.body
    assert answer.document["details"]["causes"] == [{"message": "ZeroDivisionError"}]
    assert "ZeroDivisionError" in caplog.text


def test_a_fault_behind_another_route_is_a_status_too() -> None:
    def broken() -> tuple[bytes, str]:
        raise RuntimeError("password=secret")

    answer = ask(plain_port(exposition=broken), "GET", "/metrics")

    assert answer.is_status(500, "Internal error occurred: RuntimeError")
    assert b"secret" not in answer.body


def test_a_message_that_is_no_text_is_served_all_the_same() -> None:
    house = House(metrics=FakeMetrics({"kafka_consumergroup_lag": ValueUnavailable('half a letter: \udce9 "\n')}))

    assert house.get(LAG).is_status(503, 'half a letter: ? "\n')


def test_a_message_about_an_endless_name_is_cut_in_its_middle() -> None:
    error = ValueUnavailable(f"lag of group {'g' * 30_000} is not known: broker 2 does not answer")
    message = House(metrics=FakeMetrics({"kafka_consumergroup_lag": error})).get(LAG).document["message"]

    assert len(message) < 4200
    assert message.startswith("lag of group ggg")
    assert message.endswith("ggg is not known: broker 2 does not answer")


def test_warnings_are_in_a_header() -> None:
    house = House()
    house.metrics.warnings = ('groups left out: "a"', "grün")

    assert house.get(LAG).headers["warning"] == '299 - "groups left out: \\"a\\"", 299 - "gr?n"'


def test_reads_are_counted_by_metric_and_code() -> None:
    house = House()
    house.get(LAG)
    house.get(LAG.upper().replace("/APIS/EXTERNAL.METRICS.K8S.IO/V1BETA1/NAMESPACES/SHOP", NAMESPACE))
    house.get(f"{LAG}?labelSelector=,")
    house.get(f"{NAMESPACE}/nope")
    house.get(LAG, authorization="")
    house.get("/apis")
    house.get("/nowhere")

    lag = "kafka_consumergroup_lag"
    assert house.counted == [(lag, 200), (lag, 200), (lag, 400), ("other", 404), (lag, 403)]


# Kept replies


def test_a_reply_is_given_again_while_nothing_newer_is_known() -> None:
    house = House()
    first, second = house.get(LAG), house.get(LAG)

    assert (first, len(house.metrics.asked)) == (second, 1)


def test_a_new_snapshot_ends_a_kept_reply() -> None:
    house = House()
    house.get(LAG)
    house.metrics.version = 2
    house.metrics.answers = {"kafka_consumergroup_lag": (MetricValue({}, 7000, MEASURED_AT),)}

    assert house.get(LAG).document["items"][0]["value"] == "7"


def test_a_kept_reply_ends_when_its_value_grows_too_old() -> None:
    house = House()
    house.get(LAG)
    house.metrics.answers = {"kafka_consumergroup_lag": ValueUnavailable("61 s old")}
    house.clock.seconds = 1059.9
    assert house.get(LAG).code == 200

    house.clock.seconds = 1060.0
    assert house.get(LAG).is_status(503, "61 s old")


def test_replies_of_other_questions_are_not_mixed_up() -> None:
    names = ("kafka_consumergroup_lag", "billing-backlog")
    house = House(metrics=FakeMetrics(dict.fromkeys(names, (LAG_OF_ORDERS,))))
    targets = [LAG, f"{LAG}?labelSelector=group%3Da", f"{LAG}?labelSelector=group%3Db", f"{NAMESPACE}/billing-backlog"]
    for target in [*targets, *targets]:
        house.get(target)

    assert len(house.metrics.asked) == len(targets)


def test_a_kept_reply_is_for_the_allowed_only() -> None:
    house = House()
    house.get(LAG)

    assert house.get(LAG, authorization="").is_status(403, "kafka_consumergroup_lag.external")
    assert house.ask("POST", LAG).is_status(405, "the server does not allow")


def test_an_error_is_never_kept() -> None:
    house = House(metrics=FakeMetrics({"kafka_consumergroup_lag": ValueUnavailable("not yet")}))
    house.get(LAG)
    house.metrics.answers = {"kafka_consumergroup_lag": (LAG_OF_ORDERS,)}

    assert house.get(LAG).code == 200
