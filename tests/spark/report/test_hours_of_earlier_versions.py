"""Hours that an earlier version compacted lack columns: what these would say is not known, and never 0."""

import shutil
from datetime import datetime, timedelta
from pathlib import Path

import pyarrow.parquet as pq
import pytest
from pyspark.sql import SparkSession

from spark.advice.assessment import Report, Standing
from spark.report.build import report, requested
from spark.storage.local import LocalFiles
from tests.support.history.compacting import compacted
from tests.support.history.planted_faults import HOURS, LENGTH, Partition, Plant, partitions, steady, until
from tests.support.history.written_history import START, paths_of, write

LATER_COLUMNS = {"totals": ("waiting", "waiting_consumed"), "partitions": ("moved_at", "uncommitted_lag", "owner")}
OLD_HOURS = 20
"""Of the mixed history; the hours after them have every column."""
PLANTS = (
    Plant("busy", tuple(Partition("orders", number, consumed=steady(8)) for number in range(4))),
    Plant("stuck", partitions("orders", 4, p1=Partition("orders", 1, consumed=until(25 * 60, steady(100))))),
    Plant("new", partitions("orders", 2, p1=Partition("orders", 1, is_committed=False, offset_reset="earliest"))),
)


@pytest.fixture(scope="module")
def made(spark_session: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> dict[str, Report]:
    """Of a history whose first hours are old, of one with old hours alone, and of one without any."""
    root = tmp_path_factory.mktemp("versions")
    write(root / "whole", [row for plant in PLANTS for row in plant.rows()])
    compacted(root / "whole")
    for name, hours in (("mixed", OLD_HOURS), ("old", HOURS)):
        shutil.copytree(root / "whole", root / name)
        for table, columns in LATER_COLUMNS.items():
            for path in paths_of(root / name, table)[:hours]:
                pq.write_table(pq.read_table(path, partitioning=None).drop_columns(list(columns)), path)
    return {name: reported(root / name, spark_session) for name in ("whole", "mixed", "old")} | {
        "since": reported(root / "whole", spark_session, START + timedelta(hours=OLD_HOURS))
    }


def reported(history: Path, session: SparkSession, since: datetime | None = None) -> Report:
    times = (since.isoformat() if since else None, None)
    request = requested(str(history), str(history / "report"), times, "UTC", START + LENGTH)
    return report(request, LocalFiles(history), lambda: session, lambda _: None, lambda: None)


def of(made: Report, group: str) -> Standing:
    (found,) = (standing for standing in made.standings if standing.group.name == group)
    return found


def test_a_capacity_is_learned_from_the_hours_that_can_show_one(made: dict[str, Report]) -> None:
    """Four partitions are read at 8/s each by two members."""
    mixed, since, old = (of(made[name], "busy").advice.load.capacity for name in ("mixed", "since", "old"))

    assert mixed is not None
    assert since is not None
    assert mixed.windows == since.windows > 0
    assert mixed.p50 == pytest.approx(16, rel=0.01)
    assert old is None


def test_without_an_hour_that_can_show_a_capacity_no_target_is_recommended(made: dict[str, Report]) -> None:
    advice = of(made["old"], "busy").advice

    assert advice.hpa.target.value is None
    assert advice.load.at_least == pytest.approx(16, rel=0.01)


def test_figures_that_need_no_later_column_are_of_the_whole_range(made: dict[str, Report]) -> None:
    lags = {name: [it.group.topics[0].lag for it in made[name].standings] for name in ("whole", "mixed", "old")}

    assert lags["whole"] == lags["mixed"] == lags["old"]


@pytest.mark.parametrize("name", ["whole", "mixed", "old"])
def test_a_partition_that_stands_still_is_found_in_old_hours_as_well(made: dict[str, Report], name: str) -> None:
    """Without `moved_at`, it is not known when in the hour before it stopped."""
    first, still = of(made[name], "stuck").advice.findings[0], of(made[name], "stuck").group.topics[0].still

    assert still is not None
    assert (first.code, still.partitions, still.is_exact) == ("stuck", (1,), name != "old")


def test_what_waits_without_a_commit_is_as_the_newest_hour_says(made: dict[str, Report]) -> None:
    whole, mixed, old = (of(made[name], "new") for name in ("whole", "mixed", "old"))

    assert whole.group.topics[0].uncommitted_lag == mixed.group.topics[0].uncommitted_lag == 10 * 3600 * HOURS + 1000
    assert [it.code for it in mixed.advice.findings] == [it.code for it in whole.advice.findings]
    assert "uncommitted" not in {it.code for it in old.advice.findings}
