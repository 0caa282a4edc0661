"""A cluster with a node that cannot reach the bucket: Spark runs its tasks on the other one."""

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
UNREACHABLE = {"AWS_ENDPOINT_URL": "http://127.0.0.1:1"}


def tables_in(root: Path) -> dict[str, list[dict[str, object]]]:
    paths = sorted(path for name in ("hours", "hourly", "daily") for path in (root / name).rglob("*.parquet"))
    return {str(path.relative_to(root)): pq.ParquetFile(path).read().to_pylist() for path in paths}


def test_a_node_that_cannot_reach_the_bucket_ends_no_run(real_bucket: RealBucket, tmp_path: Path) -> None:
    here = tmp_path / "here"
    write(here, [sample(hour * 3600 + at, hour, 2 * hour + at) for hour in range(HOURS) for at in (0, 10)])
    real_bucket.lay(here)
    compacted(here)
    with scratch("spark-cluster") as home, spark_cluster(home, workers=1) as cluster:
        cluster.start_worker(UNREACHABLE)
        wait_until(lambda: cluster.state().get("aliveworkers") == 2, "both workers", 120)
        options = [*cluster.arguments()[2:], "--conf", "spark.excludeOnFailure.enabled=true", "pyspark-shell"]
        env = {**environment(), "PYSPARK_SUBMIT_ARGS": " ".join(options)}
        asked = [sys.executable, "-c", PROGRAM, real_bucket.location, cluster.master, NOW.isoformat()]
        ended = subprocess.run(asked, env={**os.environ, **env}, capture_output=True, text=True, check=False)

    assert ended.returncode == 0, ended.stderr
    assert tables_in(real_bucket.folder) == tables_in(here) != {}
