"""A real Prometheus scrapes the adapter: its own metrics and the series of groups, on both ports."""

import contextlib
import json
import re
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest
import yaml

from local.adapter import EXTERNAL_METRICS, SERVER_NAME, Adapter, own_kubeconfig, process
from local.certificates import Pair
from local.kafka.broker import Kafka
from local.kubernetes.control_plane import ControlPlane
from local.manifests.check import MANIFESTS, read
from local.manifests.dashboards import dashboards
from local.processes import wait_until
from local.prometheus import Prometheus, problems_of_metrics, prometheus, shipped_alerts
from tests.support.real import groups_to_read
from tests.support.real.groups_to_read import COMMITS, MESSAGES

PATH = "/metrics/groups"
SECONDS = 180.0
DASHBOARD = (
    "sum(rate(kafka_topic_partition_current_offset{topic=~'$topic'}[1m])) by (topic)",
    "sum(kafka_consumergroup_lag{topic=~'$topic'}) by (consumergroup, topic)",
    "sum(delta(kafka_topic_partition_current_offset{topic=~'$topic'}[5m])/5) by (topic)",
    "sum(delta(kafka_consumergroup_current_offset{topic=~'$topic'}[5m])/5) by (consumergroup, topic)",
    "sum by(topic) (kafka_topic_partitions{topic=~'$topic'})",
)
"""What the dashboard for kafka_exporter that most people use asks for."""
LABEL_VALUES = re.compile(r"label_values\((.+), (\w+)\)")
"""Grafana's function for the values of a variable."""


@pytest.fixture(scope="module")
def scraped(
    control_plane: ControlPlane, one_broker: Kafka, adapter: Adapter, rig_home: Path
) -> Iterator[tuple[Adapter, Prometheus]]:
    """An adapter with series, and a Prometheus with a token that may get the paths. `adapter` has made the groups."""
    del adapter
    home = rig_home / "adapter-with-series"
    settings = groups_to_read.settings(one_broker)
    settings |= {"series": {"by": "partition"}, "history": {"location": f"{home}/history"}}
    token = _token_of_prometheus(control_plane)
    with process(home, settings, own_kubeconfig(control_plane), more_flags={"log-format": "json"}) as running:
        secure: dict[str, Any] = {
            "scheme": "https",
            "authorization": {"credentials": token},
            "tls_config": {"ca_file": str(running.serving.authority), "server_name": SERVER_NAME},
        }
        jobs = [
            _job("plain", running.metrics_port, PATH),
            _job("own", running.metrics_port, "/metrics"),
            _job("secure", running.port, PATH) | secure,
        ]
        wait_until(running.is_ready, "the adapter to be ready", SECONDS, alive=[running.process])
        wait_until(lambda: has_own_series(running), "the groups to be read", SECONDS)
        with prometheus(rig_home / "prometheus", jobs, shipped_alerts(home)) as scraping:
            yield running, scraping


def _job(name: str, port: int, path: str) -> dict[str, Any]:
    return {"job_name": name, "metrics_path": path, "static_configs": [{"targets": [f"127.0.0.1:{port}"]}]}


def _token_of_prometheus(plane: ControlPlane) -> str:
    """Of a ServiceAccount that may get the paths, and nothing else."""
    named: dict[str, Any] = {"name": "prometheus", "namespace": "default"}
    group = "rbac.authorization.k8s.io"
    role = {"rules": [{"nonResourceURLs": ["/metrics", PATH], "verbs": ["get"]}]}
    binding = {
        "roleRef": {"apiGroup": group, "kind": "ClusterRole", "name": "prometheus"},
        "subjects": [{"kind": "ServiceAccount", **named}],
    }
    plane.apply(
        [
            {"apiVersion": "v1", "kind": "ServiceAccount", "metadata": named},
            {"apiVersion": f"{group}/v1", "kind": "ClusterRole", "metadata": {"name": "prometheus"}, **role},
            {"apiVersion": f"{group}/v1", "kind": "ClusterRoleBinding", "metadata": {"name": "prometheus"}, **binding},
        ]
    )
    users = yaml.safe_load(plane.kubeconfig_for_service_account("default", "prometheus").read_text())["users"]
    return str(users[0]["user"]["token"])


def wait_for(scraping: Prometheus, expression: str, expected: dict[tuple[str, ...], float], *labels: str) -> None:
    def is_there() -> bool:
        found = scraping.query(expression)
        return {tuple(each[label] for label in labels): value for each, value in found} == expected

    wait_until(is_there, f"{expression} to be {expected}", SECONDS)


def test_prometheus_has_the_lag_of_each_partition_from_both_ports(scraped: tuple[Adapter, Prometheus]) -> None:
    lags: dict[tuple[str, ...], float] = {
        (job, group, topic, str(partition)): float(MESSAGES.get((topic, partition), 0) - committed)
        for job in ("plain", "secure")
        for group, commits in COMMITS.items()
        for (topic, partition), committed in commits.items()
    }
    expression = f'kafka_consumergroup_lag{{group=~"{"|".join(COMMITS)}"}} and on (job, group, topic, partition) '
    expression += "kafka_consumergroup_committed_offset"

    wait_for(scraped[1], expression, lags, "job", "group", "topic", "partition")


