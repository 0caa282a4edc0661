import asyncio
import datetime
import ssl

import pytest

from apiservice.auth.caller import (
    ANONYMOUS,
    Attributes,
    Caller,
    Forbidden,
    Lane,
    ReviewUnavailable,
    Scope,
    Unauthorized,
)
from apiservice.auth.callers import ClusterCallers
from apiservice.auth.cluster_settings import AuthenticationInvalid, ClusterUnreachable, authentication_of
from apiservice.auth.review_cache import MOST_KEPT
from tests.support.kubernetes.authorities import (
    CLIENT,
    SERVER,
    Authority,
    Issued,
    authentication,
    config_map_data,
    version_4,
)

PROXIES, CLIENTS = Authority("front-proxy-ca"), Authority("kubernetes")
PROXY = PROXIES.issue("front-proxy-client")
AS_ALICE = [("x-remote-user", "alice"), ("x-remote-group", "team"), ("x-remote-group", "system:authenticated")]
ALICE = Caller(name="alice", uid="", groups=("team", "system:authenticated"), extra=())
READ_LAG = Attributes(verb="list", namespace="shop", group="external.metrics.k8s.io", version="v1beta1", resource="lag")


class FakeReviews:
    """The API server's answers from memory; counts what it is asked, and answers only while `gate` is open."""

    def __init__(self, tokens: dict[str, Caller] | None = None, allowed: tuple[str, ...] = ()) -> None:
        self.tokens, self.allowed, self.asked = tokens or {}, allowed, 0
        self.lanes: list[Lane] = []
        self.is_silent = False
        self.gate = asyncio.Event()
        self.gate.set()

    async def review_token(self, token: str, lane: Lane) -> Caller | None:
        self.lanes.append(lane)
        await self._answering()
        return self.tokens.get(token)

    async def review_access(self, caller: Caller, _attributes: Attributes, lane: Lane) -> tuple[bool, str]:
        self.lanes.append(lane)
        await self._answering()
        return caller.name in self.allowed, "RBAC: no role"

    async def _answering(self) -> None:
        self.asked += 1
        await self.gate.wait()
        if self.is_silent:
            raise ClusterUnreachable("silent")


class Clock:
    def __init__(self) -> None:
        self.now = 1000.0

    def __call__(self) -> float:
        return self.now


def trusting(
    reviews: FakeReviews | None = None, clock: Clock | None = None, **names: tuple[str, ...]
) -> ClusterCallers:
    callers = ClusterCallers(reviews or FakeReviews(), clock or Clock())
    callers.trust(authentication(PROXIES, CLIENTS, **names))
    return callers


def request(*shown: Issued, headers: list[tuple[str, str]] | None = None) -> Scope:
    raw = [(name.encode(), value.encode()) for name, value in headers or []]
    return {"state": {"peer": tuple(part.der for part in shown)}, "headers": raw}


def identified(callers: ClusterCallers, scope: Scope) -> Caller:
    return asyncio.run(callers.identify(scope))


def test_the_front_proxy_speaks_for_the_user_it_names() -> None:
    assert identified(trusting(), request(PROXY, headers=AS_ALICE)) == ALICE


def test_a_certificate_of_the_client_ca_with_the_front_proxys_name_does_not_speak_for_others() -> None:
    impostor = CLIENTS.issue("front-proxy-client")

    caller = identified(trusting(), request(impostor, headers=AS_ALICE))

    assert caller.name == "front-proxy-client"
    assert caller.groups == ("system:authenticated",)


def test_identity_headers_without_a_certificate_are_not_looked_at() -> None:
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


def test_two_cas_of_the_same_name_are_both_believed_during_a_rotation() -> None:
    renewed = Authority("front-proxy-ca")
    callers = ClusterCallers(FakeReviews())
    callers.trust(authentication(renewed.pem + PROXIES.pem, CLIENTS))

    assert identified(callers, request(PROXY, headers=AS_ALICE)) == ALICE
    assert identified(callers, request(renewed.issue("front-proxy-client"), headers=AS_ALICE)) == ALICE


def test_a_removed_ca_is_not_believed_any_more_on_an_open_connection() -> None:
    callers = trusting()
    scope = request(PROXY, headers=AS_ALICE)
    assert callers.recall(scope) == ALICE

    callers.trust(authentication(Authority("front-proxy-ca"), CLIENTS))

    assert callers.recall(scope) is None
    with pytest.raises(Unauthorized):
        identified(callers, scope)


