"""From samples, as the adapter writes them, to a replay."""

import json
from pathlib import Path

import numpy as np
import pytest
import yaml

from tests.support.history.compacting import asked, compacted, in_process
from tests.support.history.written_history import Row, sample, write
from tests.support.hpas import document, external

PARTITIONS, MEMBERS, ABLE = 4, 2, 50.0
RATES = np.repeat([60.0, 130.0, 20.0], 3600)
"""Messages/s over three hours: for one of them, more than two members that do 50/s each can read."""


def samples_of_two_members() -> list[Row]:
    """Every 10 s. Each member reads two partitions, one message as well as another, and commits every 5 s."""
    ends, read, committed = (np.zeros(PARTITIONS) for _ in range(3))
    rows = []
    for second, rate in enumerate(RATES.tolist()):
        ends += rate / PARTITIONS
        waiting = (ends - read).reshape(MEMBERS, -1)
        shares = np.minimum(1, ABLE / np.maximum(waiting.sum(axis=1, keepdims=True), 1e-9))
        read += (waiting * shares).ravel()
        if second % 5 == 4:
            committed = read.copy()
        if second % 10 == 9:
            rows += [
                sample(second + 1, int(committed[at]), int(ends[at]), partition=at, members=MEMBERS)
                for at in range(PARTITIONS)
            ]
    return rows


def test_what_members_did_is_reproduced_from_their_samples(tmp_path: Path) -> None:
    write(tmp_path, samples_of_two_members())
    compacted(tmp_path)
    file = tmp_path / "hpa.yaml"
    file.write_text(yaml.safe_dump(document(external(average="2000"), most=PARTITIONS)))

    status, _ = asked(
        *("replay", "--history", str(tmp_path), "--group", "billing", "--hpa", str(file), "--output", str(tmp_path)),
        session=in_process,
    )
    result = json.loads((tmp_path / "replay.json").read_text())
    calibration = result["calibration"]

    assert status == 0
    assert result["capacity"]["messages_per_second"] == pytest.approx(ABLE, rel=0.02)
    assert calibration["fits"]
    assert calibration["replayed"]["wait_p95"] == pytest.approx(calibration["observed"]["wait_p95"], rel=0.05)
    assert calibration["observed"]["wait_p95"] > 600  # 108,000 messages too many in an hour, at 100/s
    assert result["with_hpa"]["wait_p95"] < 120
