"""Callers with fake reviews, and requests of the front proxy, of certificates and of tokens."""

import asyncio

from apiservice.auth.caller import Attributes, Caller, Lane, Scope
from apiservice.auth.callers import Callers
from apiservice.auth.cluster_settings import ClusterUnreachable
from tests.support.kubernetes.authorities import Authority, Issued, authentication

PROXIES, CLIENTS = Authority("front-proxy-ca"), Authority("kubernetes")
PROXY = PROXIES.issue("front-proxy-client")
AS_ALICE = [("x-remote-user", "alice"), ("x-remote-group", "team"), ("x-remote-group", "system:authenticated")]
ALICE = Caller(name="alice", uid="", groups=("team", "system:authenticated"), extra=())
READ_LAG = Attributes(verb="list", namespace="shop", group="external.metrics.k8s.io", version="v1beta1", resource="lag")


class FakeReviews:
    """The API server's answers from memory; counts what it is asked, and answers only while `gate` is open."""

    def __init__(self, tokens: dict[str, Caller] | None = None, allowed: tuple[str, ...] = ()) -> None:
        self.tokens, self.allowed, self.asked = tokens or {}, allowed, 0
        self.lanes: list[Lane] = []
        self.is_silent = False
        self.gate = asyncio.Event()
        self.gate.set()

    async def review_token(self, token: str, lane: Lane) -> Caller | None:
        self.lanes.append(lane)
        await self._answering()
        return self.tokens.get(token)

    async def review_access(self, caller: Caller, _attributes: Attributes, lane: Lane) -> tuple[bool, str]:
        self.lanes.append(lane)
        await self._answering()
        return caller.name in self.allowed, "RBAC: no role"

    async def _answering(self) -> None:
        self.asked += 1
        await self.gate.wait()
        if self.is_silent:
            raise ClusterUnreachable("silent")


class Clock:
    def __init__(self) -> None:
        self.now = 1000.0

    def __call__(self) -> float:
        return self.now


def trusting(reviews: FakeReviews | None = None, clock: Clock | None = None, **names: tuple[str, ...]) -> Callers:
    callers = Callers(reviews or FakeReviews(), clock or Clock())
    callers.trust(authentication(PROXIES, CLIENTS, **names))
    return callers


def request(*shown: Issued, headers: list[tuple[str, str]] | None = None) -> Scope:
    raw = [(name.encode(), value.encode()) for name, value in headers or []]
    return {"state": {"peer": tuple(part.der for part in shown)}, "headers": raw}


def identified(callers: Callers, scope: Scope) -> Caller:
    return asyncio.run(callers.identify(scope))
