"""A cluster with a node that cannot reach the bucket: Spark runs its tasks on the other one."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pyarrow.parquet as pq

from local.processes import scratch, wait_until
from local.spark.cluster import environment, spark_cluster
from tests.support.history.compacting import NOW, compacted
from tests.support.history.real_bucket import RealBucket
from tests.support.history.written_history import sample, write

HOURS = 6
PROGRAM = """
import sys
from datetime import datetime
from spark.engine.session import SparkSettings, started
from spark.pipeline.batches import BatchLimits
from spark.pipeline.compact import compact
from spark.storage.location import files_at

location, master, now = sys.argv[1:]
with started(SparkSettings(master)) as session:
    until = datetime.fromisoformat(now)
    compact(files_at(location), lambda: session, until, until, print, limits=BatchLimits(of_task=1))
"""
SETTINGS = (
    "spark.excludeOnFailure.enabled=true",
    # Otherwise the good node could be done before the bad one is there.
    "spark.cores.max=2",
    "spark.scheduler.minRegisteredResourcesRatio=1.0",
    "spark.scheduler.maxRegisteredResourcesWaitingTime=120s",
    "spark.eventLog.enabled=true",
    "spark.eventLog.compress=false",
)
UNREACHABLE = {"AWS_ENDPOINT_URL": "http://127.0.0.1:1"}


def tables_in(root: Path) -> dict[str, list[dict[str, object]]]:
    paths = sorted(path for name in ("hours", "hourly", "daily") for path in (root / name).rglob("*.parquet"))
    return {str(path.relative_to(root)): pq.ParquetFile(path).read().to_pylist() for path in paths}


def test_tasks_that_fail_on_a_bad_node_are_done_by_another(real_bucket: RealBucket, tmp_path: Path) -> None:
    here, events = tmp_path / "here", tmp_path / "events"
    write(here, [sample(hour * 3600 + at, hour, 2 * hour + at) for hour in range(HOURS) for at in (0, 10)])
    real_bucket.lay(here)
    compacted(here)
    events.mkdir()
    conf = (*SETTINGS, f"spark.eventLog.dir={events.as_uri()}")
    with scratch("spark-cluster") as home, spark_cluster(home, workers=1) as cluster:
        cluster.start_worker(UNREACHABLE)
        wait_until(lambda: cluster.state().get("aliveworkers") == 2, "both workers", 120)
        options = [*cluster.arguments()[2:], *(word for each in conf for word in ("--conf", each)), "pyspark-shell"]
        env = {**environment(), "PYSPARK_SUBMIT_ARGS": " ".join(options)}
        asked = [sys.executable, "-c", PROGRAM, real_bucket.location, cluster.master, NOW.isoformat()]
        ended = subprocess.run(asked, env={**os.environ, **env}, capture_output=True, text=True, check=False)

    assert ended.returncode == 0, ended.stderr
    assert tables_in(real_bucket.folder) == tables_in(here) != {}
    log = [json.loads(line) for path in events.rglob("events_*") for line in path.read_text().splitlines()]
    failed = [event for event in log if event["Event"] == "SparkListenerTaskEnd" and event["Task Info"]["Failed"]]
    assert failed
    assert {event["Task Info"]["Executor ID"] for event in failed} == {failed[0]["Task Info"]["Executor ID"]}
