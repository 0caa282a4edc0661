import asyncio
import contextlib
import datetime
import queue
import socket
import threading
import weakref
from collections.abc import Callable, Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from kubernetes.config import incluster_config

from adapter.conditions import AUTHENTICATION_SETTINGS, Conditions
from adapter.errors import AdapterError
from apiservice.auth import cluster_settings
from apiservice.auth.caller import ANONYMOUS, Attributes, Caller, Lane
from apiservice.auth.cluster_settings import Authentication, AuthenticationFollower, ClusterUnreachable
from apiservice.cluster_api.connection import LANE_THREADS, Client, authorization_of, connect, send
from apiservice.cluster_api.objects import ClusterObjects
from apiservice.cluster_api.reviews import ClusterReviews
from apiservice.cluster_api.watch import Watch
from local.processes import wait_until
from tests.support.kubernetes.authorities import Authority
from tests.support.kubernetes.fake_cluster import FakeCluster, kubeconfig_text

NAMES = {"requestheader-allowed-names": '["first"]'}
ALICE = Caller("alice", "7", ("team",), (("scopes", ("a", "b")),))
READ_LAG = Attributes(verb="list", namespace="shop", group="external.metrics.k8s.io", version="v1beta1", resource="lag")


@pytest.fixture
def fake() -> Iterator[FakeCluster]:
    with FakeCluster(NAMES, tokens={"good": "bob"}, allowed={"alice"}) as cluster:
        yield cluster


@pytest.fixture
def reviews(fake: FakeCluster, tmp_path: Path) -> Iterator[ClusterReviews]:
    running = ClusterReviews(connect(fake.kubeconfig(tmp_path)))
    yield running
    running.close()


def watch_of(client: Client, on_change: Callable[[Authentication], None]) -> Watch:
    return Watch(
        client,
        cluster_settings.PATH,
        AuthenticationFollower(on_change),
        Conditions(),
        AUTHENTICATION_SETTINGS,
        query=(cluster_settings.ONE_NAME,),
        pauses_seconds=(0.01, 0.05),
    )


@pytest.fixture
def states(fake: FakeCluster, tmp_path: Path) -> Iterator["queue.SimpleQueue[Authentication]"]:
    """What a watch of the ConfigMap reports."""
    found: queue.SimpleQueue[Authentication] = queue.SimpleQueue()
    watch = watch_of(connect(fake.kubeconfig(tmp_path)), found.put)
    watch.start()
    yield found
    watch.stop(timeout_seconds=60)
    assert "watch-configmaps" not in {thread.name for thread in threading.enumerate()}


def test_a_token_is_reviewed(reviews: ClusterReviews) -> None:
    assert asyncio.run(reviews.review_token("good", Lane.STRANGERS)) == Caller("bob", "", (), ())
    assert asyncio.run(reviews.review_token("bad", Lane.STRANGERS)) is None


def test_a_permission_is_reviewed_with_all_that_is_known_of_the_caller(
    reviews: ClusterReviews, fake: FakeCluster
) -> None:
    assert asyncio.run(reviews.review_access(ALICE, READ_LAG, Lane.KNOWN_CALLERS)) == (True, "as the test says")

    assert fake.reviews[0]["spec"] == {
        "user": "alice",
        "uid": "7",
        "groups": ["team"],
        "extra": {"scopes": ["a", "b"]},
        "resourceAttributes": {
            "verb": "list",
            "namespace": "shop",
            "group": "external.metrics.k8s.io",
            "version": "v1beta1",
            "resource": "lag",
        },
    }


def test_a_path_is_reviewed_as_a_path(reviews: ClusterReviews, fake: FakeCluster) -> None:
    nobody = Caller("nobody", "", (), ())

    is_allowed, _ = asyncio.run(
        reviews.review_access(nobody, Attributes(verb="get", path="/metrics"), Lane.KNOWN_CALLERS)
    )

    assert not is_allowed
    assert fake.reviews[0]["spec"]["nonResourceAttributes"] == {"path": "/metrics", "verb": "get"}


