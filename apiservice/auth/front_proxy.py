"""Identifies users from the headers of the front proxy."""

from urllib.parse import unquote

from cachetools import LRUCache

from apiservice.auth.caller import Caller, Scope, Unauthorized, authenticated
from apiservice.auth.client_certificates import Peers
from apiservice.auth.cluster_settings import Authentication

Headers = tuple[tuple[bytes, bytes], ...]


class Trust:
    """One version of the cluster's authentication settings, and what was derived from it."""

    def __init__(self, authentication: Authentication) -> None:
        self.peers = Peers(authentication)
        self._settings = named = authentication
        self._names = frozenset(named.username_headers + named.group_headers + named.uid_headers)
        self._callers: LRUCache[Headers, Caller | None] = LRUCache(maxsize=512)

    def remote_user(self, scope: Scope) -> Caller | None:
        """Returns the user named in the proxy's headers. One connection carries requests of many users."""
        names, prefixes = self._names, self._settings.extra_prefixes
        headers = tuple([pair for pair in scope["headers"] if pair[0] in names or pair[0].startswith(prefixes)])
        try:
            return self._callers[headers]
        except KeyError:
            self._callers[headers] = caller = self._named(headers)
            return caller

    def _named(self, headers: Headers) -> Caller | None:
        try:
            users = _values(headers, self._settings.username_headers)
            if not users:
                return None
            groups = _values(headers, self._settings.group_headers)
            uid = next(iter(_values(headers, self._settings.uid_headers)), "")
            extra = self._extra(headers)
        except UnicodeDecodeError as error:
            raise Unauthorized("the proxy's identity headers are not UTF-8") from error
        return authenticated(Caller(name=users[0], uid=uid, groups=groups, extra=extra))

    def _extra(self, headers: Headers) -> tuple[tuple[str, tuple[str, ...]], ...]:
        extra: dict[str, list[str]] = {}
        for prefix in self._settings.extra_prefixes:
            for name, value in headers:
                if name.startswith(prefix):
                    extra.setdefault(unquote(name[len(prefix) :].decode()).lower(), []).append(value.decode())
        return tuple((key, tuple(values)) for key, values in sorted(extra.items()))


def _values(headers: Headers, names: tuple[bytes, ...]) -> tuple[str, ...]:
    """Returns the non-empty values of these headers, in the order of `names`."""
    return tuple(value.decode() for name in names for header, value in headers if header == name and value)
