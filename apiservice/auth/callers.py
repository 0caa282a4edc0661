"""Authenticates and authorizes callers from the connection's certificate and the request's headers.

Identity headers count only if the front proxy proved itself in the TLS handshake; otherwise they are ignored. Reviews
of tokens and permissions are cached. A review that fails never counts as a yes.
"""

import asyncio
import contextlib
import hashlib
import time
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Generic, Protocol, TypeVar
from urllib.parse import unquote

from cachetools import LRUCache, TTLCache

from apiservice.auth.caller import (
    UNAUTHENTICATED,
    Attributes,
    Caller,
    Forbidden,
    Lane,
    ReviewUnavailable,
    Scope,
    Unauthorized,
)
from apiservice.auth.client_certificates import Chain, Peers
from apiservice.auth.cluster_settings import Authentication, ClusterUnreachable

Key = TypeVar("Key")
Answer = TypeVar("Answer")
Headers = tuple[tuple[bytes, bytes], ...]
_Wish = tuple[Caller, Attributes]

AUTHENTICATED = "system:authenticated"
MASTERS = "system:masters"
ANONYMOUS = Caller(name="system:anonymous", uid="", groups=(UNAUTHENTICATED,), extra=())

ALLOWED_KEPT_SECONDS = 60.0  # longer than the autoscaler's 15 s, so that most of its reads need no review
DENIED_KEPT_SECONDS = 10.0
TOKEN_KEPT_SECONDS = 30.0
BAD_TOKEN_KEPT_SECONDS = 10.0
MOST_KEPT = 4096  # answers of one kind
LONGEST_KEPT_PATH = 1024  # ASCII characters; no legitimate client sends longer paths, and they would fill the memory


class Reviews(Protocol):
    """Reviews by the Kubernetes API server; both methods raise ClusterUnreachable."""

    async def review_token(self, token: str, lane: Lane) -> Caller | None:
        """Returns the token's owner, or None if the token is invalid."""

    async def review_access(self, caller: Caller, attributes: Attributes, lane: Lane) -> tuple[bool, str]:
        """Returns whether the caller is allowed, and the authorizer's reason, which may be empty."""


class ClusterCallers:
    """Implements `Callers` as kube-apiserver does. All methods but `trust` belong to one event loop."""

    def __init__(self, reviews: Reviews, clock: Callable[[], float] = time.monotonic) -> None:
        self._reviews = reviews
        self._trust: _Trust | None = None
        self._tokens = _tokens(clock)
        self._accesses = _accesses(clock, Lane.KNOWN_CALLERS)
        self._accesses_of_strangers = _accesses(clock, Lane.STRANGERS)

    def trust(self, authentication: Authentication) -> None:
        """Uses these CAs and header names for all later requests, also on open connections. Callable from any thread."""
        self._trust = _Trust(authentication)

    @property
    def knows_front_proxy(self) -> bool:
        """Whether requests forwarded by kube-apiserver can be recognised; nothing can be served before that."""
        return self._trust is not None and self._trust.peers.knows_front_proxy

    def recall(self, scope: Scope) -> Caller | None:
        try:
            credential = self._credential(scope)
        except (Unauthorized, ReviewUnavailable):
            return None  # `identify` raises it
        if isinstance(credential, Caller):
            return credential
        return self._tokens.recall(credential.fingerprint)

    async def identify(self, scope: Scope) -> Caller:
        credential = self._credential(scope)
        if isinstance(credential, Caller):
            return credential
        caller = await self._tokens.ask(
            credential.fingerprint, lambda lane: self._review(credential, lane), is_kept=True
        )
        if caller is None:
            raise Unauthorized("the bearer token is not good")
        return caller

    def recall_permission(self, caller: Caller, attributes: Attributes) -> bool | None:
        if MASTERS in caller.groups:
            return True
        answer = self._accesses_of(caller).recall((caller, attributes))
        return None if answer is None else answer[0]

    async def authorize(self, caller: Caller, attributes: Attributes) -> None:
        if MASTERS in caller.groups:
            return
        is_allowed, reason = await self._accesses_of(caller).ask(
            (caller, attributes),
            lambda lane: self._reviews.review_access(caller, attributes, lane),
            is_kept=attributes.path.isascii() and len(attributes.path) <= LONGEST_KEPT_PATH,
        )
        if not is_allowed:
            raise Forbidden(caller, attributes, reason)

    def _accesses_of(self, caller: Caller) -> "_KeptAnswers[_Wish, _Access]":
        return self._accesses_of_strangers if UNAUTHENTICATED in caller.groups else self._accesses

    async def _review(self, token: "_Token", lane: Lane) -> Caller | None:
        caller = await self._reviews.review_token(token.text, lane)
        return None if caller is None else _with_authenticated(caller)

    def _credential(self, scope: Scope) -> "Caller | _Token":
        """Returns the caller, or the token to review. As in kube-apiserver, the certificate takes precedence."""
        chain: Chain = scope["state"].get("peer", ())
        if chain:
            caller = self._proven_by_certificate(chain, scope)
            if caller is not None:
                return caller
        return _bearer_token(scope) or ANONYMOUS

    def _proven_by_certificate(self, chain: Chain, scope: Scope) -> Caller | None:
        """Returns None if the certificate is valid but names nobody, or if a token may still identify the caller."""
        trust = self._trust
        if trust is None:
            raise ReviewUnavailable("the cluster's CA certificates are not known yet")
        verdict = trust.peers.verdict(chain)
        if verdict.is_front_proxy:
            return trust.remote_user(scope)
        if verdict.client is not None:
            name, groups = verdict.client
            return _with_authenticated(Caller(name=name, uid="", groups=groups, extra=()))
        if _bearer_token(scope) is None:
            raise Unauthorized("the client certificate is not one of this cluster's")
        return None


