"""HPAs that groups have today, beside what is recommended."""

import json
from pathlib import Path

import numpy as np
import pytest
import yaml

from spark.advice.candidates import GivenHpa
from spark.errors import Unusable
from spark.report.build import given_hpas
from tests.spark.replay.test_command import lag_of
from tests.support.history.compacting import asked, compacted, in_process
from tests.support.history.planted_weeks import END, Clock, Read, write_weeks
from tests.support.history.report_groups import group, topic
from tests.support.hpas import Json, document, external, hpa

GROUPS = [group("billing", topic("orders")), group("shop", topic("orders"), topic("payments"))]


def given(metric: Json) -> GivenHpa:
    return GivenHpa("hpa.yaml", hpa(metric, most=12))


def test_an_hpa_belongs_to_the_group_that_its_selector_names() -> None:
    mine = given(lag_of("billing"))

    assert given_hpas([mine, mine], GROUPS) == {("main", "billing"): [mine, mine]}


@pytest.mark.parametrize(
    "metric",
    [lag_of("gone"), lag_of("billing", topic="payments"), lag_of("shop"), external(average="3000", name="billing-lag")],
)
def test_an_hpa_on_anything_else_is_refused(metric: Json) -> None:
    """Of `shop`, it leaves out a topic; of a named metric, nobody knows the group."""
    with pytest.raises(Unusable, match=r"^--hpa hpa.yaml: does not scale on the lag of a group of the range with all"):
        given_hpas([given(metric)], GROUPS)


def test_what_runs_now_is_replayed_beside_what_is_recommended(tmp_path: Path) -> None:
    clock = Clock(days=2, interval=60)
    wave = (100 + 80 * np.sin(clock.at / 86_400 * 2 * np.pi)) / 12
    write_weeks(tmp_path, [Read("billing", clock, wave, 12.5, partition=each, members=3) for each in range(12)])
    compacted(tmp_path, until=END)
    (tmp_path / "hpa.yaml").write_text(yaml.safe_dump(document(lag_of("billing"), most=12)))

    status, _ = asked(
        *("report", "--history", str(tmp_path), "--output", str(tmp_path / "out"), "--max-wait", "10m"),
        *("--to", f"{END:%Y-%m-%dT%H:%MZ}", "--hpa", str(tmp_path / "hpa.yaml")),
        session=in_process,
    )
    (billing,) = json.loads((tmp_path / "out/report.json").read_text())["groups"]
    candidates = {each["name"]: each for each in billing["replay"]["candidates"]}

    assert status == 0
    assert list(candidates)[1:3] == ["as it was", "your HPA (hpa.yaml)"]
    assert candidates["your HPA (hpa.yaml)"]["kept_share"] >= 0.95
    assert [each["is_recommended"] for each in candidates.values()].count(True) == 1
    assert "your HPA (hpa.yaml)" in (tmp_path / "out/report.html").read_text()
