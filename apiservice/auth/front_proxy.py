"""Identifies users from the headers of the front proxy."""

from collections.abc import Iterable
from urllib.parse import unquote

from apiservice.auth.caller import Caller, Unauthorized, authenticated
from apiservice.auth.cluster_settings import Authentication

Headers = Iterable[tuple[bytes, bytes]]


def remote_user(settings: Authentication, headers: Headers) -> Caller | None:
    """Returns the user named in the proxy's headers. One connection carries requests of many users."""
    try:
        users = _values(headers, settings.username_headers)
        if not users:
            return None
        groups = _values(headers, settings.group_headers)
        uid = next(iter(_values(headers, settings.uid_headers)), "")
        extra = _extra(headers, settings.extra_prefixes)
    except UnicodeDecodeError as error:
        raise Unauthorized("the proxy's identity headers are not UTF-8") from error
    return authenticated(Caller(name=users[0], uid=uid, groups=groups, extra=extra))


def _extra(headers: Headers, prefixes: tuple[bytes, ...]) -> tuple[tuple[str, tuple[str, ...]], ...]:
    extra: dict[str, list[str]] = {}
    for prefix in prefixes:
        for name, value in headers:
            if name.startswith(prefix):
                extra.setdefault(unquote(name[len(prefix) :].decode()).lower(), []).append(value.decode())
    return tuple((key, tuple(values)) for key, values in sorted(extra.items()))


def _values(headers: Headers, names: tuple[bytes, ...]) -> tuple[str, ...]:
    """Returns the non-empty values of these headers, in the order of `names`."""
    return tuple(value.decode() for name in names for header, value in headers if header == name and value)
