"""`replay` on a compacted history."""

import json
from datetime import timedelta
from pathlib import Path

import numpy as np
import pytest
import yaml

from tests.support.history.compacting import asked, compacted, in_process, no_session
from tests.support.history.planted_weeks import END, Clock, Read, write_weeks
from tests.support.history.seen_documents import entry, write
from tests.support.hpas import Json, document, external

RULE = "# | rules:\n# |   - group: billing\n# |     topics: [orders]\n# |     replicas: {lagPerReplica: 3000}\n"
TWO_DAYS = Clock(days=2, interval=60)
PARTITIONS, MEMBERS = 12, 3
WAVE = (100 + 80 * np.sin(TWO_DAYS.at / 86_400 * 2 * np.pi)) / PARTITIONS
"""Messages/s: 20 to 180 in all partitions, read by three members that do 50 each."""
LAG, REPLICAS = "kafka_consumergroup_lag", "kafka_consumergroup_replicas"
REQUIRED = "kafka_consumergroup_required_replicas"


def lag_of(group: str, *, topic: str = "orders", metric: str = LAG, average: str = "3000") -> Json:
    selector = {"matchLabels": {"group": group, "topic": topic}}
    target = {"type": "AverageValue", "averageValue": average}
    return {"type": "External", "external": {"metric": {"name": metric, "selector": selector}, "target": target}}


def hpa_file(folder: Path, *metrics: Json, most: int = 12) -> Path:
    file = folder / "hpa.yaml"
    file.write_text(yaml.safe_dump(document(*(metrics or [lag_of("billing")]), most=most)))
    return file


def written(folder: Path) -> Path:
    """Of `idle`, no member was ever saturated; `huge` has more partitions than are replayed."""
    able = 50.0 * MEMBERS / PARTITIONS
    reads = [
        *(Read("billing", TWO_DAYS, WAVE, able, partition=each, members=MEMBERS) for each in range(PARTITIONS)),
        Read("idle", TWO_DAYS, 10.0, 100.0),
        *(Read("huge", Clock(days=1, interval=3600), 1.0, partition=each) for each in range(1001)),
    ]
    write_weeks(folder, reads)
    compacted(folder, until=END)
    return folder


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return written(tmp_path_factory.mktemp("history"))


def replayed(place: Path, hpa: Path | None, *more: str, group: str = "billing") -> tuple[int, list[str]]:
    given = () if hpa is None else ("--hpa", str(hpa))
    return asked("replay", "--history", str(place), "--group", group, *given, *more, session=in_process)


def test_a_replay_says_what_was_and_what_would_have_been(place: Path, tmp_path: Path) -> None:
    before = sorted(place.rglob("*"))
    status, _ = replayed(place, hpa_file(tmp_path), "--max-wait", "2m", "--output", str(tmp_path))
    text, result, page = ((tmp_path / f"replay.{kind}").read_text() for kind in ("txt", "json", "html"))
    result = json.loads(result)

    assert (status, sorted(place.rglob("*"))) == (0, before)
    assert "The replay reproduces what happened. A member reads 50" in text
    assert "With hpa.yaml from the start  " in text
    assert result["hpa_max_wait_seconds"] is None
    assert (result["version"], result["minutes"], result["calibration"]["fits"]) == ("kafka-lag-replay/1", 2880, True)
    assert result["capacity"]["messages_per_second"] == pytest.approx(50, rel=0.02)
    assert result["with_hpa"]["wait_p95"] < 0.1 * result["calibration"]["observed"]["wait_p95"]
    assert result["with_hpa"]["minutes_above"] < result["calibration"]["observed"]["minutes_above"]
    assert result["calibration"]["observed"]["replica_hours"] == pytest.approx(144, rel=0.01)
    assert result["with_an_oracle"]["replica_hours"] < result["with_kedas_defaults"]["replica_hours"]
    assert "KEDA's defaults  an oracle" in text
    assert page.count("<svg") == 3
    assert ">30\u202fmin</text>" in page
    assert "members, or wanted by the HPA, mean of 9 min" in page
    assert page.count('class="line made"') == page.count('class="line used"') == 3


def test_a_threshold_that_is_reached_sooner_than_the_wait_is_the_limit_as_in_a_report(
    place: Path, tmp_path: Path
) -> None:
    """The busiest hour brings 180 messages/s, nearly."""
    file = hpa_file(tmp_path)
    (tmp_path / "groups.yaml").write_text("groups:\n  - group: billing\n    threshold: 5400\n")
    limits = []
    for given in (("--threshold", "5400"), ("--groups", str(tmp_path / "groups.yaml"))):
        asked("report", "--history", str(place), "--output", str(tmp_path), *given, session=in_process)
        replayed(place, file, "--output", str(tmp_path), *given)
        (of_report,) = (
            of["replay"]["calibration"]["observed"]["minutes_above"]
            for of in json.loads((tmp_path / "report.json").read_text())["groups"]
            if of["group"] == "billing"
        )
        result = json.loads((tmp_path / "replay.json").read_text())
        limits.append(result["max_wait_seconds"])
        assert result["calibration"]["observed"]["minutes_above"] == of_report

    assert limits == pytest.approx([30, 30], rel=0.02)


def test_a_named_metric_without_selector_is_taken_for_the_groups_lag(place: Path, tmp_path: Path) -> None:
    """With fewer replicas than there were, messages wait longer."""
    file = hpa_file(tmp_path, external(average="3000", name="billing-backlog"), most=1)
    replayed(place, file, "--output", str(tmp_path))
    result = json.loads((tmp_path / "replay.json").read_text())

    assert result["with_hpa"]["replica_hours"] == pytest.approx(48, rel=0.01)
    assert result["with_hpa"]["wait_p95"] > result["calibration"]["observed"]["wait_p95"]


