import pytest

from apiservice.auth.callers import ClusterCallers
from apiservice.auth.cluster_settings import AuthenticationInvalid, authentication_of
from tests.support.kubernetes.authorities import (
    config_map_data,
)
from tests.support.kubernetes.callers import CLIENTS, PROXIES, FakeReviews, trusting


@pytest.mark.parametrize(
    ("key", "text"),
    [
        ("client-ca-file", "-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n"),
        ("requestheader-allowed-names", "front-proxy-client"),
        ("requestheader-username-headers", '{"X-Remote-User": 1}'),
    ],
)
def test_a_config_map_that_cannot_be_used_is_refused_with_the_key(key: str, text: str) -> None:
    with pytest.raises(AuthenticationInvalid, match=key):
        authentication_of(config_map_data(PROXIES, CLIENTS) | {key: text})


def test_a_cluster_without_aggregation_has_no_front_proxy() -> None:
    callers = ClusterCallers(FakeReviews())
    callers.trust(authentication_of({"client-ca-file": CLIENTS.pem}))

    assert not callers.knows_front_proxy
    assert trusting().knows_front_proxy
