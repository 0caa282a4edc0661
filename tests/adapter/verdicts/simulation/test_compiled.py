"""Each runs in a process of its own, because numba reads its settings once."""

import os
import subprocess
import sys
import zipfile
from pathlib import Path

import adapter

CODE = """
import numpy as np
from adapter.records import records_of
from adapter.verdicts.simulation import compiled
from adapter.verdicts.simulation.groups import LaneRecord, MemberRecord, PartitionRecord
from adapter.verdicts.simulation.reading import settle

lanes = records_of(LaneRecord, 1)
lanes["seconds"], lanes["others"], lanes["members"], lanes["width"] = 2.0, 3.0, 0, 2
partitions = records_of(PartitionRecord, 1, 2)
partitions["weight"][0, 1] = 1.0
settle(lanes, records_of(MemberRecord, 1), partitions, 0)
print(compiled.IS_KEPT, settle.stats.cache_hits.total(), partitions["waiting"].tolist())
"""


def run(cache: Path, sources: Path = Path(adapter.__file__).parents[1]) -> str:
    environment = {**os.environ, "NUMBA_CACHE_DIR": str(cache), "PYTHONPATH": str(sources)}
    ended = subprocess.run(
        [sys.executable, "-c", CODE], env=environment, capture_output=True, text=True, check=False, cwd="/"
    )
    assert ended.returncode == 0, ended.stderr
    return ended.stdout.strip()


def test_what_was_compiled_once_is_loaded_by_the_next_process(tmp_path: Path) -> None:
    assert run(tmp_path) == "True 0 [[0.0, 6.0]]"
    assert run(tmp_path) == "True 1 [[0.0, 6.0]]"


def test_kernels_run_where_nothing_can_be_written(tmp_path: Path) -> None:
    """A file in place of the folder stops also root, whom no permission does."""
    (tmp_path / "file").touch()

    assert run(tmp_path / "file") == "False 0 [[0.0, 6.0]]"


def test_kernels_run_out_of_a_zip_file(tmp_path: Path) -> None:
    """As they do in executors of Spark."""
    sources = Path(adapter.__file__).parents[1]
    with zipfile.ZipFile(tmp_path / "code.zip", "w") as archive:
        for file in sources.joinpath("adapter").rglob("*.py"):
            archive.write(file, file.relative_to(sources))

    assert run(tmp_path / "cache", tmp_path / "code.zip") == "False 0 [[0.0, 6.0]]"