@dataclass(frozen=True, slots=True)
class _Token:
    text: str

    @property
    def fingerprint(self) -> bytes:
        """The cache's key, so that no credentials are kept in memory."""
        return hashlib.sha256(self.text.encode()).digest()


class _Trust:
    """One version of the cluster's authentication settings, and what was derived from it."""

    def __init__(self, authentication: Authentication) -> None:
        self.peers = Peers(authentication)
        self._user_headers = authentication.username_headers
        self._group_headers = authentication.group_headers
        self._uid_headers = authentication.uid_headers
        self._extra_prefixes = authentication.extra_prefixes
        self._names = frozenset(self._user_headers + self._group_headers + self._uid_headers)
        self._callers: LRUCache[Headers, Caller | None] = LRUCache(maxsize=512)

    def remote_user(self, scope: Scope) -> Caller | None:
        """Returns the user named in the proxy's headers. One connection carries requests of many users."""
        names, prefixes = self._names, self._extra_prefixes
        headers = tuple([pair for pair in scope["headers"] if pair[0] in names or pair[0].startswith(prefixes)])
        try:
            return self._callers[headers]
        except KeyError:
            self._callers[headers] = caller = self._named(headers)
            return caller

    def _named(self, headers: Headers) -> Caller | None:
        try:
            users = _values(headers, self._user_headers)
            if not users:
                return None
            groups, uids = _values(headers, self._group_headers), _values(headers, self._uid_headers)
            extra = self._extra(headers)
        except UnicodeDecodeError as error:
            raise Unauthorized("the proxy's identity headers are not UTF-8") from error
        uid = uids[0] if uids else ""
        return _with_authenticated(Caller(name=users[0], uid=uid, groups=groups, extra=extra))

    def _extra(self, headers: Headers) -> tuple[tuple[str, tuple[str, ...]], ...]:
        extra: dict[str, list[str]] = {}
        for prefix in self._extra_prefixes:
            for name, value in headers:
                if name.startswith(prefix):
                    extra.setdefault(unquote(name[len(prefix) :].decode()).lower(), []).append(value.decode())
        return tuple((key, tuple(values)) for key, values in sorted(extra.items()))