def test_prometheus_has_version_conditions_and_the_time_of_the_last_success(
    scraped: tuple[Adapter, Prometheus],
) -> None:
    _, scraping = scraped
    wait_for(scraping, "count(kafka_lag_adapter_build_info)", {(): 1})
    wait_for(scraping, 'kafka_lag_adapter_condition{condition="values", status="true"}', {("main",): 1}, "cluster")
    wait_for(scraping, "time() - kafka_lag_adapter_last_success_timestamp_seconds < bool 60", {("main",): 1}, "cluster")

    wait_for(scraping, "process_resident_memory_bytes > bool 1e6", {("own",): 1}, "job")


@pytest.mark.parametrize("path", ["/metrics", PATH])
def test_promtool_has_nothing_to_say_of_the_metrics(scraped: tuple[Adapter, Prometheus], path: str) -> None:
    status, text = scraped[0].get_plain(path)

    assert status == 200
    assert b"kafka" in text
    assert problems_of_metrics(text) == ""


def test_the_secure_port_shows_the_series_only_to_who_may_get_the_path(scraped: tuple[Adapter, Prometheus]) -> None:
    status, body = scraped[0].get(PATH)

    assert status == 403
    assert b"kafka_consumergroup" not in body


def test_an_alert_names_each_group_whose_messages_nobody_reads(scraped: tuple[Adapter, Prometheus]) -> None:
    waiting: dict[tuple[str, ...], float] = {(group,): 1 for group in COMMITS}
    names = "|".join((*COMMITS, groups_to_read.IDLE_GROUP))
    firing = f'alertname="KafkaLagAdapterGroupWithoutMembers", alertstate="firing", group=~"{names}"'

    wait_for(scraped[1], f"max by (group) (ALERTS{{{firing}}})", waiting, "group")


def test_the_adapter_has_every_metric_of_the_alerts(scraped: tuple[Adapter, Prometheus]) -> None:
    pages = "".join(scraped[0].get_plain(path)[1].decode() for path in ("/metrics", PATH))
    rules = read(MANIFESTS / "monitoring/prometheus-rule.yaml")["spec"]["groups"][0]["rules"]
    asked = {name for rule in rules for name in re.findall(r"\bkafka_\w+", rule["expr"])}

    assert len(asked) > 15
    assert asked - set(re.findall(r"^# TYPE (\S+) ", pages, re.MULTILINE)) == set()


def test_reads_that_end_in_404_are_counted_by_metric(scraped: tuple[Adapter, Prometheus], administrator: Pair) -> None:
    running, scraping = scraped
    read_of_nobody = f"{EXTERNAL_METRICS}/namespaces/default/kafka_consumergroup_lag?labelSelector=group%3Dledgre"
    assert running.get(read_of_nobody, shown=administrator)[0] == 404

    counted: dict[tuple[str, ...], float] = {("kafka_consumergroup_lag",): 1}
    wait_for(scraping, 'kafka_lag_adapter_reads_total{code="404"}', counted, "metric")


def test_each_line_of_the_log_is_json_with_the_keys_of_the_page(scraped: tuple[Adapter, Prometheus]) -> None:
    lines = [json.loads(line) for line in scraped[0].process.log.read_text().splitlines()]

    assert len(lines) > 3
    assert {frozenset(line) - {"exception"} for line in lines} == {
        frozenset({"time", "level", "logger", "message", "count"})
    }
    assert all(line["count"] >= 1 for line in lines)


def queries_of(dashboard: dict[str, Any]) -> Iterator[str]:
    """Those of panels and variables, for all groups, and each metric, because a query may make 0 of none."""
    for panel in dashboard["panels"]:
        yield from (target["expr"] for target in panel["targets"])
    for variable in dashboard["templating"]["list"]:
        yield from (f"count by ({label}) ({of})" for of, label in LABEL_VALUES.findall(str(variable["query"])))
    yield from sorted(set(re.findall(r"\b(?:kafka|process)_\w+", json.dumps(dashboard))))


def test_every_query_of_the_dashboards_returns_data(scraped: tuple[Adapter, Prometheus]) -> None:
    """A rate is known once the offsets were followed for a minute."""
    queries = [query for dashboard in dashboards(".*").values() for query in queries_of(dashboard)]
    assert len(queries) > 50

    wait_until(lambda: not without_data(scraped[1], queries), "data for every query", 240)


def without_data(scraping: Prometheus, queries: Sequence[str]) -> list[str]:
    return [query for query in queries if not scraping.query(query)]


@contextlib.contextmanager
def changed(running: Adapter, **series: str) -> Iterator[None]:
    """Runs it with other series, which it takes over while it runs; afterwards with the former ones again."""
    before = running.settings.read_text()
    running.settings.write_text(yaml.safe_dump(yaml.safe_load(before) | {"series": series}))
    try:
        yield
    finally:
        running.settings.write_text(before)
        wait_until(lambda: has_own_series(running), "the series of before", SECONDS)


def has_own_series(running: Adapter) -> bool:
    return re.search(rb'[{,]group="ledger"', running.get_plain(PATH)[1]) is not None


def test_in_kafka_exporters_dialect_every_query_of_its_dashboard_returns_data(
    scraped: tuple[Adapter, Prometheus],
) -> None:
    running, scraping = scraped
    queries = [query.replace("$topic", "read-.*") for query in DASHBOARD]
    with changed(running, by="partition", dialect="kafka_exporter"):
        wait_until(lambda: not without_data(scraping, queries), "data for every query", SECONDS)
        of_ledger = "sum(kafka_consumergroup_lag{consumergroup='ledger', topic='read-orders', job='plain'}) by (topic)"
        wait_for(scraping, of_ledger, {("read-orders",): 1064.0}, "topic")

        assert problems_of_metrics(running.get_plain(PATH)[1]) == ""
