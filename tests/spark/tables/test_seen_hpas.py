"""HPAs that the adapter saw, read from the documents that it writes."""

from datetime import UTC, datetime, timedelta
from pathlib import Path

from spark.storage.local import LocalFiles
from spark.tables.seen_hpas import SeenHpa, misnamed_documents, seen_hpas
from tests.support.history.seen_documents import entry, write

NOON = datetime(2026, 11, 20, 12, tzinfo=UTC)
DAY = timedelta(days=1)


def read(root: Path, *clusters: str, since: datetime = NOON - 7 * DAY, until: datetime = NOON) -> list[SeenHpa]:
    return seen_hpas(LocalFiles(root), since, until, clusters or ("main",))


def maxima(seen: list[SeenHpa]) -> list[int]:
    return [each.hpa.max_replicas for each in seen]


def test_the_newest_document_of_the_range_counts(tmp_path: Path) -> None:
    for number in range(1, 5):
        write(tmp_path, NOON - 3 * DAY + number * DAY, entry(number))

    assert maxima(read(tmp_path)) == [2]
    (one,) = read(tmp_path)
    assert (one.group, one.topics, one.namespace, one.name) == ("billing", frozenset({"orders"}), "payments", "billing")
    assert (one.cluster, one.is_replayable, one.seen_at) == ("main", True, NOON - DAY)


def test_a_document_from_just_before_the_range_counts_and_an_older_one_does_not(tmp_path: Path) -> None:
    write(tmp_path, NOON - DAY, entry(1))

    assert maxima(read(tmp_path, since=NOON - DAY + timedelta(minutes=90))) == [1]
    assert maxima(read(tmp_path, since=NOON - DAY + timedelta(minutes=150))) == []


def test_an_hpa_that_the_newest_document_lacks_is_gone(tmp_path: Path) -> None:
    write(tmp_path, NOON - 2 * DAY, entry(1))
    write(tmp_path, NOON - DAY)

    assert read(tmp_path) == []


def test_each_cluster_has_the_newest_document_of_an_adapter_that_reads_it(tmp_path: Path) -> None:
    write(tmp_path, NOON - 2 * DAY, entry(1), clusters=("main",))
    write(tmp_path, NOON - DAY, entry(2), clusters=("other",))

    assert [(each.cluster, each.hpa.max_replicas) for each in read(tmp_path, "main", "other")] == [
        ("other", 2),
        ("main", 1),
    ]


def test_an_hpa_that_names_no_cluster_is_one_of_each_and_one_that_does_is_of_that_alone(tmp_path: Path) -> None:
    write(tmp_path, NOON - DAY, entry(1), entry(2, cluster="b"), clusters=("a", "b"))

    assert [(each.cluster, each.hpa.max_replicas) for each in read(tmp_path, "a", "b")] == [
        ("a", 1),
        ("b", 1),
        ("b", 2),
    ]


def test_what_cannot_be_parsed_is_left_out(tmp_path: Path) -> None:
    write(tmp_path, NOON - DAY, entry(1), entry(2, spec={"maxReplicas": 0}))
    write(tmp_path, NOON - DAY / 2, entry(3)).write_text("{}")
    write(tmp_path, NOON - DAY / 3, entry(4)).rename(tmp_path / "autoscalers" / "date=2026-11-20" / "copy.json")

    assert maxima(read(tmp_path)) == [1]


def test_an_hpa_on_another_value_says_so(tmp_path: Path) -> None:
    write(tmp_path, NOON - DAY, entry(1, values=["lag", "lag_seconds"]))

    assert [each.is_replayable for each in read(tmp_path)] == [False]


def test_a_history_without_documents_has_none(tmp_path: Path) -> None:
    assert read(tmp_path) == []


def test_a_document_whose_name_has_an_impossible_date_is_left_out_and_named(tmp_path: Path) -> None:
    kept = write(tmp_path, NOON - DAY, entry(1))
    kept.with_name("pod-1-2f-20261131T120000.000000Z.json").write_text(kept.read_text())

    assert maxima(read(tmp_path)) == [1]
    (misnamed,) = misnamed_documents(LocalFiles(tmp_path))
    assert misnamed.path == "autoscalers/date=2026-11-19/pod-1-2f-20261131T120000.000000Z.json"
    assert misnamed.reason == "is no document of HPAs by its name"