def test_the_proxys_uid_and_extra_headers_are_read() -> None:
    named = [("x-remote-uid", "42"), ("x-remote-extra-scopes%2Fa", "x"), ("x-remote-extra-scopes%2fa", "y")]

    caller = identified(trusting(), request(PROXY, headers=AS_ALICE + named))

    assert caller == Caller(name="alice", uid="42", groups=ALICE.groups, extra=(("scopes/a", ("x", "y")),))


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


def test_a_proxy_that_names_nobody_is_anonymous() -> None:
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
    with pytest.raises(ReviewUnavailable):
        identified(ClusterCallers(FakeReviews()), request(PROXY, headers=AS_ALICE))


def test_a_good_token_names_its_user_and_is_asked_about_once() -> None:
    reviews = FakeReviews(tokens={"good": Caller("prometheus", "7", ("monitoring",), ())})
    callers, scope = trusting(reviews), request(headers=[("authorization", "Bearer good")])
    assert callers.recall(scope) is None

    caller = identified(callers, scope)

    assert caller == Caller("prometheus", "7", ("monitoring", "system:authenticated"), ())
    assert callers.recall(scope) == identified(callers, scope) == caller
    assert reviews.asked == 1


def test_a_bad_token_is_refused_and_asked_about_again_after_ten_seconds() -> None:
    reviews, clock = FakeReviews(), Clock()
    callers, scope = trusting(reviews, clock), request(headers=[("authorization", "Bearer bad")])
    for later, asked in ((0, 1), (9, 1), (2, 2)):
        clock.now += later
        with pytest.raises(Unauthorized):
            identified(callers, scope)

        assert reviews.asked == asked


def test_a_token_that_nobody_can_review_is_neither_good_nor_bad() -> None:
    reviews = FakeReviews(tokens={"good": ALICE})
    reviews.is_silent = True
    callers, scope = trusting(reviews), request(headers=[("authorization", "bearer good")])
    with pytest.raises(ReviewUnavailable):
        identified(callers, scope)

    reviews.is_silent = False

    assert identified(callers, scope) == ALICE


def test_masters_may_do_anything_unasked() -> None:
    reviews = FakeReviews()
    callers, master = trusting(reviews), Caller("root", "", ("system:masters",), ())

    asyncio.run(callers.authorize(master, READ_LAG))

    assert callers.recall_permission(master, READ_LAG) is True
    assert reviews.asked == 0


def test_a_permission_is_kept_for_sixty_seconds() -> None:
    reviews, clock = FakeReviews(allowed=("alice",)), Clock()
    callers = trusting(reviews, clock)
    for later, asked in ((0, 1), (59, 1), (2, 2)):
        clock.now += later
        asyncio.run(callers.authorize(ALICE, READ_LAG))

        assert reviews.asked == asked


def test_a_denial_is_kept_for_ten_seconds_with_its_reason() -> None:
    reviews, clock = FakeReviews(), Clock()
    callers = trusting(reviews, clock)
    for later, asked in ((0, 1), (9, 1), (2, 2)):
        clock.now += later
        with pytest.raises(Forbidden, match="RBAC: no role"):
            asyncio.run(callers.authorize(ALICE, READ_LAG))

        assert callers.recall_permission(ALICE, READ_LAG) is False
        assert reviews.asked == asked


def test_a_permission_is_not_lent_to_another_user_group_namespace_or_verb() -> None:
    callers = trusting(FakeReviews(allowed=("alice",)))
    asyncio.run(callers.authorize(ALICE, READ_LAG))

    assert callers.recall_permission(ALICE, READ_LAG) is True
    for caller, attributes in (
        (Caller("mallory", "", ALICE.groups, ()), READ_LAG),
        (Caller("alice", "", ("other",), ()), READ_LAG),
        (Caller("alice", "", ALICE.groups, (("scopes", ("none",)),)), READ_LAG),
        (ALICE, Attributes("list", "", "bank", READ_LAG.group, "v1beta1", "lag")),
        (ALICE, Attributes("get", "", "shop", READ_LAG.group, "v1beta1", "lag")),
    ):
        assert callers.recall_permission(caller, attributes) is None


def test_nobody_may_do_anything_while_no_review_can_be_had() -> None:
    reviews = FakeReviews(allowed=("alice",))
    reviews.is_silent = True

    with pytest.raises(ReviewUnavailable):
        asyncio.run(trusting(reviews).authorize(ALICE, READ_LAG))


def test_many_who_ask_the_same_at_once_are_one_review() -> None:
    async def ask_many() -> int:
        reviews = FakeReviews(allowed=("alice",))
        reviews.gate.clear()
        callers = trusting(reviews)
        askers = [asyncio.create_task(callers.authorize(ALICE, READ_LAG)) for _ in range(50)]
        await asyncio.sleep(0)
        askers[0].cancel()  # one client goes away; the others still get their answer
        reviews.gate.set()
        await asyncio.gather(*askers[1:])
        return reviews.asked

    assert asyncio.run(ask_many()) == 1


