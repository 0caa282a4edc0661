"""The adapter beside another server of external metrics, reached by real TLS connections."""

import asyncio
import socket
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
from fastapi import Response

from adapter.conditions import UPSTREAM, Conditions
from adapter.settings.models import UpstreamSettings
from apiservice.api_group import EXTERNAL, ApiGroup
from apiservice.http.read_paths import Read
from apiservice.http.status import UpstreamUnavailable, status_of
from apiservice.upstream.live import Upstream, Upstreams
from tests.support.kubernetes.authorities import Authority
from tests.support.kubernetes.fakes import V1BETA1, FixedClock
from tests.support.kubernetes.other_server import HOST, NAMESPACE, SERVICE, OtherServer

NAME = f"the upstream {NAMESPACE}/{SERVICE}"
THEIRS = f"{V1BETA1}/namespaces/shop/queue"


@dataclass
class Beside:
    """The other server, and what the adapter has for it."""

    other: OtherServer
    authority: Authority
    folder: Path
    clock: FixedClock = field(default_factory=FixedClock)
    tokens: list[str] = field(default_factory=lambda: ["Bearer first"])
    settings: UpstreamSettings | None = None
    groups: tuple[ApiGroup, ...] = (EXTERNAL,)

    def __post_init__(self) -> None:
        self.ca_file = self.folder / "ca.crt"
        self.ca_file.write_text(self.authority.pem)
        self.settings = self.settings_with()
        self.upstreams = self.upstreams_with(Conditions())

    def upstreams_with(self, conditions: Conditions) -> Upstreams:
        return Upstreams(self.groups, UPSTREAM, lambda: self.settings, lambda: self.tokens[-1], conditions, self.clock)

    def settings_with(self, **changes: object) -> UpstreamSettings:
        place = {"service": SERVICE, "namespace": NAMESPACE, "port": self.other.port, "caFile": str(self.ca_file)}
        return UpstreamSettings.model_validate({**place, **changes})

    @property
    def upstream(self) -> Upstream:
        found = self.upstreams.current
        assert found is not None
        return found

    def answer(self, metric: str = "queue", query: str = "", namespace: str = "shop") -> Response:
        """Raises what the read raises."""
        return asyncio.run(self.upstream.answer(EXTERNAL, Read(namespace, metric), query.encode()))

    def read(self, metric: str = "queue", query: str = "", namespace: str = "shop") -> bytes:
        """The body of a 200."""
        response = self.answer(metric, query, namespace)
        assert response.status_code == 200
        return bytes(response.body)

    def refusal(self, metric: str = "queue") -> str:
        with pytest.raises(UpstreamUnavailable) as caught:
            self.read(metric)
        assert status_of(caught.value).code == 503
        return str(caught.value).removeprefix(f"{NAME} ")


def resolve_here(monkeypatch: pytest.MonkeyPatch) -> None:
    found: Callable[..., Any] = socket.getaddrinfo
    monkeypatch.setattr(socket, "getaddrinfo", lambda host, *rest: found(host.replace(HOST, "127.0.0.1"), *rest))


def reads(beside: Beside) -> int:
    return sum("namespaces" in target for target, _ in beside.other.asked)