def test_a_review_that_fails_is_no_answer(reviews: ClusterReviews, fake: FakeCluster) -> None:
    fake.failing_with = 500

    with pytest.raises(ClusterUnreachable, match="500: as the test says"):
        asyncio.run(reviews.review_access(ALICE, READ_LAG, Lane.KNOWN_CALLERS))


def test_a_silent_api_server_is_no_answer(tmp_path: Path) -> None:
    kubeconfig = tmp_path / "config"
    kubeconfig.write_text(kubeconfig_text(port=1))

    with pytest.raises(ClusterUnreachable, match=r"cannot be reached: Connection refused$"):
        asyncio.run(ClusterReviews(connect(kubeconfig)).review_token("good", Lane.STRANGERS))


def test_an_api_server_whose_tls_handshake_fails_cannot_be_reached(fake: FakeCluster, tmp_path: Path) -> None:
    kubeconfig = fake.kubeconfig(tmp_path)
    kubeconfig.write_text(kubeconfig.read_text().replace("http://", "https://"))
    client = connect(kubeconfig)

    with pytest.raises(ClusterUnreachable, match=r"cannot be reached: .*SSLError"):
        asyncio.run(ClusterReviews(client).review_token("good", Lane.STRANGERS))
    with pytest.raises(ClusterUnreachable, match=r"cannot be reached: .*SSLError"):
        ClusterObjects(client).read("/")


class Token(str):
    """A string that can be weakly referenced, so that a test sees when it is freed."""


