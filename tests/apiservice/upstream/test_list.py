"""The metrics that another server lists, merged with ours."""

import json
from pathlib import Path

import pytest

from adapter.conditions import Conditions
from apiservice.upstream import live
from local.processes import wait_until
from tests.support.kubernetes.authorities import Authority
from tests.support.kubernetes.beside import NAME, Beside
from tests.support.kubernetes.fakes import V1BETA1, House
from tests.support.kubernetes.other_server import VALUES, Answer, OtherServer

RESOURCES = [{"name": name} for name in ("queue", "Billing-BACKLOG", "a/b", "", "queue", "x y", 7)]
LIST = json.dumps({"kind": "APIResourceList", "resources": [*RESOURCES, "rubbish"]}).encode()


def test_its_list_is_merged_ours_win_and_the_last_one_is_kept(beside: Beside) -> None:
    ours = ("kafka_consumergroup_lag", "billing-backlog")
    assert beside.upstreams.names_beside(ours) == ours
    beside.other.answer = Answer(body=LIST)
    beside.upstream.list_metrics()
    assert beside.upstreams.names_beside(ours) == (*ours, "queue")

    for answer in (Answer(body=b"{}"), Answer(500, b'{"message":"broken"}'), Answer(length=1000)):
        beside.other.answer = answer
        beside.upstream.list_metrics()
        assert beside.upstreams.names_beside(ours) == (*ours, "queue")
        assert beside.upstream.problem.startswith(NAME)
    beside.other.answer = Answer(body=LIST)
    beside.upstream.list_metrics()
    assert beside.upstream.problem == ""


def test_a_thread_renews_the_list_and_logs_what_changes(
    beside: Beside, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level("INFO", "adapter.conditions")
    monkeypatch.setattr(live, "LOOK_SECONDS", 0.01)
    conditions = Conditions()
    renewing = beside.upstreams_with(conditions)
    beside.other.answer = Answer(500, b"")
    renewing.start()
    try:
        wait_until(
            lambda: "does not list its metrics: status 500, no reason" in caplog.text, "the failure in the log", 60
        )
        wait_until(
            lambda: [each.message for each in conditions.current] == ["requests to it fail"], "the condition", 60
        )
        beside.other.answer = Answer(body=LIST)
        beside.clock.seconds += live.LIST_SECONDS
        wait_until(lambda: renewing.names_beside(()) != (), "the list", 60)
        wait_until(lambda: "upstream: Available: " in caplog.text, "its recovery in the log", 60)
        beside.settings = None
        wait_until(lambda: not conditions.current, "no condition of an upstream", 60)
    finally:
        renewing.stop(60)
    assert len(caplog.records) == 2


def test_a_changed_authority_is_taken_up(beside: Beside, tmp_path: Path) -> None:
    beside.read()
    renewed = Authority("renewed-ca")
    with OtherServer(tmp_path, renewed) as other:
        beside.settings = beside.settings_with(port=other.port)
        assert "an authority that is not trusted here" in beside.refusal()
        beside.ca_file.write_text(renewed.pem)
        other.answer = Answer(body=LIST)
        beside.upstream.list_metrics()
        other.answer = Answer()

        assert beside.read() == VALUES
        beside.ca_file.unlink()
        beside.upstream.list_metrics()
        assert "cannot be verified: caFile" in beside.upstream.problem
        assert beside.read() == VALUES


def test_discovery_lists_the_upstreams_metrics(beside: Beside) -> None:
    beside.other.answer = Answer(body=LIST)
    beside.upstream.list_metrics()
    house = House(upstreams=(beside.upstreams,))
    listed = [each["name"] for each in house.get(V1BETA1).document["resources"]]

    assert listed == ["kafka_consumergroup_lag", "Billing-Backlog", "queue"]
    aggregated = "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList"
    group, _ = house.get("/apis", accept=aggregated).document["items"]
    assert [each["resource"] for each in group["versions"][0]["resources"]] == listed
