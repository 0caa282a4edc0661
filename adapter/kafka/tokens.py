"""Access tokens for OAUTHBEARER from an OIDC token endpoint, by client credentials.

They are fetched in a thread of their own and refreshed before they expire, so no connection waits for the endpoint."""

from collections.abc import Mapping
from threading import Condition
from typing import Any
from urllib.parse import quote_plus

import urllib3
from kafka.errors import KafkaError
from kafka.net.sasl.oauth import AbstractTokenProvider

from adapter import clock
from adapter.errors import quoted_words
from adapter.https import body_within, object_in, reason_of
from adapter.repeating import Repeated
from adapter.settings.credentials import Login, TokenRequest
from adapter.tls import certificate_fault

FETCH_SECONDS = 10.0
MOST_BYTES = 1024 * 1024
"""Of a reply; a longer one has no token."""
REFRESH_AT = 0.7
"""Of a token's lifetime. Connections authenticate again after 0.85 of it or more, as the broker counts it."""
DEFAULT_LIFETIME_SECONDS = 300.0
"""Of a token whose reply does not say it."""
LONGEST_LIFETIME_SECONDS = 86_400.0
"""A token that says more, or never expires, is refreshed as if it said this."""
RETRY_SECONDS = (1.0, 30.0)
"""The first pause after a failure, which doubles, and the longest one."""


class TokenUnavailable(KafkaError):  # type: ignore[misc]  # the library has no types
    """There is no valid token, and why; never shows a secret."""


class Tokens(AbstractTokenProvider):  # type: ignore[misc]  # as above
    """The newest token of one client; `start` begins to fetch, `close` ends it, and `start` may follow again."""

    def __init__(self, login: Login, request: TokenRequest) -> None:
        super().__init__()
        self._login = login
        self._request = request
        self._changed = Condition()
        self._refreshing: Repeated | None = None
        self._pause = RETRY_SECONDS[0]
        self._token, self._expires = "", 0.0
        self.problem = ""
        """Why the newest attempt failed; empty: it did not, or none has ended yet."""

    def start(self) -> None:
        if self._refreshing is None:
            self._refreshing = Repeated("kafka-tokens", self.refresh)
            self._refreshing.start()

    def close(self) -> None:
        """Ends the thread; one that waits for the endpoint ends after its answer."""
        if self._refreshing is not None:
            self._refreshing.stop(0.0)
            self._refreshing = None

    def wait(self, seconds: float) -> bool:
        """Waits for the outcome of the first attempt."""
        with self._changed:
            return self._changed.wait_for(lambda: bool(self._token or self.problem), seconds)

    def token(self) -> str:
        """Returns at once; raises TokenUnavailable if there is no valid token."""
        with self._changed:
            if self._token and clock.monotonic() < self._expires:
                return self._token
            raise TokenUnavailable(self.problem or f"{self._request.endpoint} has not answered yet")

    def extensions(self) -> Mapping[str, str]:
        return self._request.extensions

    def refresh(self) -> float:
        """Returns the seconds until the next time."""
        begun, problem = clock.monotonic(), ""
        try:
            token, lifetime = fetched(self._login, self._request)
        except TokenUnavailable as error:
            problem, wait = str(error.args[0]), self._pause
            self._pause = min(2 * wait, RETRY_SECONDS[1])
        else:
            wait, self._pause = REFRESH_AT * lifetime, RETRY_SECONDS[0]
        with self._changed:
            self.problem = problem
            if not problem:
                self._token, self._expires = token, begun + lifetime
            self._changed.notify_all()
        return wait


def fetched(login: Login, request: TokenRequest) -> tuple[str, float]:
    """Returns a new token and its lifetime in seconds; raises TokenUnavailable."""
    where = f"token endpoint {request.endpoint}"
    fields = {"grant_type": "client_credentials", **({"scope": request.scope} if request.scope else {})}
    client, secret = quote_plus(login.username), quote_plus(login.password)
    authorization = urllib3.make_headers(basic_auth=f"{client}:{secret}")
    begun = clock.monotonic()
    try:
        with urllib3.PoolManager(ssl_context=request.tls) as pool:
            reply = pool.request(
                "POST",
                request.endpoint,
                fields=fields,
                encode_multipart=False,
                headers={"Accept": "application/json", **authorization},
                timeout=FETCH_SECONDS,
                retries=False,
                redirect=False,
                preload_content=False,
            )
            content = object_in(body_within(reply, MOST_BYTES, begun, FETCH_SECONDS))
    except urllib3.exceptions.HTTPError as error:
        fault = certificate_fault(error, "tokenEndpointCaFile") or f"cannot be asked: {reason_of(error)}"
        raise TokenUnavailable(f"{where} {fault}") from error
    if reply.status != 200:
        words = [str(content[key]) for key in ("error", "error_description") if key in content]
        said = [quoted_words(each, login.password, secret)[:200] for each in words]
        raise TokenUnavailable(f"{where} answers with status {reply.status}{': ' if said else ''}{', '.join(said)}")
    token = content.get("access_token")
    if not isinstance(token, str) or not token or not token.isprintable():
        raise TokenUnavailable(f"{where} answers without access_token")
    return token, _lifetime(content)


def _lifetime(content: Mapping[str, Any]) -> float:
    try:
        return min(max(1.0, float(content["expires_in"])), LONGEST_LIFETIME_SECONDS)
    except (LookupError, TypeError, ValueError, OverflowError):
        return DEFAULT_LIFETIME_SECONDS
