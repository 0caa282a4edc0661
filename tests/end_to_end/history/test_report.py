"""A real broker -> the adapter's history -> compact -> report, with the numbers that the test itself produced."""

import csv
from collections import defaultdict
from datetime import UTC, datetime, timedelta
from pathlib import Path
from statistics import mean

import pytest
from pyspark.sql import SparkSession

from local import adapter
from local.kafka.broker import Kafka
from local.kafka.tools import commit, create_topic, produce
from spark.pipeline.compact import compact
from spark.storage.local import LocalFiles
from tests.end_to_end.history.test_history import kept, wait_for_sample
from tests.support.history.compacting import reported
from tests.support.kubernetes.fake_cluster import kubeconfig_text

TOPIC, GROUP = "reported-orders", "reporter"


def covered_seconds(root: Path) -> float:
    """From a partition's first sample to its last one, on average."""
    times: dict[int, list[datetime]] = defaultdict(list)
    for row in kept(root):
        if row["state"] != "unknown":
            times[row["partition"]].append(row["sampled_at"])
    return mean((max(each) - min(each)).total_seconds() for each in times.values())


def test_the_report_has_the_numbers_that_were_produced(
    one_broker: Kafka, spark_session: SparkSession, tmp_path: Path
) -> None:
    create_topic(one_broker, TOPIC, 2)
    commit(one_broker, GROUP, {(TOPIC, 0): 0, (TOPIC, 1): 0})
    kubeconfig = tmp_path / "kubeconfig"
    kubeconfig.write_text(kubeconfig_text(port=1))
    root, output = tmp_path / "history", tmp_path / "report"
    settings = {
        "clusters": [{"name": "main", "bootstrapServers": one_broker.bootstrap_servers.split(",")}],
        "collection": {"interval": "1s", "maxAge": "10s", "groups": {"include": [GROUP]}},
        "history": {"location": str(root), "flushInterval": "1h"},
        "series": {"by": "topic"},
    }
    with adapter.process(tmp_path / "adapter", settings, kubeconfig) as running:
        wait_for_sample(running, 0)
        produce(one_broker, TOPIC, 30, 0)
        produce(one_broker, TOPIC, 20, 1)
        wait_for_sample(running, 50)
        commit(one_broker, GROUP, {(TOPIC, 0): 30, (TOPIC, 1): 5})
        wait_for_sample(running, 15)
    later = datetime.now(UTC) + timedelta(hours=2)
    compact(LocalFiles(root), lambda: spark_session, later, later, lambda _: None)
    reported(root, output, spark_session, later)
    (row,) = csv.DictReader((output / "groups.csv").read_text().splitlines())

    assert (row["group"], row["topic"], row["produced"], row["consumed"]) == (GROUP, TOPIC, "50", "35")
    assert (row["lag_max"], row["lag_last"]) == ("50", "15")
    for messages, rate in ((50, row["production_rate"]), (35, row["consumption_rate"])):
        assert float(rate) == pytest.approx(messages / covered_seconds(root), rel=0.01)
    assert row["skew"] == "0.6"
    assert row["partitions"] == "2"
