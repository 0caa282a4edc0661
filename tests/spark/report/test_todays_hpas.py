"""Which HPA a group has today: the one of a file, or else the one that the adapter saw."""

from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from spark.report.build import with_seen
from spark.storage.local import LocalFiles
from spark.tables.topic_parts import Names
from spark.trials.hpa_file import GivenHpa
from tests.support import hpas
from tests.support.history.report_groups import group, report_data, topic
from tests.support.history.seen_documents import entry, write

DATA = report_data(group("billing", topic("orders")), group("mail", topic("letters")))
CLUSTER = DATA.groups[0].cluster
Given = dict[Names, list[GivenHpa]]


def found(folder: Path, *entries: dict[str, Any], given: Given | None = None) -> dict[str, list[str]]:
    write(folder, DATA.until - timedelta(hours=1), *entries, clusters=(CLUSTER,))
    todays = with_seen(given or {}, LocalFiles(folder), DATA)
    return {name: [one.file for one in own] for (_, name), own in todays.items()}


def test_the_hpa_that_was_seen_is_the_one_that_the_group_has(tmp_path: Path) -> None:
    assert found(tmp_path, entry(9), entry(9, group="mail", topics=[])) == {
        "billing": ["payments/billing"],
        "mail": ["payments/mail"],
    }


def test_the_hpa_that_was_seen_has_the_wait_that_its_number_keeps(tmp_path: Path) -> None:
    write(tmp_path, DATA.until - timedelta(hours=1), entry(9, maxWaitSeconds=30), clusters=(CLUSTER,))
    ((seen,),) = with_seen({}, LocalFiles(tmp_path), DATA).values()

    assert seen.max_wait == 30


def test_the_hpa_of_a_file_takes_the_place_of_the_one_that_was_seen(tmp_path: Path) -> None:
    given: Given = {(CLUSTER, "billing"): [GivenHpa("hpa.yaml", hpas.hpa())]}

    assert found(tmp_path, entry(9), given=given) == {"billing": ["hpa.yaml"]}


@pytest.mark.parametrize(
    "keys",
    [{"values": ["lag_seconds"]}, {"topics": ["orders", "refunds"]}, {"group": "gone"}, {"cluster": "another"}],
    ids=str,
)
def test_an_hpa_on_anything_else_than_the_groups_whole_lag_is_none(keys: dict[str, Any], tmp_path: Path) -> None:
    assert found(tmp_path, entry(9, **keys)) == {}
