"""Access tokens for OAUTHBEARER from an OIDC token endpoint, by client credentials.

They are fetched in a thread of their own and refreshed before they expire, so no connection waits for the endpoint."""

import base64
import json
import logging
import time
from collections.abc import Mapping
from contextlib import suppress
from threading import Condition, Event, Thread
from typing import Any
from urllib.parse import quote_plus

import urllib3
from kafka.errors import KafkaError
from kafka.net.sasl.oauth import AbstractTokenProvider

from adapter.settings.credentials import Login, TokenRequest
from adapter.tls import certificate_fault

logger = logging.getLogger(__name__)

FETCH_SECONDS = 10.0
REFRESH_AT = 0.7
"""Of a token's lifetime. Connections authenticate again after 0.85 of it or more, as the broker counts it."""
DEFAULT_LIFETIME_SECONDS = 300.0
"""Of a token that does not say it."""
RETRY_SECONDS = (1.0, 30.0)
"""The first pause after a failure, which doubles, and the longest one."""


class TokenUnavailable(KafkaError):  # type: ignore[misc]  # the library has no types
    """There is no valid token, and why; never shows a secret."""


class Tokens(AbstractTokenProvider):  # type: ignore[misc]  # as above
    """The newest token of one client; `start` begins to fetch, `close` ends it."""

    def __init__(self, login: Login, request: TokenRequest) -> None:
        super().__init__()
        self._login = login
        self._request = request
        self._changed = Condition()
        self._stopping: Event | None = None
        self._token, self._expires = "", 0.0
        self.problem = ""
        """Why the newest attempt failed; empty: it did not, or none has ended yet."""

    def start(self) -> None:
        if self._stopping is None:
            self._stopping = Event()
            Thread(target=self._run, args=(self._stopping,), name="kafka-tokens", daemon=True).start()

    def close(self) -> None:
        """Ends the thread; one that waits for the endpoint ends after its answer."""
        if self._stopping is not None:
            self._stopping.set()
            self._stopping = None

    def wait(self, seconds: float) -> bool:
        """Waits for the outcome of the first attempt."""
        with self._changed:
            return self._changed.wait_for(lambda: bool(self._token or self.problem), seconds)

    def token(self) -> str:
        """Returns at once; raises TokenUnavailable if there is no valid token."""
        with self._changed:
            if self._token and time.monotonic() < self._expires:
                return self._token
            raise TokenUnavailable(self.problem or f"{self._request.endpoint} has not answered yet")

    def extensions(self) -> Mapping[str, str]:
        return self._request.extensions

    def _run(self, stopping: Event) -> None:
        pause = RETRY_SECONDS[0]
        while not stopping.is_set():
            begun, problem = time.monotonic(), ""
            try:
                token, lifetime = self._fetched()
            except TokenUnavailable as error:
                problem, wait = str(error.args[0]), pause
                pause = min(2 * pause, RETRY_SECONDS[1])
            else:
                wait, pause = REFRESH_AT * lifetime, RETRY_SECONDS[0]
            with self._changed:
                if problem and problem != self.problem:
                    logger.warning("no new token: %s", problem)
                self.problem = problem
                if not problem:
                    self._token, self._expires = token, begun + lifetime
                self._changed.notify_all()
            stopping.wait(wait)

    def _fetched(self) -> tuple[str, float]:
        try:
            return fetched(self._login, self._request)
        except TokenUnavailable:
            raise
        except Exception as error:
            # Without this thread there would never be a token again.
            logger.exception("unexpected error while a token was fetched")
            what = f"token endpoint {self._request.endpoint} cannot be asked: {type(error).__name__}"
            raise TokenUnavailable(what) from error


def fetched(login: Login, request: TokenRequest) -> tuple[str, float]:
    """Returns a new token and its lifetime in seconds; raises TokenUnavailable."""
    where = f"token endpoint {request.endpoint}"
    fields = {"grant_type": "client_credentials", **({"scope": request.scope} if request.scope else {})}
    client = f"{quote_plus(login.username)}:{quote_plus(login.password)}"
    try:
        with urllib3.PoolManager(ssl_context=request.tls) as pool:
            reply = pool.request(
                "POST",
                request.endpoint,
                fields=fields,
                encode_multipart=False,
                headers={"Accept": "application/json", **urllib3.make_headers(basic_auth=client)},
                timeout=FETCH_SECONDS,
                retries=False,
                redirect=False,
            )
    except urllib3.exceptions.HTTPError as error:
        fault = certificate_fault(error, "tokenEndpointCaFile") or f"cannot be asked: {_reason(error)}"
        raise TokenUnavailable(f"{where} {fault}") from error
    content = _object_in(reply.data)
    if reply.status != 200:
        said = [str(content[key])[:200] for key in ("error", "error_description") if key in content]
        raise TokenUnavailable(f"{where} answers with status {reply.status}{': ' if said else ''}{', '.join(said)}")
    token = content.get("access_token")
    if not isinstance(token, str) or not token or not token.isprintable():
        raise TokenUnavailable(f"{where} answers without access_token")
    return token, _lifetime(content, token)


def _reason(error: urllib3.exceptions.HTTPError) -> str:
    cause = getattr(error, "reason", None) or error
    text = getattr(cause, "verify_message", None) or str(cause)
    return f"{text.rpartition('>: ')[2] or type(cause).__name__}"


def _object_in(data: bytes) -> dict[str, Any]:
    with suppress(ValueError):
        content = json.loads(data)
        if isinstance(content, dict):
            return content
    return {}


def _lifetime(content: Mapping[str, Any], token: str) -> float:
    """As the reply says, else as the token itself says if it is a JWT."""
    seconds = content.get("expires_in")
    if seconds is None:
        with suppress(ValueError, IndexError, KeyError):
            claims = token.split(".")[1]
            expires = json.loads(base64.urlsafe_b64decode(claims + "=" * (-len(claims) % 4)))["exp"]
            seconds = float(expires) - time.time()
    try:
        return max(1.0, float(seconds)) if seconds is not None else DEFAULT_LIFETIME_SECONDS
    except (TypeError, ValueError):
        return DEFAULT_LIFETIME_SECONDS
