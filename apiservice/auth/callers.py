"""Authenticates and authorizes callers from the connection's certificate and the request's headers.

Identity headers count only if the front proxy proved itself in the TLS handshake; otherwise they are ignored. Reviews
of tokens and permissions are cached. A review that fails never counts as a yes."""

import hashlib
from collections.abc import Callable
from typing import Protocol

from adapter import clock
from apiservice.auth.caller import (
    ANONYMOUS,
    UNAUTHENTICATED,
    Attributes,
    Caller,
    Forbidden,
    Lane,
    Scope,
    Unauthorized,
    authenticated,
)
from apiservice.auth.client_certificates import Chain, Peers
from apiservice.auth.cluster_settings import Authentication, ClusterUnreachable
from apiservice.auth.front_proxy import remote_user
from apiservice.auth.review_cache import ReviewCache

_Wish = tuple[Caller, Attributes]

MASTERS = "system:masters"

ALLOWED_KEPT_SECONDS = 60.0  # longer than the autoscaler's 15 s, so that most of its reads need no review
DENIED_KEPT_SECONDS = 10.0
TOKEN_KEPT_SECONDS = 30.0
BAD_TOKEN_KEPT_SECONDS = 10.0
LONGEST_KEPT_PATH = 1024  # ASCII characters; no legitimate client sends longer paths, and they would fill the memory


class Reviews(Protocol):
    """Reviews by the Kubernetes API server; both methods raise ClusterUnreachable."""

    async def review_token(self, token: str, lane: Lane) -> Caller | None:
        """Returns the token's owner, or None if the token is invalid."""

    async def review_access(self, caller: Caller, attributes: Attributes, lane: Lane) -> tuple[bool, str]:
        """Returns whether the caller is allowed, and the authorizer's reason, which may be empty."""


class Callers:
    """Decides as kube-apiserver does. All methods but `trust` belong to one event loop."""

    def __init__(self, reviews: Reviews, clock: Callable[[], float] = clock.monotonic) -> None:
        self._reviews = reviews
        self._peers: Peers | None = None
        seconds = (TOKEN_KEPT_SECONDS, BAD_TOKEN_KEPT_SECONDS)
        self._tokens: ReviewCache[bytes, Caller | None] = ReviewCache(
            lambda caller: caller is not None, seconds, clock, Lane.STRANGERS
        )
        self._accesses = _accesses(clock, Lane.KNOWN_CALLERS)
        self._accesses_of_strangers = _accesses(clock, Lane.STRANGERS)

    def trust(self, authentication: Authentication) -> None:
        """Uses these CAs and header names for all later requests, also on open connections. From any thread."""
        self._peers = Peers(authentication)

    async def identify(self, scope: Scope) -> Caller:
        """Returns the caller (`system:anonymous` without credentials); raises Unauthorized or ClusterUnreachable."""
        credential = self._credential(scope)
        if isinstance(credential, Caller):
            return credential
        fingerprint = hashlib.sha256(credential.encode()).digest()
        caller = await self._tokens.ask(fingerprint, lambda lane: self._review(credential, lane), is_kept=True)
        if caller is None:
            raise Unauthorized("the bearer token is invalid")
        return caller

    async def authorize(self, caller: Caller, attributes: Attributes) -> None:
        """Returns if the caller is allowed; raises Forbidden or ClusterUnreachable otherwise."""
        if MASTERS in caller.groups:
            return
        accesses = self._accesses_of_strangers if UNAUTHENTICATED in caller.groups else self._accesses
        is_allowed, reason = await accesses.ask(
            (caller, attributes),
            lambda lane: self._reviews.review_access(caller, attributes, lane),
            is_kept=attributes.path.isascii() and len(attributes.path) <= LONGEST_KEPT_PATH,
        )
        if not is_allowed:
            raise Forbidden(caller, attributes, reason)

    async def _review(self, token: str, lane: Lane) -> Caller | None:
        caller = await self._reviews.review_token(token, lane)
        return None if caller is None else authenticated(caller)

    def _credential(self, scope: Scope) -> Caller | str:
        """Returns the caller, or the token to review. As in kube-apiserver, the certificate takes precedence."""
        chain: Chain = scope["state"].get("peer", ())
        if chain:
            caller = self._proven_by_certificate(chain, scope)
            if caller is not None:
                return caller
        return _bearer_token(scope) or ANONYMOUS

    def _proven_by_certificate(self, chain: Chain, scope: Scope) -> Caller | None:
        """Returns None if the certificate is valid but names nobody, or if a token may still identify the caller."""
        peers = self._peers
        if peers is None:
            raise ClusterUnreachable("the cluster's CA certificates are not known yet")
        proof = peers.proof_of(chain)
        if proof.is_front_proxy:
            return remote_user(peers.authentication, scope["headers"])
        if proof.client is not None:
            return proof.client
        if _bearer_token(scope) is None:
            raise Unauthorized("the client certificate was not issued by this cluster's CAs")
        return None


_Access = tuple[bool, str]
"""Whether it is allowed, and the authorizer's reason."""


def _accesses(clock: Callable[[], float], first_lane: Lane) -> ReviewCache[_Wish, _Access]:
    return ReviewCache(lambda access: access[0], (ALLOWED_KEPT_SECONDS, DENIED_KEPT_SECONDS), clock, first_lane)


def _bearer_token(scope: Scope) -> str | None:
    for name, value in scope["headers"]:
        if name == b"authorization":
            scheme, _, text = value.decode("latin-1").strip().partition(" ")
            return (text.strip() or None) if scheme.lower() == "bearer" else None
    return None
