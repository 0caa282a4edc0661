"""Who may ask: a connection's certificate and a request's headers in, a `Caller` or a refusal out.

Identity headers count only from a front proxy that proved itself in the TLS handshake; everybody else's are not even
looked at. What only the Kubernetes API server can tell (tokens, permissions) is asked once and kept for a while; what
it does not tell is never taken for a yes.
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

ALLOWED_KEPT_SECONDS = 60.0  # longer than the autoscaler's 15 s, so that most of its reads ask nobody
DENIED_KEPT_SECONDS = 10.0
TOKEN_KEPT_SECONDS = 30.0
BAD_TOKEN_KEPT_SECONDS = 10.0
MOST_KEPT = 4096  # answers of one kind
LONGEST_KEPT_PATH = 1024  # characters, ASCII; others come from nobody who means well, and would fill the memory


class Reviews(Protocol):
    """What the Kubernetes API server is asked; both raise ClusterUnreachable."""

    async def review_token(self, token: str, lane: Lane) -> Caller | None:
        """Whom the token belongs to; None: it is not good."""

    async def review_access(self, caller: Caller, attributes: Attributes, lane: Lane) -> tuple[bool, str]:
        """Whether this caller may do this, and the authorizer's reason, perhaps empty."""


class ClusterCallers:
    """`Callers` as the cluster's own API servers do it; all methods but `trust` are for one event loop."""

    def __init__(self, reviews: Reviews, clock: Callable[[], float] = time.monotonic) -> None:
        self._reviews = reviews
        self._trust: _Trust | None = None
        self._tokens = _tokens(clock)
        self._accesses = _accesses(clock, Lane.KNOWN_CALLERS)
        self._accesses_of_strangers = _accesses(clock, Lane.STRANGERS)

    def trust(self, authentication: Authentication) -> None:
        """Believe these CAs and header names from the next request on, also on open connections; from any thread."""
        self._trust = _Trust(authentication)

    @property
    def knows_front_proxy(self) -> bool:
        """Whether requests that kube-apiserver forwards can be told from others; before, nothing can be served."""
        return self._trust is not None and self._trust.peers.knows_front_proxy

    def recall(self, scope: Scope) -> Caller | None:
        """The caller of this request, if it is known without asking anybody."""
        try:
            credential = self._credential(scope)
        except (Unauthorized, ReviewUnavailable):
            return None  # `identify` will say it
        if isinstance(credential, Caller):
            return credential
        return self._tokens.recall(credential.fingerprint)

    async def identify(self, scope: Scope) -> Caller:
        """The caller of this request (`system:anonymous` without credentials); Unauthorized, ReviewUnavailable."""
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
        """Whether it is allowed, if that was answered a short time ago."""
        if MASTERS in caller.groups:
            return True
        answer = self._accesses_of(caller).recall((caller, attributes))
        return None if answer is None else answer[0]

    async def authorize(self, caller: Caller, attributes: Attributes) -> None:
        """Return if it is allowed; else Forbidden, ReviewUnavailable."""
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
        """The caller, or the token that says who it is. As in kube-apiserver the certificate goes before the token."""
        chain: Chain = scope["state"].get("peer", ())
        if chain:
            caller = self._proven_by_certificate(chain, scope)
            if caller is not None:
                return caller
        return _bearer_token(scope) or ANONYMOUS

    def _proven_by_certificate(self, chain: Chain, scope: Scope) -> Caller | None:
        """None: the certificate is good and names nobody, or another credential may still do so."""
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
        """What tokens are kept by, so that memory holds no credentials."""
        return hashlib.sha256(self.text.encode()).digest()


class _Trust:
    """One state of the cluster's authentication settings, with what was worked out under it."""

    def __init__(self, authentication: Authentication) -> None:
        self.peers = Peers(authentication)
        self._user_headers = authentication.username_headers
        self._group_headers = authentication.group_headers
        self._uid_headers = authentication.uid_headers
        self._extra_prefixes = authentication.extra_prefixes
        self._names = frozenset(self._user_headers + self._group_headers + self._uid_headers)
        self._callers: LRUCache[Headers, Caller | None] = LRUCache(maxsize=512)

    def remote_user(self, scope: Scope) -> Caller | None:
        """Whom the proxy's headers name. Read anew for each request: one connection carries many users."""
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
    """Answers of reviews, kept for a while; callers who ask the same at once share one review.

    Good and bad answers are kept apart, so that no number of bad ones evicts a good one. What was good is reviewed
    again in a lane of its own, so that it does not wait for what was never seen good.
    """

    def __init__(
        self,
        is_good: Callable[[Answer], bool],
        kept_seconds: tuple[float, float],
        clock: Callable[[], float],
        first_lane: Lane,
    ) -> None:
        """`kept_seconds`: of good and of bad answers. `first_lane`: of what was never seen good."""
        good_seconds, bad_seconds = kept_seconds
        self._is_good = is_good
        self._good: TTLCache[Key, Answer] = TTLCache(MOST_KEPT, good_seconds, clock)
        self._bad: TTLCache[Key, Answer] = TTLCache(MOST_KEPT, bad_seconds, clock)
        self._seen_good: LRUCache[Key, None] = LRUCache(MOST_KEPT)
        self._first_lane = first_lane
        self._under_way: dict[Key, asyncio.Task[Answer]] = {}

    def recall(self, key: Key) -> Answer | None:
        """The kept answer, if there is one."""
        try:
            return self._good[key]  # `get` would look twice
        except KeyError:
            return self._bad.get(key)

    async def ask(self, key: Key, review: Callable[[Lane], Awaitable[Answer]], *, is_kept: bool) -> Answer:
        """The kept answer, or that of the review; ReviewUnavailable is not kept, so that the next one asks again."""
        for kept in (self._good, self._bad):
            with contextlib.suppress(KeyError):
                return kept[key]
        task = self._under_way.get(key)
        if task is None:
            task = asyncio.create_task(self._review(key, review, is_kept=is_kept))
            self._under_way[key] = task
            task.add_done_callback(lambda done: self._finish(key, done))
        # Shielded: one client that goes away must not take the answer from the others.
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
            done.exception()  # looked at, or asyncio would complain where every client went away


_Access = tuple[bool, str]
"""Whether it is allowed, and the authorizer's reason."""


def _tokens(clock: Callable[[], float]) -> _KeptAnswers[bytes, Caller | None]:
    seconds = (TOKEN_KEPT_SECONDS, BAD_TOKEN_KEPT_SECONDS)
    return _KeptAnswers(lambda caller: caller is not None, seconds, clock, Lane.STRANGERS)


def _accesses(clock: Callable[[], float], first_lane: Lane) -> _KeptAnswers[_Wish, _Access]:
    seconds = (ALLOWED_KEPT_SECONDS, DENIED_KEPT_SECONDS)
    return _KeptAnswers(lambda access: access[0], seconds, clock, first_lane)


def _with_authenticated(caller: Caller) -> Caller:
    """Add the group of everybody who proved who they are; discovery's permissions hang on it."""
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
    """What the headers of these names say, by the order of the names; empty ones say nothing."""
    return tuple(value.decode() for name in names for header, value in headers if header == name and value)
