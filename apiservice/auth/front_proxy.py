"""Identifies users from the headers of the front proxy."""

from collections.abc import Iterable
from functools import lru_cache
from urllib.parse import unquote

from apiservice.auth.caller import Caller, Unauthorized, authenticated
from apiservice.auth.cluster_settings import Authentication

Headers = Iterable[tuple[bytes, bytes]]
_MOST_KEPT, _LONGEST_KEPT = 256, 4096  # identities, and bytes of each with 64 more for each header: at most 4 MB


def remote_user(settings: Authentication, headers: Headers) -> Caller | None:
    """Returns the user named in the proxy's headers. One connection carries requests of many users."""
    # kube-apiserver passes on what its clients send under names that only begin like these, such as X-Remote-User1.
    names, extra = settings.username_headers + settings.group_headers + settings.uid_headers, settings.extra_prefixes
    identity = tuple(header for header in headers if header[0] in names or header[0].startswith(extra))
    is_kept = sum(64 + len(name) + len(value) for name, value in identity) <= _LONGEST_KEPT
    return (_user_of if is_kept else _user_of.__wrapped__)(settings, identity)


@lru_cache(_MOST_KEPT)
def _user_of(settings: Authentication, headers: Headers) -> Caller | None:
    try:
        users = _values(headers, settings.username_headers)
        if not users:
            return None
        groups = _values(headers, settings.group_headers)
        uid = next(iter(_values(headers, settings.uid_headers)), "")
        return authenticated(Caller(users[0], uid, groups, _extra(headers, settings.extra_prefixes)))
    except UnicodeDecodeError as error:
        raise Unauthorized("the proxy's identity headers are not UTF-8") from error


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