def test_a_number_of_replicas_by_the_lag_is_replayed_as_the_hpa_that_divides_the_lag_itself(
    place: Path, tmp_path: Path
) -> None:
    results = []
    for metric, rule in ((lag_of("billing"), ""), (lag_of("billing", metric=REPLICAS, average="1"), RULE)):
        file = hpa_file(tmp_path, metric, most=10)
        file.write_text(f"{rule}{file.read_text()}")
        status, _ = replayed(place, file, "--output", str(tmp_path))
        assert status == 0
        results.append(json.loads((tmp_path / "replay.json").read_text())["with_hpa"])

    assert results[1]["replica_hours"] == pytest.approx(results[0]["replica_hours"], rel=0.05)


def test_a_replay_says_for_which_wait_the_number_was_computed_if_it_is_not_the_limit(
    place: Path, tmp_path: Path
) -> None:
    file = hpa_file(tmp_path, lag_of("billing", metric=REQUIRED, average="1"))
    promise = "# | rules:\n# |   - group: billing\n# |     topics: [orders]\n# |     objective: {maxWait: 90s}\n"
    file.write_text(f"{promise}{file.read_text()}")
    said = {}
    for limit in ("2m", "90s"):
        replayed(place, file, "--max-wait", limit, "--output", str(tmp_path))
        text, result, page = ((tmp_path / f"replay.{kind}").read_text() for kind in ("txt", "json", "html"))
        words = "With hpa.yaml from the start, for a wait of 1\u202fmin 30\u202fs"
        said[limit] = (words in text, words in page, json.loads(result)["hpa_max_wait_seconds"])

    assert said == {"2m": (True, True, 90), "90s": (False, False, 90)}


def test_without_a_file_the_hpa_that_the_adapter_saw_last_is_replayed(place: Path, tmp_path: Path) -> None:
    seen = END - timedelta(hours=2)
    write(place, seen - timedelta(hours=1), entry(12))
    write(place, seen, entry(1), entry(12, values=["lag_seconds"]), entry(12, topics=["refunds"]))
    status, _ = replayed(place, None, "--output", str(tmp_path))
    result = json.loads((tmp_path / "replay.json").read_text())

    assert (status, result["hpa"]) == (0, "payments/billing")
    assert result["with_hpa"]["replica_hours"] == pytest.approx(48, rel=0.01), "one replica, and not twelve"


def test_without_a_file_several_hpas_of_a_group_are_named(place: Path) -> None:
    write(place, END - timedelta(hours=1), entry(1), entry(2, namespace="staging"))
    status, lines = replayed(place, None)

    assert status == 2
    assert "saw several HPAs of group 'billing': payments/billing, staging/billing" in lines[-1]


def test_without_a_file_and_without_an_hpa_that_was_seen_there_is_nothing_to_replay(place: Path) -> None:
    status, lines = replayed(place, None, group="idle")

    assert status == 2
    assert "--hpa: is missing, and the adapter saw no HPA that scales on the lag of group 'idle'" in lines[-1]


@pytest.mark.parametrize(
    ("metrics", "group", "more", "sentence"),
    [
        ([], "biling", [], "--group biling: the range has no such group; did you mean 'billing'?"),
        (
            [],
            "billing",
            ["--cluster", "eu"],
            "--group billing: the range has no such group on cluster 'eu', only on",
        ),
        ([lag_of("billing")], "idle", [], "scales on group 'billing', not on the lag of group 'idle'"),
        (
            [lag_of("idle")],
            "idle",
            [],
            "--group idle has no capacity to replay with. What a member can do is not known: the group",
        ),
        (
            [lag_of("billing", metric=REPLICAS, average="1")],
            "billing",
            [],
            f": spec.metrics[0] is {REPLICAS}, and only the adapter's settings say how much lag asks for",
        ),
        ([lag_of("huge")], "huge", [], "--group huge: groups with more than 1\u202f000 partitions are not replayed"),
        ([], "billing", ["--from", "2026-10-01", "--to", "2026-10-02"], "the range has no such group"),
    ],
)
def test_what_cannot_be_replayed_ends_with_one_sentence(
    metrics: list[Json], group: str, more: list[str], sentence: str, place: Path, tmp_path: Path
) -> None:
    status, lines = replayed(place, hpa_file(tmp_path, *metrics), *more, group=group)

    assert status == 2
    assert sentence in lines[-1]


@pytest.mark.parametrize(
    ("metrics", "more", "sentence"),
    [
        ([{"type": "Resource"}], [], "spec.metrics[0].type: is 'Resource'; must be 'External' or 'Object'"),
        ([], ["--max-wait", "soon"], "--max-wait: is 'soon'; must be a duration"),
        ([], ["--from", "2026-11-02", "--to", "2026-11-01"], "--from 2026-11-02 is not before --to"),
        ([], [], "holds no minutes: run `compact` first"),
    ],
)
def test_what_is_wrong_from_the_start_ends_before_spark_starts(
    metrics: list[Json], more: list[str], sentence: str, tmp_path: Path
) -> None:
    file = hpa_file(tmp_path, *metrics)
    command = ("replay", "--history", str(tmp_path), "--group", "billing", "--hpa", str(file), *more)
    status, lines = asked(*command, session=no_session)

    assert (status, sentence in lines[-1]) == (2, True)


def test_a_file_that_is_not_there_is_named(tmp_path: Path) -> None:
    command = ("replay", "--history", str(tmp_path), "--group", "billing", "--hpa", str(tmp_path / "none.yaml"))
    status, lines = asked(*command, session=no_session)

    assert (status, "none.yaml: No such file or directory" in lines[-1]) == (2, True)
