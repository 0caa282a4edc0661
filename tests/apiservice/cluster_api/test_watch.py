"""The list and watch of one kind, against an API server that pages, forgets and ends watches when a test says so."""

import logging
import re
from collections.abc import Iterator
from pathlib import Path
from queue import SimpleQueue

import pytest

from adapter.conditions import AUTOSCALERS, Conditions, ConditionStatus
from apiservice.cluster_api import watch as watch_module
from apiservice.cluster_api.connection import Json, connect, json_object
from apiservice.cluster_api.watch import Watch
from local.processes import wait_until
from tests.support.kubernetes.fake_cluster import HPAS, FakeCluster

WAIT_SECONDS = 60
MANY = 5


class Names:
    """What a follower received: a list as its names, a change as `EVENT name`."""

    def __init__(self) -> None:
        self.received: SimpleQueue[str] = SimpleQueue()

    def listed(self, objects: Iterator[Json]) -> None:
        self.received.put(" ".join(_name(each) for each in objects))

    def changed(self, event: str, changed: Json) -> None:
        self.received.put(f"{event} {_name(changed)}")

    def next(self) -> str:
        return self.received.get(timeout=WAIT_SECONDS)


def _name(found: Json) -> str:
    return str(found["metadata"]["name"])


def hpa(name: str) -> Json:
    return {"metadata": {"name": name}}


@pytest.fixture
def fake() -> Iterator[FakeCluster]:
    with FakeCluster(None, tokens={}, allowed=set()) as cluster:
        cluster.hpas.put(hpa("first"))
        yield cluster


@pytest.fixture
def names() -> Names:
    return Names()


@pytest.fixture
def conditions() -> Conditions:
    return Conditions()


@pytest.fixture
def watch(fake: FakeCluster, names: Names, conditions: Conditions, tmp_path: Path) -> Iterator[Watch]:
    client, pauses = connect(fake.kubeconfig(tmp_path)), (0.01, 0.02)
    running = Watch(client, HPAS, names, conditions, AUTOSCALERS, consequence="nothing works", pauses_seconds=pauses)
    yield running
    running.stop(WAIT_SECONDS)


def lists(fake: FakeCluster) -> int:
    return sum("watch=true" not in path for path in fake.paths)


def test_a_long_list_is_read_in_pages(
    watch: Watch, fake: FakeCluster, names: Names, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(watch_module, "PAGE", 2)
    expected = [f"hpa-{number}" for number in range(MANY - 1)]
    for name in expected:
        fake.hpas.put(hpa(name))

    watch.start()

    assert names.next().split() == ["first", *expected]
    assert lists(fake) == 3, "pages of two"


def test_objects_that_are_long_together_are_read_one_by_one(
    watch: Watch, fake: FakeCluster, names: Names, monkeypatch: pytest.MonkeyPatch
) -> None:
    fake.hpas.put(hpa("x" * 2048))
    fake.hpas.put(hpa("y" * 2048))
    monkeypatch.setattr(watch_module, "LONGEST", 3000)
    watch.start()

    assert names.next() == f"first {'x' * 2048} {'y' * 2048}"
    assert sum(bool(re.search(r"limit=1\b", path)) for path in fake.paths) == 3, "pages of one"


def test_an_object_that_is_too_long_is_ignored_alone_and_reported(
    watch: Watch, fake: FakeCluster, names: Names, conditions: Conditions, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(watch_module, "LONGEST", 1024)
    parsed: list[int] = []

    def parse(text: bytes) -> Json:
        parsed.append(len(text))
        return json_object(text)

    monkeypatch.setattr(watch_module, "json_object", parse)

    def is_reported() -> bool:
        ignored = "an object of more than 1,024 bytes is ignored"
        return [each.message for each in conditions.current if '"xxx' in each.details] == [ignored]

    fake.hpas.put(hpa("x" * 50_000))
    fake.hpas.put(hpa("last"))
    watch.start()
    assert names.next() == "first last"
    wait_until(is_reported, "the list's condition", WAIT_SECONDS)

    fake.hpas.put(hpa("x" * 50_000), "DELETED")
    fake.hpas.put(hpa("second"), "ADDED")
    assert names.next() == "ADDED second"
    assert is_reported()
    fake.end_watches()
    assert names.next() == "first last second", "it is listed again after a watch that had one"
    wait_until(lambda: conditions.current[0].status is ConditionStatus.TRUE, "the condition to hold", WAIT_SECONDS)
    assert max(parsed) <= 1024


def test_changes_are_followed_over_ended_watches_without_another_list(
    watch: Watch, fake: FakeCluster, names: Names
) -> None:
    watch.start()
    assert names.next() == "first"
    for event, name in (("ADDED", "second"), ("MODIFIED", "first"), ("DELETED", "second")):
        fake.hpas.put(hpa(name), event)
        assert names.next() == f"{event} {name}"
        fake.end_watches()

    assert lists(fake) == 1


def test_after_a_bookmark_a_watch_continues_where_older_versions_are_gone(
    watch: Watch, fake: FakeCluster, names: Names
) -> None:
    watch.start()
    names.next()
    wait_until(lambda: fake.hpas.watches == 1, "the watch", WAIT_SECONDS)
    fake.hpas.move_on()
    fake.hpas.are_old_versions_gone = True
    fake.end_watches()
    wait_until(lambda: fake.hpas.watches > 1, "another watch", WAIT_SECONDS)
    fake.hpas.put(hpa("second"), "ADDED")

    assert names.next() == "ADDED second"
    assert lists(fake) == 1


def test_a_version_that_is_gone_makes_everything_be_listed_again_without_a_warning(
    watch: Watch, fake: FakeCluster, names: Names, caplog: pytest.LogCaptureFixture
) -> None:
    watch.start()
    names.next()
    fake.hpas.are_old_versions_gone = True
    fake.hpas.version += 1
    fake.end_watches()

    assert names.next() == "first"
    assert not caplog.records


def test_a_missing_right_is_said_once_and_missing_no_longer_when_it_is_there(
    watch: Watch, fake: FakeCluster, names: Names, conditions: Conditions, caplog: pytest.LogCaptureFixture
) -> None:
    fake.hpas.is_forbidden = True
    caplog.set_level(logging.INFO)
    watch.start()
    assert watch.has_tried.wait(WAIT_SECONDS)
    wait_until(lambda: lists(fake) > MANY, "further attempts", WAIT_SECONDS)
    (warning,) = caplog.messages
    (condition,) = conditions.current
    assert condition.message == "they cannot be read: the right to list and watch them is missing; nothing works"
    assert warning.startswith(f"autoscalers: Forbidden: {condition.message}: the Kubernetes API server answered 403: ")
    assert condition.status is ConditionStatus.UNKNOWN, "there was no list yet"

    fake.hpas.is_forbidden = False

    assert names.next() == "first"
    wait_until(lambda: conditions.current[0].status is ConditionStatus.TRUE, "the condition to hold", WAIT_SECONDS)
    assert caplog.messages[-1] == "autoscalers: Read: HPAs can be read"


def test_a_list_is_taken_anew_on_request_and_without_a_warning(
    watch: Watch, fake: FakeCluster, names: Names, caplog: pytest.LogCaptureFixture
) -> None:
    watch.start()
    names.next()
    wait_until(lambda: fake.hpas.watches == 1, "the watch", WAIT_SECONDS)

    watch.list_again()

    assert names.next() == "first"
    wait_until(lambda: fake.hpas.watches == 2, "the next watch", WAIT_SECONDS)
    assert [record for record in caplog.records if record.levelname == "WARNING"] == []