def test_what_is_kept_is_bounded_and_the_oldest_goes_first(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("apiservice.auth.review_cache.MOST_KEPT", 2)
    callers = trusting(FakeReviews(allowed=("alice",)))
    paths = [Attributes(verb="get", path=path) for path in ("/a", "/b", "/c")]
    for attributes in paths:
        asyncio.run(callers.authorize(ALICE, attributes))

    assert [callers.recall_permission(ALICE, attributes) for attributes in paths] == [None, True, True]


def test_strangers_make_nobodys_permission_be_forgotten(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("apiservice.auth.review_cache.MOST_KEPT", 2)
    callers = trusting(FakeReviews(allowed=("alice", ANONYMOUS.name)))
    asyncio.run(callers.authorize(ALICE, READ_LAG))
    for path in ("/1", "/2", "/3"):
        asyncio.run(callers.authorize(ANONYMOUS, Attributes("get", path)))

    assert callers.recall_permission(ALICE, READ_LAG) is True
    assert callers.recall_permission(ANONYMOUS, Attributes("get", "/3")) is True


def with_token(token: str) -> Scope:
    return request(headers=[("authorization", f"Bearer {token}")])


def identify_made_up_tokens(callers: ClusterCallers, count: int) -> None:
    async def identify_all() -> None:
        for number in range(count):
            with pytest.raises(Unauthorized):
                await callers.identify(with_token(f"made up {number}"))

    asyncio.run(identify_all())


def test_made_up_tokens_evict_no_good_one() -> None:
    callers = trusting(FakeReviews(tokens={"good": ALICE}))
    identified(callers, with_token("good"))

    identify_made_up_tokens(callers, 2 * MOST_KEPT)

    assert callers.recall(with_token("good")) == ALICE


def test_a_token_that_was_good_does_not_wait_for_those_that_never_were() -> None:
    reviews, clock = FakeReviews(tokens={"good": ALICE}), Clock()
    callers = trusting(reviews, clock)
    identified(callers, with_token("good"))
    identify_made_up_tokens(callers, 1)
    clock.now += 31

    identified(callers, with_token("good"))
    identify_made_up_tokens(callers, 1)

    assert reviews.lanes == [Lane.STRANGERS, Lane.STRANGERS, Lane.RENEWALS, Lane.STRANGERS]


def test_a_token_that_is_good_no_more_is_reviewed_among_strangers() -> None:
    reviews, clock = FakeReviews(tokens={"good": ALICE}), Clock()
    callers = trusting(reviews, clock)
    identified(callers, with_token("good"))
    reviews.tokens.clear()
    for _ in range(2):
        clock.now += 31
        with pytest.raises(Unauthorized):
            identified(callers, with_token("good"))

    assert reviews.lanes == [Lane.STRANGERS, Lane.RENEWALS, Lane.STRANGERS]


def test_denied_wishes_of_a_known_caller_evict_no_permission() -> None:
    callers = trusting(FakeReviews(allowed=("alice",)))
    bob = Caller("bob", "", ("system:authenticated",), ())
    asyncio.run(callers.authorize(ALICE, READ_LAG))

    async def wish_for_everything() -> None:
        for number in range(2 * MOST_KEPT):
            with pytest.raises(Forbidden):
                await callers.authorize(bob, Attributes("get", f"/{number}"))

    asyncio.run(wish_for_everything())

    assert callers.recall_permission(ALICE, READ_LAG) is True


def test_a_permission_is_renewed_without_waiting_for_first_wishes_or_strangers() -> None:
    reviews, clock = FakeReviews(allowed=("alice",)), Clock()
    callers = trusting(reviews, clock)
    asyncio.run(callers.authorize(ALICE, READ_LAG))
    clock.now += 61
    asyncio.run(callers.authorize(ALICE, READ_LAG))
    with pytest.raises(Forbidden):
        asyncio.run(callers.authorize(ANONYMOUS, READ_LAG))

    assert reviews.lanes == [Lane.KNOWN_CALLERS, Lane.RENEWALS, Lane.STRANGERS]


def test_permissions_for_very_long_paths_do_not_fill_the_memory() -> None:
    callers = trusting(FakeReviews(allowed=("alice",)))
    long = Attributes(verb="get", path="/" + "x" * 5000)

    asyncio.run(callers.authorize(ALICE, long))

    assert callers.recall_permission(ALICE, long) is None


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
