"""The watches of pods: in the namespaces that are asked for alone, and what they report together."""

import logging
import threading
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path

import pytest

from adapter.conditions import PODS, Condition, Conditions, ConditionStatus, Definition
from apiservice.cluster_api.connection import connect
from apiservice.pods import watches
from apiservice.pods.watches import PodWatches
from local.processes import wait_until
from tests.support.kubernetes.fake_cluster import FakeCluster, Json, Objects

WAIT_SECONDS = 60


def pod(name: str, address: str = "10.0.0.1") -> Json:
    return {"metadata": {"name": name, "labels": {"app": "web"}}, "spec": {}, "status": {"podIP": address}}


class Watched:
    """Watches of the pods of `wanted`, which may change."""

    def __init__(self, fake: FakeCluster, folder: Path) -> None:
        self.fake = fake
        self.conditions = Conditions()
        self.wanted: set[str] = {"shop"}
        self.watches = PodWatches(connect(fake.kubeconfig(folder)), lambda: self.wanted, self.conditions)

    def names(self, namespace: str = "shop") -> list[str] | None:
        pods = self.watches.of(namespace)
        return None if pods is None else sorted(each.name for each in pods)

    def wait_for(self, names: list[str] | None, namespace: str = "shop") -> None:
        wait_until(lambda: self.names(namespace) == names, f"the pods {names} of {namespace}", WAIT_SECONDS)

    def attempts(self, namespace: str) -> int:
        return sum(f"/{namespace}/" in path for path in self.fake.paths)

    @property
    def condition(self) -> Condition | None:
        return next((each for each in self.conditions.current if each.name == PODS.name), None)

    def wait_for_reason(self, reason: str | None) -> None:
        def is_there() -> bool:
            return (self.condition.reason if self.condition else None) == reason

        wait_until(is_there, f"the reason {reason}", WAIT_SECONDS)


@pytest.fixture
def watched(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Watched]:
    monkeypatch.setattr(watches, "LOOK_SECONDS", 0.02)
    with FakeCluster(None, tokens={}, allowed=set()) as fake:
        fake.pods = {name: Objects([pod(f"{name}-0")]) for name in ("shop", "mail", "other")}
        running = Watched(fake, tmp_path)
        running.watches.start()
        yield running
        running.watches.stop(WAIT_SECONDS)


def test_only_namespaces_that_are_asked_for_are_watched(watched: Watched) -> None:
    watched.wait_for(["shop-0"])
    assert watched.names("mail") is None

    watched.wanted = {"mail"}
    watched.wait_for(["mail-0"], "mail")
    watched.wait_for(None)
    assert not any("/other/" in path for path in watched.fake.paths)


def test_pods_that_come_change_and_go_are_followed(watched: Watched) -> None:
    watched.wait_for(["shop-0"])
    shop = watched.fake.pods["shop"]
    shop.put(pod("shop-1"), "ADDED")
    watched.wait_for(["shop-0", "shop-1"])
    shop.put(pod("shop-1", "10.0.0.2"))
    wait_until(lambda: "10.0.0.2" in str(watched.watches.of("shop")), "the new address", WAIT_SECONDS)
    shop.put(pod("shop-0"), "DELETED")
    watched.wait_for(["shop-1"])


def test_a_namespace_beyond_the_most_waits_until_another_one_is_no_longer_asked_for(
    watched: Watched, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(watches, "MOST_NAMESPACES", 2)
    full = Watched(watched.fake, tmp_path)
    try:
        full.wanted = {"shop", "other"}
        full.watches.turn()
        full.wait_for(["shop-0"])
        full.wanted = {"shop", "other", "mail"}
        full.watches.turn()
        assert (full.names(), full.names("mail")) == (["shop-0"], None)

        full.wanted = {"shop", "mail"}
        full.watches.turn()
        full.wait_for(["mail-0"], "mail")
    finally:
        full.watches.stop(WAIT_SECONDS)


def test_a_missing_right_is_said_once_for_all_namespaces_and_ends_with_the_last_failure(
    watched: Watched, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO)
    for name in ("mail", "other"):
        watched.fake.pods[name].is_forbidden = True
    watched.wanted = {"shop", "mail", "other"}
    watched.wait_for_reason("Forbidden")
    watched.wait_for(["shop-0"])
    wait_until(lambda: min(watched.attempts("mail"), watched.attempts("other")) > 1, "other attempts", WAIT_SECONDS)

    failures = [record for record in caplog.records if "pods: Forbidden" in record.getMessage()]
    assert len(failures) == 1
    assert (watched.names("mail"), watched.names("other")) == (None, None)
    watched.fake.pods["mail"].is_forbidden = False
    watched.wait_for(["mail-0"], "mail")
    assert watched.condition is not None
    assert watched.condition.status is ConditionStatus.UNKNOWN
    watched.fake.pods["other"].is_forbidden = False
    watched.wait_for_reason("Read")


def test_pods_that_were_read_stay_in_use_when_the_right_is_lost(watched: Watched) -> None:
    watched.wait_for(["shop-0"])
    shop = watched.fake.pods["shop"]
    shop.is_forbidden = True

    def is_refused() -> bool:
        shop.end_watches()  # again and again: a watch that was already let in may have begun after the first time
        return watched.condition is not None and watched.condition.reason == "Forbidden"

    wait_until(is_refused, "the refusal", WAIT_SECONDS)
    assert watched.condition is not None
    assert watched.condition.status is ConditionStatus.FALSE
    assert watched.names() == ["shop-0"]


def test_without_a_namespace_there_is_no_condition_and_no_thread(watched: Watched) -> None:
    watched.wait_for_reason("Read")
    watched.wanted = set()
    watched.wait_for_reason(None)

    wait_until(lambda: "watch-pods" not in {each.name for each in threading.enumerate()}, "no watch", WAIT_SECONDS)


def test_what_a_watch_reports_after_its_end_is_no_news(watched: Watched, monkeypatch: pytest.MonkeyPatch) -> None:
    reports: list[Callable[[], None]] = []
    holds = watches._OfNamespace.holds

    def noted(self: watches._OfNamespace, definition: Definition) -> None:
        reports.append(partial(holds, self, definition))
        holds(self, definition)

    monkeypatch.setattr(watches._OfNamespace, "holds", noted)
    watched.wanted = {"mail"}
    wait_until(lambda: bool(reports), "a report", WAIT_SECONDS)
    watched.wanted = set()
    watched.wait_for_reason(None)

    reports[0]()
    assert watched.condition is None


def test_at_the_end_all_watches_are_asked_before_one_is_waited_for(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: set[str] = set()
    asked_at_waits: list[int] = []

    class UnendingWatch:
        def __init__(self, _client: object, path: str, *_: object, **_options: object) -> None:
            self._path = path

        def start(self) -> None: ...

        def stop(self, timeout_seconds: float) -> None:
            asked.add(self._path)
            if timeout_seconds > 0:
                asked_at_waits.append(len(asked))

    monkeypatch.setattr(watches, "Watch", UnendingWatch)
    with FakeCluster(None, tokens={}, allowed=set()) as fake:
        several = Watched(fake, tmp_path)
        several.wanted = {"shop", "mail", "other"}
        several.watches.turn()
        several.watches.stop(WAIT_SECONDS)

    assert asked_at_waits == [3, 3, 3]