class _KeptAnswers(Generic[Key, Answer]):
    """Caches reviews; concurrent callers with the same question share one review.

    Positive and negative answers are cached separately, so that negative ones cannot evict positive ones. Renewals of
    positive answers have their own lane.
    """

    def __init__(
        self,
        is_good: Callable[[Answer], bool],
        kept_seconds: tuple[float, float],
        clock: Callable[[], float],
        first_lane: Lane,
    ) -> None:
        """`kept_seconds` is for positive and negative answers; `first_lane` for keys without a positive answer so far."""
        good_seconds, bad_seconds = kept_seconds
        self._is_good = is_good
        self._good: TTLCache[Key, Answer] = TTLCache(MOST_KEPT, good_seconds, clock)
        self._bad: TTLCache[Key, Answer] = TTLCache(MOST_KEPT, bad_seconds, clock)
        self._seen_good: LRUCache[Key, None] = LRUCache(MOST_KEPT)
        self._first_lane = first_lane
        self._under_way: dict[Key, asyncio.Task[Answer]] = {}

    def recall(self, key: Key) -> Answer | None:
        try:
            return self._good[key]  # `get` would look twice
        except KeyError:
            return self._bad.get(key)

    async def ask(self, key: Key, review: Callable[[Lane], Awaitable[Answer]], *, is_kept: bool) -> Answer:
        """Returns the cached answer or asks. ReviewUnavailable is not cached."""
        for kept in (self._good, self._bad):
            with contextlib.suppress(KeyError):
                return kept[key]
        task = self._under_way.get(key)
        if task is None:
            task = asyncio.create_task(self._review(key, review, is_kept=is_kept))
            self._under_way[key] = task
            task.add_done_callback(lambda done: self._finish(key, done))
        # Shielded: a client that disconnects must not cancel the review for the others.
        return await asyncio.shield(task)

    async def _review(self, key: Key, review: Callable[[Lane], Awaitable[Answer]], *, is_kept: bool) -> Answer:
        try:
            answer = await review(Lane.RENEWALS if key in self._seen_good else self._first_lane)
        except ClusterUnreachable as error:
            raise ReviewUnavailable(str(error)) from error
        if is_kept:
            self._keep(key, answer)
        return answer

    def _keep(self, key: Key, answer: Answer) -> None:
        if self._is_good(answer):
            self._good[key] = answer
            self._seen_good[key] = None
        else:
            self._bad[key] = answer
            self._seen_good.pop(key, None)

    def _finish(self, key: Key, done: asyncio.Task[Answer]) -> None:
        self._under_way.pop(key, None)
        if not done.cancelled():
            done.exception()  # retrieve it, or asyncio complains if every client disconnected


_Access = tuple[bool, str]
"""Whether it is allowed, and the authorizer's reason."""


def _tokens(clock: Callable[[], float]) -> _KeptAnswers[bytes, Caller | None]:
    seconds = (TOKEN_KEPT_SECONDS, BAD_TOKEN_KEPT_SECONDS)
    return _KeptAnswers(lambda caller: caller is not None, seconds, clock, Lane.STRANGERS)


def _accesses(clock: Callable[[], float], first_lane: Lane) -> _KeptAnswers[_Wish, _Access]:
    seconds = (ALLOWED_KEPT_SECONDS, DENIED_KEPT_SECONDS)
    return _KeptAnswers(lambda access: access[0], seconds, clock, first_lane)


def _with_authenticated(caller: Caller) -> Caller:
    """Adds the group of all authenticated users, on which permissions for discovery depend."""
    if caller.name == ANONYMOUS.name or AUTHENTICATED in caller.groups or UNAUTHENTICATED in caller.groups:
        return caller
    return Caller(name=caller.name, uid=caller.uid, groups=(*caller.groups, AUTHENTICATED), extra=caller.extra)


def _bearer_token(scope: Scope) -> _Token | None:
    for name, value in scope["headers"]:
        if name == b"authorization":
            scheme, _, text = value.decode("latin-1").strip().partition(" ")
            return _Token(text.strip()) if scheme.lower() == "bearer" and text.strip() else None
    return None


def _values(headers: Headers, names: tuple[bytes, ...]) -> tuple[str, ...]:
    """Returns the non-empty values of these headers, in the order of `names`."""
    return tuple(value.decode() for name in names for header, value in headers if header == name and value)
