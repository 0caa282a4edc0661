"""The cluster's settings for authenticating clients of extension API servers, read from its ConfigMap.

They follow its changes, so that a rotated CA needs no restart."""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from cryptography import x509
from pydantic import TypeAdapter, ValidationError

from adapter.errors import AdapterError

PATH = "/api/v1/namespaces/kube-system/configmaps"
ONE_NAME = ("fieldSelector", "metadata.name=extension-apiserver-authentication")
"""The Role we ship allows list and watch of this one name only."""

Data = Mapping[str, str]
"""The `data` of the ConfigMap kube-system/extension-apiserver-authentication."""
_TEXTS = TypeAdapter(tuple[str, ...])


class ClusterUnreachable(AdapterError):
    """The Kubernetes API server did not answer, or answered with an error, whose HTTP code `status` is."""

    def __init__(self, text: str, status: int | None = None) -> None:
        super().__init__(text)
        self.status = status

    @property
    def is_lasting(self) -> bool:
        """Whether a permission or the object is missing."""
        return self.status in {403, 404}


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


def authentication_of(data: Data) -> Authentication:
    """Raises AdapterError that names the key if the ConfigMap is unusable."""
    return Authentication(
        client_ca=_bundle(data, "client-ca-file"),
        requestheader_ca=_bundle(data, "requestheader-client-ca-file"),
        allowed_names=frozenset(_texts(data, "requestheader-allowed-names")),
        username_headers=_headers(data, "requestheader-username-headers"),
        group_headers=_headers(data, "requestheader-group-headers"),
        uid_headers=_headers(data, "requestheader-uid-headers"),
        extra_prefixes=_headers(data, "requestheader-extra-headers-prefix"),
    )


class AuthenticationFollower:
    """Passes each usable version of the ConfigMap to `on_change`; the watch of it calls the methods."""

    def __init__(self, on_change: Callable[[Authentication], None]) -> None:
        self._on_change = on_change
        self._newest: Authentication | None = None

    def listed(self, objects: Iterator[Mapping[str, Any]]) -> None:
        config_map = next(objects, None)
        if config_map is None:
            raise AdapterError("there is no ConfigMap kube-system/extension-apiserver-authentication")
        self._apply(config_map)

    def changed(self, event: str, changed: Mapping[str, Any]) -> None:
        if event != "DELETED":
            self._apply(changed)

    def _apply(self, config_map: Mapping[str, Any]) -> None:
        newest = authentication_of(config_map.get("data") or {})
        if newest != self._newest:
            self._on_change(newest)
            self._newest = newest
        if not newest.requestheader_ca:
            raise AdapterError("requestheader-client-ca-file is missing, so no front proxy can be recognised")


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
        raise AdapterError(f"{key} contains a certificate that cannot be read: {error}") from error
    return bundle if bundle.strip() else ""


def _headers(data: Data, key: str) -> tuple[bytes, ...]:
    return tuple(name.lower().encode() for name in _texts(data, key))


def _texts(data: Data, key: str) -> tuple[str, ...]:
    """Returns a JSON array of strings as kube-apiserver writes it; empty if the key is missing."""
    try:
        return _TEXTS.validate_json(data.get(key) or "[]")
    except ValidationError as error:
        raise AdapterError(f"{key} is not a JSON array of strings") from error
