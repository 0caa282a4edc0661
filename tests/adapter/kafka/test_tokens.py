"""The thread that fetches tokens for OAUTHBEARER. What a real endpoint says is in tests/end_to_end/brokers."""

import itertools

import pytest

from adapter.kafka import tokens
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
    monkeypatch.setattr(tokens, "RETRY_SECONDS", (0.01, 0.01))
    client = Tokens(Login("OAUTHBEARER"), TokenRequest("http://idp/token", None, {}, trusting([])))
    client.start()
    try:
        wait_until(lambda: bool(client._token), "a token after the error", 30)
        assert client.token() == "token"
    finally:
        client.close()
    assert "no new token: token endpoint http://idp/token cannot be asked: RuntimeError" in caplog.text
    assert "unforeseen" in caplog.text
