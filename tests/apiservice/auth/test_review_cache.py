import asyncio

import pytest

from apiservice.auth.caller import (
    ANONYMOUS,
    Attributes,
    Caller,
    Forbidden,
    Lane,
    Scope,
    Unauthorized,
)
from apiservice.auth.callers import Callers
from apiservice.auth.cluster_settings import ClusterUnreachable
from apiservice.auth.review_cache import MOST_KEPT
from tests.support.kubernetes.callers import (
    ALICE,
    READ_LAG,
    Clock,
    FakeReviews,
    identified,
    request,
    trusting,
)


def test_a_valid_token_names_its_user_and_is_reviewed_once() -> None:
    reviews = FakeReviews(tokens={"good": Caller("prometheus", "7", ("monitoring",), ())})
    callers, scope = trusting(reviews), request(headers=[("authorization", "Bearer good")])

    for _ in range(2):
        assert identified(callers, scope) == Caller("prometheus", "7", ("monitoring", "system:authenticated"), ())
    assert reviews.asked == 1


def test_an_invalid_token_is_refused_and_reviewed_again_after_ten_seconds() -> None:
    reviews, clock = FakeReviews(), Clock()
    callers, scope = trusting(reviews, clock), request(headers=[("authorization", "Bearer bad")])
    for later, asked in ((0, 1), (9, 1), (2, 2)):
        clock.now += later
        with pytest.raises(Unauthorized):
            identified(callers, scope)

        assert reviews.asked == asked


def test_a_token_that_cannot_be_reviewed_is_neither_valid_nor_invalid() -> None:
    reviews = FakeReviews(tokens={"good": ALICE})
    reviews.is_silent = True
    callers, scope = trusting(reviews), request(headers=[("authorization", "bearer good")])
    with pytest.raises(ClusterUnreachable):
        identified(callers, scope)

    reviews.is_silent = False

    assert identified(callers, scope) == ALICE


def test_masters_may_do_anything_without_a_review() -> None:
    reviews = FakeReviews()
    callers, master = trusting(reviews), Caller("root", "", ("system:masters",), ())

    asyncio.run(callers.authorize(master, READ_LAG))

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

        assert reviews.asked == asked


def test_a_permission_is_not_lent_to_another_user_group_namespace_or_verb() -> None:
    reviews = FakeReviews(allowed=("alice", "mallory"))
    callers = trusting(reviews)
    asyncio.run(callers.authorize(ALICE, READ_LAG))

    others = (
        (Caller("mallory", "", ALICE.groups, ()), READ_LAG),
        (Caller("alice", "", ("other",), ()), READ_LAG),
        (Caller("alice", "", ALICE.groups, (("scopes", ("none",)),)), READ_LAG),
        (ALICE, Attributes("list", "", "bank", READ_LAG.group, "v1beta1", "lag")),
        (ALICE, Attributes("get", "", "shop", READ_LAG.group, "v1beta1", "lag")),
    )
    for asked, (caller, attributes) in enumerate(others, start=2):
        asyncio.run(callers.authorize(caller, attributes))
        assert reviews.asked == asked


def test_everything_is_refused_while_reviews_are_unavailable() -> None:
    reviews = FakeReviews(allowed=("alice",))
    reviews.is_silent = True

    with pytest.raises(ClusterUnreachable):
        asyncio.run(trusting(reviews).authorize(ALICE, READ_LAG))


def test_concurrent_identical_questions_share_one_review() -> None:
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
    reviews = FakeReviews(allowed=("alice",))
    callers = trusting(reviews)
    for path, asked in (("/a", 1), ("/b", 2), ("/c", 3), ("/b", 3), ("/c", 3), ("/a", 4)):
        asyncio.run(callers.authorize(ALICE, Attributes(verb="get", path=path)))

        assert reviews.asked == asked


