"""Who holds the Lease, decided by each replica's own clock; the API server is a dictionary."""

import copy
from collections.abc import Callable
from typing import cast

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
        return Lease(cast(ClusterObjects, self), "lag", "history", name, lambda: self.now)


def test_the_first_takes_it_and_renews_it_and_the_others_wait() -> None:
    server = Server()
    first, second = server.replica("a"), server.replica("b")
    for _ in range(20):
        first.renew()
        second.renew()
        server.now += 2

        assert (first.is_ours(), second.is_ours()) == (True, False)
    assert (first.state(), second.state()) == ("written by this replica", "written by a")


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

    first.give_back()
    second.renew()

    assert (first.is_ours(), second.is_ours()) == (False, True)
    assert second.written == {"main": 1000.0, "spare": 990.0}


def test_an_api_server_that_does_not_answer_leaves_it_to_its_holder_until_the_deadline() -> None:
    server = Server()
    first = server.replica("a")
    first._try(first.renew)
    server.trouble = ClusterUnreachable("connection refused")
    server.now += DEADLINE_SECONDS - 1
    first._try(first.renew)
    assert first.is_ours()

    server.now += 1
    first._try(first.renew)
    assert not first.is_ours()
    assert first.state() == "written by no replica; the Lease cannot be used, see the log"


def test_while_the_api_server_is_unavailable_the_lease_of_another_counts_until_it_has_expired() -> None:
    server = Server()
    first, second = server.replica("a"), server.replica("b")
    first._try(first.renew)
    second._try(second.renew)
    server.trouble = ClusterUnreachable("connection refused")
    server.now += DURATION_SECONDS - 1
    second._try(second.renew)
    assert not second.is_vacant()

    server.now += 1
    second._try(second.renew)
    assert (second.is_ours(), second.is_vacant()) == (False, True)


def test_without_the_lease_or_the_right_to_it_every_replica_writes() -> None:
    missing, forbidden = Server(), Server()
    missing.kept = None
    forbidden.trouble = ClusterUnreachable("the Kubernetes API server answered 403: forbidden", 403)
    for server in (missing, forbidden):
        both = [server.replica("a"), server.replica("b")]
        for each in both:
            each._try(each.renew)

        assert all(each.is_ours() for each in both)
        assert both[0].state() == "written by every replica; the Lease cannot be used, see the log"


def test_marks_that_cannot_be_read_count_as_nothing_written() -> None:
    server = Server()
    server.kept = {"metadata": {"resourceVersion": "1", "annotations": {"kafka-lag-adapter/written": "[]"}}}
    first = server.replica("a")
    first.renew()

    assert (first.is_ours(), first.written) == (True, {})
