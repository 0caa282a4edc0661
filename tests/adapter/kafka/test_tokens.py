"""The thread that fetches tokens for OAUTHBEARER. What a real endpoint says is in tests/end_to_end/brokers."""

import asyncio
import base64
import itertools
import json
from collections.abc import Iterator
from contextlib import suppress
from http.server import BaseHTTPRequestHandler, HTTPServer
from threading import Thread

import pytest
from kafka.errors import SaslAuthenticationFailedError
from kafka.net.connection import KafkaConnection

from adapter import clock, repeating
from adapter.kafka import connections, tokens
from adapter.kafka.tokens import Tokens
from adapter.settings.client_certificate import trusting
from adapter.settings.credentials import Login, TokenRequest
from local.processes import wait_until


def test_an_unexpected_error_is_said_and_does_not_end_the_thread(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    attempts = itertools.count(1)

    def fetched(*_: object) -> tuple[str, float]:
        if next(attempts) == 1:
            raise RuntimeError("unforeseen")
        return "token", 60.0

    monkeypatch.setattr(tokens, "fetched", fetched)
    monkeypatch.setattr(repeating, "RETRY_SECONDS", 0.01)
    client = Tokens(Login("OAUTHBEARER"), TokenRequest("http://idp/token", None, {}, trusting([])))
    client.start()
    try:
        wait_until(lambda: bool(client._token), "a token after the error", 120)
        assert client.token() == "token"
    finally:
        client.close()
    assert "unexpected error in thread kafka-tokens" in caplog.text
    assert "unforeseen" in caplog.text


@pytest.mark.parametrize("seconds", [2**63 - 1, pytest.param(10**400, id="huge"), float("inf"), "1e308"])
def test_a_token_that_lasts_longer_than_a_day_is_refreshed_like_one_of_a_day(seconds: object) -> None:
    lifetime = tokens._lifetime({"expires_in": seconds})

    assert lifetime in {tokens.LONGEST_LIFETIME_SECONDS, tokens.DEFAULT_LIFETIME_SECONDS}
    assert tokens._lifetime({}) == tokens.DEFAULT_LIFETIME_SECONDS


@pytest.mark.parametrize("repeated", ["pass+word/1", "pass%2Bword%2F1", "Y2xpZW50OnBhc3MlMkJ3b3JkJTJGMQ=="])
def test_a_token_endpoint_that_repeats_the_secret_is_not_quoted(repeated: str) -> None:
    error = _refused({"error": "invalid_client", "error_description": f"you sent {'x' * 180}\n{repeated}"})

    assert error.endswith("answers with status 401: invalid_client, words that repeat a secret")


def test_the_words_of_a_token_endpoint_are_one_line() -> None:
    error = _refused({"error": "invalid_client", "error_description": "unknown\n2026-01-01 ERROR \x1b[31mforged"})

    assert error.endswith("invalid_client, unknown 2026-01-01 ERROR [31mforged")


@pytest.mark.parametrize("reply", [b"[" * 100_000, b" " * tokens.MOST_BYTES + b'{"access_token": "late"}'])
def test_of_an_unusual_reply_nothing_is_used(reply: bytes) -> None:
    assert _refused(reply, 200).endswith("answers without access_token")


def test_an_endpoint_that_sends_little_by_little_is_given_up(monkeypatch: pytest.MonkeyPatch) -> None:
    seconds = itertools.count(step=11)
    monkeypatch.setattr(clock, "monotonic", lambda: float(next(seconds)))

    assert "cannot be asked: no whole reply within 10 s" in _refused(iter([b" "] * 1000), 200)


def test_an_endpoint_that_refuses_the_connection_is_said_without_the_words_of_the_library() -> None:
    with pytest.raises(tokens.TokenUnavailable, match=r"http://127.0.0.1:1/ cannot be asked: Connection refused$"):
        tokens.fetched(Login("OAUTHBEARER"), TokenRequest("http://127.0.0.1:1/", None, {}, trusting([])))


@pytest.mark.parametrize("before", ["", "u", "lag"])
def test_a_broker_that_repeats_the_password_is_not_quoted(monkeypatch: pytest.MonkeyPatch, before: str) -> None:
    sent = f"{before}\0{before}\0pass+word/1"

    assert _refusal(monkeypatch, "PLAIN", f"you sent {sent}").endswith(": words that repeat a secret")
    for encode in (base64.b64encode, base64.urlsafe_b64encode):
        words = encode(f"{sent}?".encode()).decode()
        assert _refusal(monkeypatch, "SCRAM-SHA-512", words).endswith(": words that repeat a secret")
    assert _refusal(monkeypatch, "PLAIN", "locked").endswith(": locked")


@pytest.mark.parametrize("mechanism", ["OAUTHBEARER", "AWS_MSK_IAM"])
def test_a_broker_that_was_shown_a_token_is_not_quoted(monkeypatch: pytest.MonkeyPatch, mechanism: str) -> None:
    said = _refusal(monkeypatch, mechanism, "you sent eyJhbGciOiJSUzI1NiJ9")

    assert said.endswith(f": its words are not shown, because with {mechanism} they may repeat a token")


def _refusal(monkeypatch: pytest.MonkeyPatch, mechanism: str, words: str) -> str:
    """Returns what is said about a broker that refuses a login with these words."""

    async def refuse(*_: object) -> None:
        raise SaslAuthenticationFailedError(words)

    monkeypatch.setattr(KafkaConnection, "_sasl_authenticate", refuse)
    monkeypatch.setattr(connections, "PREPARED", {})
    connection = object.__new__(connections._Connection)
    connection.config = {"sasl_mechanism": mechanism, "sasl_plain_password": "pass+word/1"}
    with pytest.raises(SaslAuthenticationFailedError) as refusal:
        asyncio.run(connection._sasl_authenticate())
    return str(refusal.value)


def _refused(reply: object, status: int = 401) -> str:
    """Returns what is said about a token endpoint that replies this."""
    parts = (
        reply if isinstance(reply, Iterator) else [reply if isinstance(reply, bytes) else json.dumps(reply).encode()]
    )

    class Endpoint(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            self.rfile.read(int(self.headers["Content-Length"]))
            self.send_response(status)
            self.end_headers()
            with suppress(OSError):  # the client need not read all
                for part in parts:
                    self.wfile.write(part)

        def log_message(self, *_: object) -> None:
            pass

    with HTTPServer(("127.0.0.1", 0), Endpoint) as server:
        thread = Thread(target=server.handle_request)
        thread.start()
        request = TokenRequest(f"http://127.0.0.1:{server.server_port}/token", None, {}, trusting([]))
        with pytest.raises(tokens.TokenUnavailable) as error:
            tokens.fetched(Login("OAUTHBEARER", "client", "pass+word/1"), request)
        thread.join()
    return str(error.value.args[0])
