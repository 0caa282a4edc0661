import contextlib
import datetime
import gc
import ssl
import tracemalloc
from collections.abc import Callable

import pytest

from apiservice.auth.caller import ANONYMOUS, Caller, Scope, Unauthorized
from apiservice.auth.callers import Callers
from apiservice.auth.cluster_settings import ClusterUnreachable
from tests.support.kubernetes.authorities import (
    CLIENT,
    SERVER,
    Authority,
    Issued,
    authentication,
    version_4,
)
from tests.support.kubernetes.callers import (
    ALICE,
    AS_ALICE,
    CLIENTS,
    PROXIES,
    PROXY,
    FakeReviews,
    identified,
    request,
    trusting,
)


def test_the_front_proxy_speaks_for_the_user_it_names() -> None:
    assert identified(trusting(), request(PROXY, headers=AS_ALICE)) == ALICE


def test_a_certificate_of_the_client_ca_with_the_front_proxys_name_does_not_speak_for_others() -> None:
    impostor = CLIENTS.issue("front-proxy-client")

    caller = identified(trusting(), request(impostor, headers=AS_ALICE))

    assert caller.name == "front-proxy-client"
    assert caller.groups == ("system:authenticated",)


def test_identity_headers_without_a_certificate_are_ignored() -> None:
    assert identified(trusting(), request(headers=AS_ALICE)) == ANONYMOUS


@pytest.mark.parametrize(
    "impostor",
    [
        pytest.param(Authority("front-proxy-ca").issue("front-proxy-client"), id="of another CA of the same name"),
        pytest.param(PROXIES.issue("somebody-else"), id="of a name that is not allowed"),
        pytest.param(PROXIES.issue("front-proxy-client", valid_for=-datetime.timedelta(hours=1)), id="expired"),
        pytest.param(PROXIES.issue("front-proxy-client", usages=(SERVER,)), id="for servers only"),
    ],
)
def test_a_front_proxys_certificate_is_refused(impostor: Issued) -> None:
    with pytest.raises(Unauthorized):
        identified(trusting(), request(impostor, headers=AS_ALICE))


def test_a_client_certificate_cannot_sign_another_one() -> None:
    forged = Authority("forger")
    forged.own = CLIENTS.issue("forger")  # a leaf in a CA's place
    victim = forged.issue("admin", groups=("system:masters",))

    with pytest.raises(Unauthorized):
        identified(trusting(), request(victim, forged.own))


def test_a_front_proxy_without_allowed_names_may_have_any() -> None:
    anyone = PROXIES.issue("somebody-else")

    assert identified(trusting(allowed_names=()), request(anyone, headers=AS_ALICE)) == ALICE


def test_a_front_proxy_may_show_an_intermediate_ca() -> None:
    between = Authority("between", issuer=PROXIES)

    caller = identified(trusting(), request(between.issue("front-proxy-client"), between.own, headers=AS_ALICE))

    assert caller == ALICE


def test_two_cas_of_the_same_name_are_both_trusted_during_a_rotation() -> None:
    renewed = Authority("front-proxy-ca")
    callers = Callers(FakeReviews())
    callers.trust(authentication(renewed.pem + PROXIES.pem, CLIENTS))

    assert identified(callers, request(PROXY, headers=AS_ALICE)) == ALICE
    assert identified(callers, request(renewed.issue("front-proxy-client"), headers=AS_ALICE)) == ALICE


def test_a_removed_ca_is_no_longer_trusted_on_an_open_connection() -> None:
    callers = trusting()
    scope = request(PROXY, headers=AS_ALICE)
    assert identified(callers, scope) == ALICE

    callers.trust(authentication(Authority("front-proxy-ca"), CLIENTS))

    with pytest.raises(Unauthorized):
        identified(callers, scope)


def test_the_proxys_uid_and_extra_headers_are_read() -> None:
    named = [("x-remote-uid", "42"), ("x-remote-extra-scopes%2Fa", "x"), ("x-remote-extra-scopes%2fa", "y")]

    caller = identified(trusting(), request(PROXY, headers=AS_ALICE + named))

    assert caller == Caller(name="alice", uid="42", groups=ALICE.groups, extra=(("scopes/a", ("x", "y")),))


def of_alice(*headers: tuple[str, str]) -> Scope:
    return request(PROXY, headers=AS_ALICE + list(headers))


@pytest.mark.parametrize(
    "asking",
    [
        pytest.param(lambda n: of_alice(("x-remote-user1", f"{n}" * 600)), id="a name that begins like the user's"),
        pytest.param(lambda n: of_alice(("x-remote-extra-a", f"{n}" * 4000)), id="a long identity"),
        pytest.param(lambda n: of_alice(*[("x-remote-extra-a", f"{n}")] * 100), id="an identity of many headers"),
        pytest.param(lambda n: {"state": {"peer": (b"%d" % n * 4000,)}, "headers": []}, id="worthless certificates"),
    ],
)
def test_identities_do_not_fill_the_memory(asking: Callable[[int], Scope]) -> None:
    callers = trusting()
    identified(callers, of_alice())
    tracemalloc.start()
    try:
        for number in range(300):
            with contextlib.suppress(Unauthorized):
                assert identified(callers, asking(number)).groups == ALICE.groups
        gc.collect()
        assert tracemalloc.get_traced_memory()[0] < 300_000
    finally:
        tracemalloc.stop()


def test_each_request_of_one_proxy_connection_has_its_own_user() -> None:
    callers = trusting()

    users = [identified(callers, request(PROXY, headers=[("x-remote-user", user)])).name for user in ("a", "b", "a")]

    assert users == ["a", "b", "a"]


def test_a_user_without_groups_is_authenticated() -> None:
    """The aggregator asks for discovery without any group."""
    caller = identified(trusting(), request(PROXY, headers=[("x-remote-user", "system:kube-aggregator")]))

    assert caller.groups == ("system:authenticated",)


def test_an_anonymous_user_that_the_proxy_names_is_not_authenticated() -> None:
    name, group = ("x-remote-user", "system:anonymous"), ("x-remote-group", "system:unauthenticated")

    assert identified(trusting(), request(PROXY, headers=[name, group])) == ANONYMOUS
    assert identified(trusting(), request(PROXY, headers=[name])).groups == ()


def test_a_proxys_request_without_a_user_is_anonymous() -> None:
    assert identified(trusting(), request(PROXY)) == ANONYMOUS


def test_a_client_certificate_names_user_and_groups() -> None:
    shown = CLIENTS.issue("bob", groups=("ops", "dev"), usages=(CLIENT,))

    assert identified(trusting(), request(shown)).groups == ("ops", "dev", "system:authenticated")


def test_a_strangers_certificate_is_refused_even_with_identity_headers() -> None:
    with pytest.raises(Unauthorized):
        identified(trusting(), request(Authority("stranger").issue("bob"), headers=AS_ALICE))


def test_a_client_certificate_that_only_openssl_can_read_is_refused() -> None:
    odd = ssl.PEM_cert_to_DER_cert(version_4(PROXY.pem).decode())

    with pytest.raises(Unauthorized):
        identified(trusting(), {"state": {"peer": (odd,)}, "headers": []})


def test_certificates_prove_nothing_before_the_clusters_cas_are_known() -> None:
    with pytest.raises(ClusterUnreachable):
        identified(Callers(FakeReviews()), request(PROXY, headers=AS_ALICE))
