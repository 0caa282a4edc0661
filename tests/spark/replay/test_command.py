import json
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import yaml

from spark.replay.minutes import COLUMNS, Minutes
from spark.tables import layout
from tests.support.history.compacting import asked, in_process
from tests.support.history.minutes import read_by
from tests.support.hpas import Json, document, external

DAY = np.arange(1440)
WAVE = read_by(60 * (100 + 80 * np.sin(DAY / 1440 * 2 * np.pi)), np.full(1440, 3.0), 50.0)
IDLE = read_by(np.full(1440, 600.0), np.full(1440, 3.0), 50.0)
LAG = "kafka_consumergroup_lag"


def lag_of(group: str, *, topic: str = "orders", metric: str = LAG) -> Json:
    selector = {"matchLabels": {"group": group, "topic": topic}}
    target = {"type": "AverageValue", "averageValue": "3000"}
    return {"type": "External", "external": {"metric": {"name": metric, "selector": selector}, "target": target}}


def history(folder: Path, **groups: Minutes) -> Path:
    """A day of these groups on cluster `main`, each of which reads the topic `orders` with 12 partitions."""
    names = {"cluster": ["main"] * len(groups), "group": [*groups], "topic": ["orders"] * len(groups)}
    hours = {
        "hour": np.full(len(groups), np.datetime64("2026-11-01T23:00", "us")),
        "partitions": np.full(len(groups), 12, np.int32),
    }
    write(folder, layout.hourly_table("2026-11-01"), {**names, **hours, "expected_samples": [360] * len(groups)})
    rows = {
        "cluster": ["main"] * sum(map(len, groups.values())),
        "group": [name for name, minutes in groups.items() for _ in range(len(minutes))],
        "minute": np.concatenate([minutes.start.astype("datetime64[us]") for minutes in groups.values()]),
        **{name: np.concatenate([getattr(each, name) for each in groups.values()]) for name in COLUMNS},
    }
    write(folder, layout.minutes_table("2026-11-01"), rows)
    return folder


def write(folder: Path, path: str, columns: dict[str, object]) -> None:
    """Numbers that are not known are null."""
    file = folder / path
    file.parent.mkdir(parents=True, exist_ok=True)
    arrays = {name: pa.array(column, from_pandas=True) for name, column in columns.items()}
    if "minute" in arrays or "hour" in arrays:
        name = "minute" if "minute" in arrays else "hour"
        arrays[name] = arrays[name].cast(pa.timestamp("us", "UTC"))
    pq.write_table(pa.table(arrays), file, row_group_size=500)


def hpa_file(folder: Path, *metrics: Json, most: int = 12) -> Path:
    file = folder / "hpa.yaml"
    file.write_text(yaml.safe_dump(document(*(metrics or [lag_of("billing")]), most=most)))
    return file


def replayed(place: Path, hpa: Path, *more: str, group: str = "billing") -> tuple[int, list[str]]:
    return asked("replay", "--history", str(place), "--group", group, "--hpa", str(hpa), *more, session=in_process)


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return history(tmp_path_factory.mktemp("history"), billing=WAVE, idle=IDLE)


def test_a_replay_says_what_was_and_what_would_have_been(place: Path, tmp_path: Path) -> None:
    status, _ = replayed(place, hpa_file(tmp_path), "--max-wait", "2m", "--output", str(tmp_path))
    text, result = (tmp_path / "replay.txt").read_text(), json.loads((tmp_path / "replay.json").read_text())

    assert status == 0
    assert "The replay reproduces what happened. A member reads 50" in text
    assert "With hpa.yaml from the start" in text
    assert (result["version"], result["minutes"], result["calibration"]["fits"]) == ("kafka-lag-replay/1", 1440, True)
    assert result["capacity"]["messages_per_second"] == pytest.approx(50, rel=0.02)
    assert result["with_hpa"]["wait_p95"] < 0.1 * result["calibration"]["observed"]["wait_p95"]
    assert result["with_hpa"]["minutes_above"] < result["calibration"]["observed"]["minutes_above"]
    assert result["calibration"]["observed"]["replica_hours"] == 72
    assert result["with_an_oracle"]["replica_hours"] < result["with_kedas_defaults"]["replica_hours"]
    assert "KEDA's defaults  an oracle" in text


def test_its_page_has_three_charts_of_both_courses(place: Path, tmp_path: Path) -> None:
    replayed(place, hpa_file(tmp_path), "--output", str(tmp_path / "out"))
    page = (tmp_path / "out" / "replay.html").read_text()

    assert page.count("<svg") == 3
    assert page.count('class="line made"') == page.count('class="line used"') == 3


def test_without_a_place_nothing_is_written(place: Path, tmp_path: Path) -> None:
    before = sorted(place.rglob("*"))
    status, _ = replayed(place, hpa_file(tmp_path))

    assert (status, sorted(place.rglob("*"))) == (0, before)


def test_fewer_replicas_than_there_were_wait_longer(place: Path, tmp_path: Path) -> None:
    replayed(place, hpa_file(tmp_path, most=1), "--output", str(tmp_path))
    result = json.loads((tmp_path / "replay.json").read_text())

    assert result["with_hpa"]["replica_hours"] == 24
    assert result["with_hpa"]["wait_p95"] > result["calibration"]["observed"]["wait_p95"]


@pytest.mark.parametrize(
    ("metrics", "group", "more", "sentence"),
    [
        ([], "biling", [], "--group biling: the range has no such group; did you mean 'billing'?"),
        ([], "billing", ["--cluster", "eu"], "--group billing: the range has no such group on cluster 'eu'"),
        ([lag_of("billing")], "idle", [], "scales on group 'billing', not on the lag of group 'idle'"),
        ([lag_of("billing", topic="other")], "billing", [], "scales on topic 'other'"),
        ([lag_of("billing", metric="queue")], "billing", [], "scales on 'queue', not on the lag of group 'billing'"),
        ([lag_of("idle")], "idle", [], "what a member can do is not known"),
        ([{"type": "Resource"}], "billing", [], "spec.metrics[0].type: is 'Resource'; must be 'External' or 'Object'"),
        ([], "billing", ["--from", "2026-12-01"], "the range has no such group"),
        ([], "billing", ["--max-wait", "soon"], "--max-wait: is 'soon'; must be a duration"),
        ([], "billing", ["--from", "2026-11-02", "--to", "2026-11-01"], "--from 2026-11-02 is not before --to"),
    ],
)
def test_what_cannot_be_replayed_ends_with_one_sentence(
    metrics: list[Json], group: str, more: list[str], sentence: str, place: Path, tmp_path: Path
) -> None:
    status, lines = replayed(place, hpa_file(tmp_path, *metrics), *more, group=group)

    assert status == 2
    assert sentence in lines[-1]


def test_a_history_without_minutes_asks_for_compaction(tmp_path: Path) -> None:
    status, lines = replayed(tmp_path, hpa_file(tmp_path))

    assert (status, "holds no minutes: run `compact` first" in lines[-1]) == (2, True)


def test_a_file_that_is_not_there_is_named(place: Path, tmp_path: Path) -> None:
    status, lines = replayed(place, tmp_path / "none.yaml")

    assert (status, "none.yaml: No such file or directory" in lines[-1]) == (2, True)


def test_a_named_metric_without_selector_is_taken_for_the_groups_lag(place: Path, tmp_path: Path) -> None:
    status, _ = replayed(place, hpa_file(tmp_path, external(average="3000", name="billing-backlog")))

    assert status == 0
