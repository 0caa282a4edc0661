"""HPAs that groups have today, beside what is recommended."""

import json
import re
from datetime import timedelta
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import yaml

from spark.errors import Unusable
from spark.figures.formatting import count
from spark.report.build import given_hpas
from spark.trials.hpa_file import REPLICAS, GivenHpa
from tests.spark.replay.test_command import lag_of
from tests.support.history import seen_documents
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
    ("metric", "sentence"),
    [
        (lag_of("gone"), "does not scale on the lag of a group of the range with all its topics"),
        (external(average="3000", name="billing-lag"), "does not scale on the lag of a group of the range"),
        (lag_of("billing", topic="payments"), "spec.metrics[0] scales on topic 'payments', not on all topics of group"),
        (lag_of("shop", topic="orders"), "spec.metrics[0] scales on topic 'orders', not on all topics of group 'shop'"),
        (lag_of("billing", metric=REPLICAS, average="1"), f"spec.metrics[0] is {REPLICAS}, and only the adapter's"),
    ],
)
def test_an_hpa_on_anything_else_is_refused_with_the_reason(metric: Json, sentence: str) -> None:
    """Of a named metric, nobody knows the group."""
    with pytest.raises(Unusable, match=f"^--hpa hpa.yaml: {re.escape(sentence)}"):
        given_hpas([given(metric)], GROUPS)


def page_and_candidates(place: Path, *options: str) -> tuple[str, list[dict[str, Any]]]:
    """Of a report on two days of billing, whose load follows the day."""
    clock = Clock(days=2, interval=60)
    wave = (100 + 80 * np.sin(clock.at / 86_400 * 2 * np.pi)) / 12
    write_weeks(place, [Read("billing", clock, wave, 12.5, partition=each, members=3) for each in range(12)])
    compacted(place, until=END)
    out = place / "out"
    times = ("--to", f"{END:%Y-%m-%dT%H:%MZ}", "--max-wait", "10m")

    status, said = asked("report", "--history", str(place), "--output", str(out), *times, *options, session=in_process)

    assert status == 0, said
    (billing,) = json.loads((out / "report.json").read_text())["groups"]
    return (out / "report.html").read_text(), billing["replay"]["candidates"]


def test_what_runs_now_is_replayed_beside_what_is_recommended(tmp_path: Path) -> None:
    (tmp_path / "hpa.yaml").write_text(yaml.safe_dump(document(lag_of("billing"), most=12)))

    page, candidates = page_and_candidates(tmp_path, "--hpa", str(tmp_path / "hpa.yaml"))

    assert [each["name"] for each in candidates][1:3] == ["as it was", "your HPA (hpa.yaml)"]
    assert candidates[2]["kept_share"] >= 0.95
    assert [each["is_recommended"] for each in candidates].count(True) == 1
    assert "<td>your HPA (hpa.yaml)</td>" in page


def test_the_hpa_that_the_adapter_saw_last_stands_on_the_page(tmp_path: Path) -> None:
    """It was changed meanwhile, and was seen for another group as well."""
    seen_documents.write(tmp_path, END - timedelta(hours=30), seen_documents.entry(2))
    mail = seen_documents.entry(12, group="mail")
    seen_documents.write(tmp_path, END - timedelta(hours=2), seen_documents.entry(12), mail)

    page, candidates = page_and_candidates(tmp_path)
    (row,) = (row for row in page.split("<tr>") if row.startswith("<td>your HPA"))

    assert [each["name"] for each in candidates][1:3] == ["as it was", "your HPA (payments/billing)"]
    assert row.startswith("<td>your HPA (payments/billing)</td>")
    assert f"<td>{count(candidates[2]['replica_hours'])}</td>" in row
    assert candidates[2]["kept_share"] > 0.9  # two replicas would not do
