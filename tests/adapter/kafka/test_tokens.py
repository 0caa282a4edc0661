"""The thread that fetches tokens for OAUTHBEARER. What a real endpoint says is in tests/end_to_end/brokers."""

import itertools

import pytest

from adapter import repeating
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
    monkeypatch.setattr(repeating, "RETRY_SECONDS", 0.01)
    client = Tokens(Login("OAUTHBEARER"), TokenRequest("http://idp/token", None, {}, trusting([])))
    client.start()
    try:
        wait_until(lambda: bool(client._token), "a token after the error", 30)
        assert client.token() == "token"
    finally:
        client.close()
    assert "unexpected error in thread kafka-tokens, trying again" in caplog.text
    assert "unforeseen" in caplog.text


@pytest.mark.parametrize("seconds", [2**63 - 1, pytest.param(10**400, id="huge"), float("inf"), "1e308"])
def test_a_token_that_lasts_longer_than_a_day_is_refreshed_like_one_of_a_day(seconds: object) -> None:
    lifetime = tokens._lifetime({"expires_in": seconds}, "no JWT")

    assert lifetime in {tokens.LONGEST_LIFETIME_SECONDS, tokens.DEFAULT_LIFETIME_SECONDS}
