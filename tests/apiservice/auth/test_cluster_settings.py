import pytest

from adapter.errors import AdapterError
from apiservice.auth.cluster_settings import Authentication, AuthenticationFollower, authentication_of
from tests.support.kubernetes.authorities import (
    config_map_data,
)
from tests.support.kubernetes.callers import CLIENTS, PROXIES


@pytest.mark.parametrize(
    ("key", "text"),
    [
        ("client-ca-file", "-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n"),
        ("requestheader-allowed-names", "front-proxy-client"),
        ("requestheader-username-headers", '{"X-Remote-User": 1}'),
    ],
)
def test_a_config_map_that_cannot_be_used_is_refused_with_the_key(key: str, text: str) -> None:
    with pytest.raises(AdapterError, match=key):
        authentication_of(config_map_data(PROXIES, CLIENTS) | {key: text})


def test_a_cluster_without_aggregation_is_followed_but_not_taken_for_usable() -> None:
    followed: list[Authentication] = []
    follower = AuthenticationFollower(followed.append)
    with pytest.raises(AdapterError, match="no front proxy can be recognised"):
        follower.listed(iter([{"data": {"client-ca-file": CLIENTS.pem}}]))

    assert [each.client_ca for each in followed] == [CLIENTS.pem]