def test_strangers_evict_no_permission_of_others(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("apiservice.auth.review_cache.MOST_KEPT", 2)
    reviews = FakeReviews(allowed=("alice", ANONYMOUS.name))
    callers = trusting(reviews)
    asyncio.run(callers.authorize(ALICE, READ_LAG))
    for path in ("/1", "/2", "/3", "/3"):
        asyncio.run(callers.authorize(ANONYMOUS, Attributes("get", path)))

    asyncio.run(callers.authorize(ALICE, READ_LAG))

    assert reviews.asked == 4


def with_token(token: str) -> Scope:
    return request(headers=[("authorization", f"Bearer {token}")])


def identify_made_up_tokens(callers: Callers, count: int) -> None:
    async def identify_all() -> None:
        for number in range(count):
            with pytest.raises(Unauthorized):
                await callers.identify(with_token(f"made up {number}"))

    asyncio.run(identify_all())


def test_made_up_tokens_evict_no_good_one() -> None:
    reviews = FakeReviews(tokens={"good": ALICE})
    callers = trusting(reviews)
    identified(callers, with_token("good"))

    identify_made_up_tokens(callers, 2 * MOST_KEPT)
    reviews.is_silent = True

    assert identified(callers, with_token("good")) == ALICE


def test_a_token_that_was_good_does_not_wait_for_those_that_never_were() -> None:
    reviews, clock = FakeReviews(tokens={"good": ALICE}), Clock()
    callers = trusting(reviews, clock)
    identified(callers, with_token("good"))
    identify_made_up_tokens(callers, 1)
    clock.now += 31

    identified(callers, with_token("good"))
    identify_made_up_tokens(callers, 1)

    assert reviews.lanes == [Lane.STRANGERS, Lane.STRANGERS, Lane.RENEWALS, Lane.STRANGERS]


def test_a_token_that_became_invalid_is_reviewed_among_strangers() -> None:
    reviews, clock = FakeReviews(tokens={"good": ALICE}), Clock()
    callers = trusting(reviews, clock)
    identified(callers, with_token("good"))
    reviews.tokens.clear()
    for _ in range(2):
        clock.now += 31
        with pytest.raises(Unauthorized):
            identified(callers, with_token("good"))

    assert reviews.lanes == [Lane.STRANGERS, Lane.RENEWALS, Lane.STRANGERS]


def test_denials_of_a_known_caller_evict_no_permission() -> None:
    reviews = FakeReviews(allowed=("alice",))
    callers = trusting(reviews)
    bob = Caller("bob", "", ("system:authenticated",), ())
    asyncio.run(callers.authorize(ALICE, READ_LAG))

    async def wish_for_everything() -> None:
        for number in range(2 * MOST_KEPT):
            with pytest.raises(Forbidden):
                await callers.authorize(bob, Attributes("get", f"/{number}"))

    asyncio.run(wish_for_everything())
    asyncio.run(callers.authorize(ALICE, READ_LAG))

    assert reviews.asked == 1 + 2 * MOST_KEPT


def test_a_permission_is_renewed_without_waiting_for_first_reviews_or_strangers() -> None:
    reviews, clock = FakeReviews(allowed=("alice",)), Clock()
    callers = trusting(reviews, clock)
    asyncio.run(callers.authorize(ALICE, READ_LAG))
    clock.now += 61
    asyncio.run(callers.authorize(ALICE, READ_LAG))
    with pytest.raises(Forbidden):
        asyncio.run(callers.authorize(ANONYMOUS, READ_LAG))

    assert reviews.lanes == [Lane.KNOWN_CALLERS, Lane.RENEWALS, Lane.STRANGERS]


def test_permissions_for_very_long_paths_do_not_fill_the_memory() -> None:
    reviews = FakeReviews(allowed=("alice",))
    callers = trusting(reviews)
    long = Attributes(verb="get", path="/" + "x" * 5000)

    for asked in (1, 2):
        asyncio.run(callers.authorize(ALICE, long))

        assert reviews.asked == asked
