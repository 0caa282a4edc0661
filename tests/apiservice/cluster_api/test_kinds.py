"""Kinds of resources from the discovery of a fake API server."""

import asyncio
import json
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest

from apiservice.cluster_api import kinds as kinds_module
from apiservice.cluster_api.connection import connect
from apiservice.cluster_api.kinds import ClusterKinds
from tests.support.kubernetes.fake_cluster import kubeconfig_text
from tests.support.kubernetes.fakes import FixedClock

STRIMZI = "kafka.strimzi.io"
TOPICS = f"kafkatopics.{STRIMZI}"


def listed(version: str, **kinds: str) -> dict[str, Any]:
    return {"groupVersion": version, "resources": [{"name": name, "kind": kind} for name, kind in kinds.items()]}


def group(*versions: str) -> dict[str, Any]:
    named = [{"groupVersion": version} for version in versions]
    return {"preferredVersion": named[-1], "versions": named}


class Discovery:
    """Answers what `documents` has, and remembers what it was asked; `gate` holds up what is `frozen`, or all."""

    def __init__(self) -> None:
        self.documents: dict[str, object] = {
            "/api/v1": listed("v1", services="Service", configmaps="ConfigMap"),
            f"/apis/{STRIMZI}": group(f"{STRIMZI}/v1beta1", f"{STRIMZI}/v1beta2"),
            f"/apis/{STRIMZI}/v1beta1": listed(f"{STRIMZI}/v1beta1", kafkatopics="OldTopic", kafkausers="KafkaUser"),
            f"/apis/{STRIMZI}/v1beta2": listed(f"{STRIMZI}/v1beta2", kafkatopics="KafkaTopic"),
        }
        self.paths: list[str] = []
        self.frozen: set[str] = set()
        self.gate = threading.Event()
        self.gate.set()


@pytest.fixture
def discovery() -> Discovery:
    return Discovery()


@pytest.fixture
def clock() -> FixedClock:
    return FixedClock()


@pytest.fixture
def kinds(
    discovery: Discovery, clock: FixedClock, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> Iterator[ClusterKinds]:
    """With a deadline that a busy machine keeps to."""
    monkeypatch.setattr(kinds_module, "DEADLINE_SECONDS", 30.0)

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_GET(self) -> None:
            discovery.paths.append(self.path)
            if not discovery.frozen or self.path in discovery.frozen:
                discovery.gate.wait(60)
            document = discovery.documents.get(self.path)
            body = json.dumps(document if document is not None else {"message": "not found"}).encode()
            self.send_response(404 if document is None else 200)
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, format: str, *args: object) -> None:  # noqa: A002 - the library's name
            """Tests are quiet."""

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=server.serve_forever, args=(0.05,))
    thread.start()
    path = tmp_path / "kubeconfig.yaml"
    path.write_text(kubeconfig_text(server.server_address[1]))
    found = ClusterKinds(connect(path), clock)
    yield found
    discovery.gate.set()
    found.close()
    server.shutdown()
    server.server_close()
    thread.join()


@pytest.mark.parametrize(
    ("resource", "kind"),
    [
        ("configmaps", ("ConfigMap", "v1")),
        (TOPICS, ("KafkaTopic", f"{STRIMZI}/v1beta2")),
        (f"kafkausers.{STRIMZI}", ("KafkaUser", f"{STRIMZI}/v1beta1")),
        (f"kafkas.{STRIMZI}", None),
        ("widgets.example.com", None),
        ("not a resource", None),
        ("a?.b", None),
    ],
)
def test_a_kind_is_that_of_the_preferred_version_which_has_the_resource(
    kinds: ClusterKinds, resource: str, kind: tuple[str, str] | None
) -> None:
    assert asyncio.run(kinds.of(resource)) == kind


def test_what_is_no_name_of_a_resource_is_never_sent(kinds: ClusterKinds, discovery: Discovery) -> None:
    for resource in ("a?.b", "..", "a.b/../c", "A.b", "a.%2e"):
        asyncio.run(kinds.of(resource))

    assert discovery.paths == []


def test_a_group_is_read_once_for_all_its_resources_and_again_after_ten_minutes(
    kinds: ClusterKinds, discovery: Discovery, clock: FixedClock
) -> None:
    asyncio.run(kinds.of(TOPICS))
    asyncio.run(kinds.of(f"kafkausers.{STRIMZI}"))
    assert len(discovery.paths) == 3

    clock.seconds += 601
    asyncio.run(kinds.of(TOPICS))
    assert len(discovery.paths) == 6


def test_a_resource_that_is_missing_is_sought_again_after_half_a_minute(
    kinds: ClusterKinds, discovery: Discovery, clock: FixedClock
) -> None:
    for _ in range(2):
        asyncio.run(kinds.of("secrets"))
    assert discovery.paths == ["/api/v1"]

    discovery.documents["/api/v1"] = listed("v1", secrets="Secret")
    clock.seconds += 31
    assert asyncio.run(kinds.of("secrets")) == ("Secret", "v1")
    assert asyncio.run(kinds.of("configmaps")) == ("ConfigMap", "v1"), "what was known before"


def test_concurrent_readers_share_one_request(kinds: ClusterKinds, discovery: Discovery) -> None:
    async def ask() -> list[tuple[str, str] | None]:
        return await asyncio.gather(*(kinds.of("configmaps") for _ in range(20)))

    assert asyncio.run(ask()) == [("ConfigMap", "v1")] * 20
    assert discovery.paths == ["/api/v1"]


def test_a_server_that_does_not_answer_delays_a_reply_by_the_deadline_and_only_once(
    kinds: ClusterKinds, discovery: Discovery, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(kinds_module, "DEADLINE_SECONDS", 0.2)
    discovery.gate.clear()

    assert [asyncio.run(kinds.of(TOPICS)) for _ in range(3)] == [None] * 3
    assert len(discovery.paths) <= 1, "none if the machine is too busy to send it in time"


def test_a_group_whose_server_hangs_delays_no_other(kinds: ClusterKinds, discovery: Discovery) -> None:
    discovery.frozen = {f"/apis/{STRIMZI}"}
    discovery.gate.clear()

    async def ask() -> list[tuple[str, str] | None]:
        hanging = asyncio.create_task(kinds.of(TOPICS))
        while not (discovery.paths or hanging.done()):
            await asyncio.sleep(0.001)
        found = await kinds.of("configmaps")
        discovery.gate.set()
        return [found, await hanging]

    assert asyncio.run(ask()) == [("ConfigMap", "v1"), ("KafkaTopic", f"{STRIMZI}/v1beta2")]


@pytest.mark.parametrize("document", [[], {"resources": 5}, {"resources": [{"name": "x"}]}, {"resources": ["x"]}])
def test_a_server_that_sends_anything_else_has_no_kinds(
    kinds: ClusterKinds, discovery: Discovery, document: object
) -> None:
    discovery.documents["/api/v1"] = document

    assert asyncio.run(kinds.of("configmaps")) is None
