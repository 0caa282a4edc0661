"""The cluster's settings for authenticating clients of extension API servers, read from its ConfigMap.

The watch follows changes, so that a rotated CA needs no restart."""

import logging
import random
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Protocol

from cryptography import x509
from pydantic import TypeAdapter, ValidationError

from adapter.errors import AdapterError
from adapter.repeating import Repeating

logger = logging.getLogger(__name__)

Data = Mapping[str, str]
"""The `data` of the ConfigMap kube-system/extension-apiserver-authentication."""
_TEXTS = TypeAdapter(tuple[str, ...])


class AuthenticationInvalid(AdapterError):
    """The ConfigMap is unusable; the message names the key."""


class ClusterUnreachable(AdapterError):
    """The Kubernetes API server did not answer, or answered with an error, whose HTTP code `status` is."""

    def __init__(self, text: str, status: int | None = None) -> None:
        super().__init__(text)
        self.status = status


@dataclass(frozen=True, slots=True)
class Authentication:
    """CA bundles in PEM ("" for none); header names and prefixes in lower case, as HTTP/1.1 parsers return them."""

    client_ca: str
    requestheader_ca: str
    allowed_names: frozenset[str]
    username_headers: tuple[bytes, ...]
    group_headers: tuple[bytes, ...]
    uid_headers: tuple[bytes, ...]
    extra_prefixes: tuple[bytes, ...]


class AuthenticationSource(Protocol):
    """The watch's view of a cluster. Every method blocks and raises ClusterUnreachable."""

    def read_authentication(self) -> tuple[Data | None, str]:
        """Returns the ConfigMap's data (None if it does not exist) and its resource version."""

    def follow_authentication(self, version: str) -> Iterator[Data]:
        """Yields the data after each change until the API server ends the watch."""

    def interrupt(self) -> None:
        """Makes `follow_authentication` return soon, now and in every later call."""


def authentication_of(data: Data) -> Authentication:
    return Authentication(
        client_ca=_bundle(data, "client-ca-file"),
        requestheader_ca=_bundle(data, "requestheader-client-ca-file"),
        allowed_names=frozenset(_texts(data, "requestheader-allowed-names")),
        username_headers=_headers(data, "requestheader-username-headers"),
        group_headers=_headers(data, "requestheader-group-headers"),
        uid_headers=_headers(data, "requestheader-uid-headers"),
        extra_prefixes=_headers(data, "requestheader-extra-headers-prefix"),
    )


class AuthenticationWatch(Repeating):
    """A thread that follows the ConfigMap and passes each usable version to `on_change`."""

    def __init__(
        self,
        source: AuthenticationSource,
        on_change: Callable[[Authentication], None],
        first_pause_seconds: float = 0.5,
        longest_pause_seconds: float = 30.0,
    ) -> None:
        super().__init__("authentication-watch")
        self._source = source
        self._on_change = on_change
        self._pauses = (first_pause_seconds, longest_pause_seconds)
        self._failures = 0
        self._newest: Authentication | None = None

    def stop(self, timeout_seconds: float) -> None:
        self._stopping.set()
        self._source.interrupt()
        super().stop(timeout_seconds)

    def turn(self) -> float:
        try:
            self._read_and_follow()
        except AdapterError as error:
            self._note_failure(error)
        return self._pause_seconds()

    def _read_and_follow(self) -> None:
        data, version = self._source.read_authentication()
        if data is None:
            raise AuthenticationInvalid("there is no ConfigMap kube-system/extension-apiserver-authentication")
        self._apply(data)
        if self._failures:
            logger.info("authentication settings of the cluster can be read again, after %d failures", self._failures)
        self._failures = 0
        for changed in self._source.follow_authentication(version):
            self._apply(changed)

    def _apply(self, data: Data) -> None:
        newest = authentication_of(data)
        if newest == self._newest or self._stopping.is_set():
            return
        self._on_change(newest)
        self._newest = newest
        logger.info("authentication settings of the cluster read: %s", _summary(newest))

    def _note_failure(self, error: AdapterError) -> None:
        if self._stopping.is_set():
            return
        self._failures += 1
        log = logger.warning if self._failures == 1 else logger.debug
        log("authentication settings of the cluster cannot be read, trying again: %s", error)

    def _pause_seconds(self) -> float:
        """Doubles after each failure, with jitter, so that replicas do not ask at the same time.

        The pause also follows a success, so that a watch that keeps ending at once is no busy loop."""
        first, longest = self._pauses
        pause: float = min(longest, first * 2 ** min(max(self._failures - 1, 0), 16))
        return pause * random.uniform(0.5, 1.0)  # noqa: S311 - jitter, no secret


def certificates_of(bundle: str) -> list[x509.Certificate]:
    """Returns the certificates of a PEM bundle; raises ValueError if one cannot be parsed."""
    try:
        return x509.load_pem_x509_certificates(bundle.encode()) if bundle.strip() else []
    except x509.InvalidVersion as error:
        raise ValueError(str(error)) from error


def _bundle(data: Data, key: str) -> str:
    bundle = data.get(key, "")
    try:
        certificates_of(bundle)
    except ValueError as error:
        raise AuthenticationInvalid(f"{key} contains a certificate that cannot be read: {error}") from error
    return bundle if bundle.strip() else ""


def _headers(data: Data, key: str) -> tuple[bytes, ...]:
    return tuple(name.lower().encode() for name in _texts(data, key))


def _texts(data: Data, key: str) -> tuple[str, ...]:
    """Returns a JSON array of strings as kube-apiserver writes it; empty if the key is missing."""
    try:
        return _TEXTS.validate_json(data.get(key) or "[]")
    except ValidationError as error:
        raise AuthenticationInvalid(f"{key} is not a JSON array of strings") from error


def _summary(authentication: Authentication) -> str:
    names = ", ".join(sorted(authentication.allowed_names)) or "any name"
    proxies, clients = (
        len(certificates_of(bundle)) for bundle in (authentication.requestheader_ca, authentication.client_ca)
    )
    return f"{proxies} CA certificates for front proxies ({names}), {clients} for clients"