def test_reviews_for_which_nobody_waits_any_more_leave_memory(
    reviews: ClusterReviews, fake: FakeCluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    held, answer = threading.Event(), fake.review
    monkeypatch.setattr(fake, "review", lambda review: held.wait(60) and answer(review))
    alive: weakref.WeakSet[Token] = weakref.WeakSet()

    async def ask(number: int) -> None:
        alive.add(token := Token(f"made up {number}"))
        with contextlib.suppress(asyncio.CancelledError):  # it would keep the token
            await reviews.review_token(token, Lane.STRANGERS)

    async def ask_and_leave() -> int:
        asking = [asyncio.create_task(ask(number)) for number in range(10 * LANE_THREADS)]
        await asyncio.sleep(0)
        for each in asking:
            each.cancel()
        await asyncio.wait(asking)
        return len(alive)

    try:
        assert asyncio.run(ask_and_leave()) <= LANE_THREADS, "those that were sent already"
    finally:
        held.set()


@pytest.mark.parametrize("lane", [Lane.RENEWALS, Lane.KNOWN_CALLERS])
def test_strangers_who_keep_the_api_server_busy_keep_no_known_caller_waiting(
    reviews: ClusterReviews, fake: FakeCluster, monkeypatch: pytest.MonkeyPatch, lane: Lane
) -> None:
    held, answer = threading.Event(), fake.review

    def review(review: dict[str, Any]) -> dict[str, Any]:
        if review["kind"] == "TokenReview" or review["spec"]["user"] == ANONYMOUS.name:
            held.wait(60)
        return answer(review)

    async def ask() -> tuple[bool, str]:
        tokens = [asyncio.create_task(reviews.review_token(f"made up {number}", Lane.STRANGERS)) for number in range(8)]
        paths = [
            asyncio.create_task(reviews.review_access(ANONYMOUS, Attributes("get", f"/{number}"), Lane.STRANGERS))
            for number in range(8)
        ]
        known = await asyncio.create_task(reviews.review_access(ALICE, READ_LAG, lane))
        held.set()
        await asyncio.gather(*tokens, *paths)
        return known

    monkeypatch.setattr(fake, "review", review)
    assert asyncio.run(ask()) == (True, "as the test says")


def test_the_config_map_is_followed_through_changes_and_ended_watches(
    states: "queue.SimpleQueue[Authentication]", fake: FakeCluster
) -> None:
    assert states.get(timeout=60).allowed_names == {"first"}
    for name in ("second", "third"):
        fake.replace({"requestheader-allowed-names": f'["{name}"]'})
        assert states.get(timeout=60).allowed_names == {name}
        fake.end_watches()


def test_the_config_map_is_followed_again_once_the_api_server_answers(
    states: "queue.SimpleQueue[Authentication]", fake: FakeCluster, caplog: pytest.LogCaptureFixture
) -> None:
    states.get(timeout=60)
    fake.failing_with = 503
    fake.end_watches()
    wait_until(
        lambda: "authentication-settings: NotRead: they cannot be read" in caplog.text, "the failure to be logged", 60
    )
    fake.replace({"requestheader-allowed-names": '["second"]'})

    fake.failing_with = None

    assert states.get(timeout=60).allowed_names == {"second"}


def test_a_config_map_that_cannot_be_used_leaves_the_last_good_one(
    states: "queue.SimpleQueue[Authentication]", fake: FakeCluster
) -> None:
    states.get(timeout=60)
    fake.replace({"requestheader-allowed-names": "no list"})
    fake.replace({"requestheader-allowed-names": '["good again"]'})

    assert states.get(timeout=60).allowed_names == {"good again"}


def test_the_token_of_a_pod_is_read_again_as_it_rotates(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    token, authority = tmp_path / "token", tmp_path / "ca.crt"
    token.write_text("first\n")
    authority.write_text(Authority("kubernetes").pem)
    monkeypatch.setattr(incluster_config, "SERVICE_TOKEN_FILENAME", str(token))
    monkeypatch.setattr(incluster_config, "SERVICE_CERT_FILENAME", str(authority))
    monkeypatch.setenv("KUBERNETES_SERVICE_HOST", "127.0.0.1")
    monkeypatch.setenv("KUBERNETES_SERVICE_PORT", "1")
    client = connect(None)
    assert authorization_of(client) == "bearer first"

    token.write_text("second\n")
    later = datetime.datetime.now() + datetime.timedelta(minutes=2)  # noqa: DTZ005 - as the library counts
    clock = SimpleNamespace(now=lambda: later)
    monkeypatch.setattr(incluster_config, "datetime", SimpleNamespace(datetime=clock, timedelta=datetime.timedelta))
    assert authorization_of(client) == "bearer second"

    token.unlink()
    later += datetime.timedelta(minutes=2)
    with pytest.raises(AdapterError, match=r"the token of this adapter cannot be read: .*No such file"):
        authorization_of(client)


def test_a_kubeconfig_without_a_token_has_none_to_show(fake: FakeCluster, tmp_path: Path) -> None:
    assert authorization_of(connect(fake.kubeconfig(tmp_path))) == "Bearer adapter"
    without = tmp_path / "without.yaml"
    without.write_text(kubeconfig_text(fake.port).replace('"token"', '"nothing"'))

    with pytest.raises(AdapterError, match="this adapter has no token"):
        authorization_of(connect(without))


def test_a_kubeconfig_that_cannot_be_used_is_named(tmp_path: Path) -> None:
    broken = tmp_path / "broken.yaml"
    for content in ("{}", "contexts: [", '{"current-context": "x", "contexts": []}'):
        broken.write_text(content)

        with pytest.raises(AdapterError, match=r"broken\.yaml cannot be used"):
            connect(broken)


def test_a_file_that_is_no_kubeconfig_is_named_without_an_error_of_python(tmp_path: Path) -> None:
    (tmp_path / "text").write_text("hello")

    with pytest.raises(AdapterError, match="text cannot be used: it does not have the right form"):
        connect(tmp_path / "text")
    with pytest.raises(AdapterError, match=r"cannot be used: Is a directory"):
        connect(tmp_path)


def test_an_api_server_that_is_silent_is_told_without_a_place_in_pythons_sources(tmp_path: Path) -> None:
    file = tmp_path / "kubeconfig"
    with socket.create_server(("127.0.0.1", 0)) as silent:
        file.write_text(kubeconfig_text(silent.getsockname()[1]).replace("http://", "https://"))

        with pytest.raises(ClusterUnreachable) as raised:
            send(connect(file), "GET", "/version")

    assert str(raised.value) == "the Kubernetes API server cannot be reached: The handshake operation timed out"
