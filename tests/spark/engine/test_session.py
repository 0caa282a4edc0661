"""Where the archive of loaded classes is kept between runs."""

import os
import time
from pathlib import Path

import pytest

from spark.engine import session


def test_an_archive_that_a_killed_run_left_unfinished_is_deleted_and_that_of_a_running_one_is_not(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("KAFKA_LAG_REPORT_CDS", str(tmp_path))
    abandoned, under_way = tmp_path / ".0123456789abcdef.jsa.4711", tmp_path / ".0123456789abcdef.jsa.4712"
    finished = tmp_path / "0123456789abcdef.jsa"
    for path in (abandoned, under_way, finished):
        path.write_bytes(b"classes")
    for path in (abandoned, finished):
        os.utime(path, times=(time.time() - session.ABANDONED_SECONDS - 1,) * 2)

    assert session._archive() is not None
    assert sorted(tmp_path.iterdir()) == sorted([under_way, finished])
