"""Who holds the Lease, decided by each replica's own clock; the API server is a dictionary."""

import copy
from collections.abc import Callable
from typing import cast

from adapter.conditions import Conditions
from apiservice.auth.cluster_settings import ClusterUnreachable
from apiservice.cluster_api.connection import Json
from apiservice.cluster_api.lease import DEADLINE_SECONDS, DURATION_SECONDS, Lease
from apiservice.cluster_api.objects import ClusterObjects


class Server:
    """One Lease as the API server keeps it. `trouble` meets every request, `before_write` comes before a write."""

    def __init__(self) -> None:
        self.now = 100.0
        self.kept: Json | None = {"metadata": {"name": "history", "resourceVersion": "1"}}
        self.trouble: Exception | None = None
        self.conditions: dict[str, Conditions] = {}
        self.before_write: list[Callable[[], None]] = []

    def read(self, path: str) -> Json | None:
        assert path == "/apis/coordination.k8s.io/v1/namespaces/lag/leases/history"
        if self.trouble:
            raise self.trouble
        return copy.deepcopy(self.kept)

    def replace(self, _: str, document: Json) -> bool:
        for act in self.before_write:
            act()
        assert self.kept is not None
        version = self.kept["metadata"]["resourceVersion"]
        if document["metadata"]["resourceVersion"] != version:
            return False
        changed = {**document["metadata"], "resourceVersion": str(int(version) + 1)}
        self.kept = copy.deepcopy({**document, "metadata": changed})
        return True

    def replica(self, name: str) -> Lease:
        self.conditions[name] = Conditions()
        objects = cast(ClusterObjects, self)
        return Lease(objects, "lag", "history", name, self.conditions[name], lambda: self.now)

    def message(self, name: str) -> str:
        (condition,) = self.conditions[name].current
        return condition.message


def test_the_first_takes_it_and_renews_it_and_the_others_wait() -> None:
    server = Server()
    first, second = server.replica("a"), server.replica("b")
    for _ in range(20):
        first.turn()
        second.turn()
        server.now += 2

        assert (first.is_ours(), second.is_ours()) == (True, False)
    assert (server.message("a"), server.message("b")) == ("held by this replica", "held by a")


def test_of_two_that_take_it_at_once_one_has_it() -> None:
    server = Server()
    first, second = server.replica("a"), server.replica("b")

    def second_is_faster() -> None:
        server.before_write.clear()
        second.renew()

    server.before_write = [second_is_faster]
    first.renew()

    assert (first.is_ours(), second.is_ours()) == (False, True)


def test_a_holder_stops_before_another_starts_and_another_starts_only_after_the_whole_duration_in_its_own_time() -> (
    None
):
    server = Server()
    first, second = server.replica("a"), server.replica("b")
    first.renew()
    server.now += 1
    second.renew()  # sees it for the first time
    server.now += DEADLINE_SECONDS - 1
    assert not first.is_ours()

    server.now += DURATION_SECONDS - DEADLINE_SECONDS + 0.5
    second.renew()
    assert not second.is_ours()
    server.now += 0.5
    second.renew()
    assert second.is_ours()


def test_a_holder_that_was_frozen_finds_that_another_has_it() -> None:
    server = Server()
    first, second = server.replica("a"), server.replica("b")
    first.renew()
    second.renew()
    server.now += DURATION_SECONDS
    second.renew()
    assert (first.is_ours(), second.is_ours()) == (False, True)

    first.renew()

    assert (first.is_ours(), second.is_ours()) == (False, True)


def test_a_holder_that_ends_leaves_it_to_the_next_at_once_and_says_how_far_it_wrote() -> None:
    server = Server()
    first, second = server.replica("a"), server.replica("b")
    first.renew()
    second.renew()
    first.note_written({"main": 1000.0})
    first.note_written({"spare": 990.0})

    first.end()
    second.renew()

    assert (first.is_ours(), second.is_ours()) == (False, True)
    assert second.written == {"main": 1000.0, "spare": 990.0}


def test_an_api_server_that_does_not_answer_leaves_it_to_its_holder_until_the_deadline() -> None:
    server = Server()
    first = server.replica("a")
    first.turn()
    server.trouble = ClusterUnreachable("connection refused")
    server.now += DEADLINE_SECONDS - 1
    first.turn()
    assert first.is_ours()

    server.now += 1
    first.turn()
    assert not first.is_ours()
    assert server.message("a") == "held by no replica, because the Lease cannot be read"


def test_while_the_api_server_is_unavailable_the_lease_of_another_counts_until_it_has_expired() -> None:
    server = Server()
    first, second = server.replica("a"), server.replica("b")
    first.turn()
    second.turn()
    server.trouble = ClusterUnreachable("connection refused")
    server.now += DURATION_SECONDS - 1
    second.turn()
    assert not second.is_vacant()

    server.now += 1
    second.turn()
    assert (second.is_ours(), second.is_vacant()) == (False, True)


def test_while_nothing_needs_it_the_lease_is_not_asked_for() -> None:
    server, needs = Server(), [False]
    conditions = Conditions()
    first = Lease(cast(ClusterObjects, server), "lag", "history", "a", conditions, lambda: server.now, lambda: needs[0])
    server.trouble = AssertionError("nobody may ask")
    first.turn()
    assert (first.is_held(), conditions.current) == (False, ())

    server.trouble, needs[0] = None, True
    first.turn()

    assert first.is_held()


def test_without_the_lease_or_the_right_to_it_every_replica_writes_the_history() -> None:
    missing, forbidden = Server(), Server()
    missing.kept = None
    forbidden.trouble = ClusterUnreachable("the Kubernetes API server answered 403: forbidden", 403)
    for server in (missing, forbidden):
        both = [server.replica("a"), server.replica("b")]
        for each in both:
            each.turn()

        assert all(each.is_ours() for each in both)
        assert not any(each.is_held() for each in both)
        assert server.message("a") == (
            "there is no Lease that may be used: every replica writes the history, and none changes HPAs"
        )


def test_marks_that_cannot_be_read_count_as_nothing_written() -> None:
    server = Server()
    server.kept = {"metadata": {"resourceVersion": "1", "annotations": {"kafka-lag-adapter/written": "[]"}}}
    first = server.replica("a")
    first.renew()

    assert (first.is_ours(), first.written) == (True, {})
