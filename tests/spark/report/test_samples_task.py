"""How the totals of a range are cut into tasks, and what of the files a task reads."""

from datetime import datetime, timedelta
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from spark.errors import Unusable
from spark.report.samples_task import LAGS, SLICE_ROWS, WORTHWHILE_ROWS, ExpectedSamples, Slice, folded, slices_of
from spark.storage.local import LocalFiles
from tests.spark.folds.test_lag_statistics import SCHEMA, START, sample

FILES = LocalFiles(Path("nowhere"))


def topics(*samples: int) -> list[ExpectedSamples]:
    """A group of two topics for each number."""
    return [
        ExpectedSamples(("main", f"g{number}", topic), 1, of // 2)
        for number, of in enumerate(samples)
        for topic in ("a", "b")
    ]


def groups_of(slices: list[Slice]) -> list[list[str]]:
    return [sorted({key[1] for key in each.keys}) for each in slices]


def test_a_small_range_is_one_slice_also_without_a_sample() -> None:
    for of in (topics(10, 20, 30), topics(0), []):
        slices = slices_of(FILES, LAGS, [("hour",)], of, at_once=8)

        assert [each.keys for each in slices] == ([tuple(topic.key for topic in of)] if of else [])


def test_every_core_gets_about_as_many_rows_of_whole_groups() -> None:
    slices = slices_of(FILES, LAGS, [], topics(*[WORTHWHILE_ROWS] * 5), at_once=2)

    assert groups_of(slices) == [["g0", "g1"], ["g2", "g3", "g4"]]


def test_slices_are_bounded_however_few_run_at_once_unless_one_group_is_larger() -> None:
    slices = slices_of(FILES, LAGS, [], topics(*[SLICE_ROWS // 2] * 6, 3 * SLICE_ROWS), at_once=1)

    assert groups_of(slices) == [["g0", "g1"], ["g2", "g3"], ["g4", "g5"], ["g6"]]


def written(folder: Path, hour: datetime) -> str:
    """Three groups, each in a group of rows of its own."""
    rows = [sample("t", 0, 60) | {"group": group, "sampled_at": hour} for group in ("a", "b", "c")]
    path = folder / f"{hour:%H}.parquet"
    pq.write_table(pa.Table.from_pylist(rows, SCHEMA), path, row_group_size=1)
    return path.name


def test_a_task_reads_no_row_group_of_others(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    paths = tuple(written(tmp_path, START + timedelta(hours=number)) for number in range(2))
    read: list[list[int]] = []
    real = pq.ParquetFile.read_row_groups

    def noted(file: pq.ParquetFile, groups: list[int], names: list[str]) -> pa.Table:
        read.append(groups)
        return real(file, groups, names)

    monkeypatch.setattr(pq.ParquetFile, "read_row_groups", noted)
    keys = (("main", "b", "t"), ("main", "bb", "t"))
    found = folded(Slice(LocalFiles(tmp_path), LAGS, tuple((path,) for path in paths), keys, (1, 1)))

    assert read == [[1], [1]]
    assert [[row["samples"] for row in topics] for topics in found["topics"].to_pylist()] == [[2], [0]]


def test_a_file_that_cannot_be_read_is_named(tmp_path: Path) -> None:
    (tmp_path / "torn.parquet").write_bytes(b"PAR1")

    with pytest.raises(Unusable, match=r"torn\.parquet cannot be read: "):
        folded(Slice(LocalFiles(tmp_path), LAGS, (("torn.parquet",),), (("main", "b", "t"),), (1,)))
