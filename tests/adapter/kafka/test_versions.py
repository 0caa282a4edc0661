"""Each broker is asked in the versions that it offers itself, and an error says what is missing.

The brokers are fake."""

import pytest

from adapter.kafka.versions import NotOffered, Versions, negotiated
from adapter.metrics.problems import NoMatch
from adapter.protocol.apis import (
    DESCRIBE_GROUPS,
    FIND_COORDINATOR,
    FIRST_WITH_GROUPS,
    LIST_GROUPS,
    LIST_OFFSETS,
    METADATA,
    OFFSET_FETCH,
)
from tests.support.kafka.spoilt_cluster import fake, nothing_unforeseen, one_of, reading, starting
from tests.support.kafka.wire_fake import API_VERSIONS, VERSIONS, Spoilt, WireFake
from tests.support.kubernetes.served import Served, Watcher

__all__ = ["fake", "nothing_unforeseen"]


def test_the_newest_version_that_both_sides_know_is_chosen() -> None:
    versions = negotiated({2: (1, 6), 3: (0, 13), 9: (2, 7)})

    assert (versions.list_offsets, versions.metadata, versions.offset_fetch) == (6, 11, 7)
    assert (versions.find_coordinator, versions.list_groups) == (None, None)


@pytest.mark.parametrize(
    ("offered", "words"),
    [
        ({9: (0, 4)}, "offers OffsetFetch up to 4; 5 or newer is needed"),
        ({9: (9, 10)}, "offers OffsetFetch from 9 on; 8 or older is needed"),
        ({2: (0, 7)}, "does not offer OffsetFetch"),
        ({9: (3, 1)}, "offers OffsetFetch up to 1; 5 or newer is needed"),
    ],
)
def test_what_is_missing_is_said_with_its_versions(offered: dict[int, tuple[int, int]], words: str) -> None:
    with pytest.raises(NotOffered, match=f"^{words}$"):
        negotiated(offered).required(OFFSET_FETCH)


def test_a_broker_that_was_never_connected_is_taken_for_one_that_offers_the_newest_versions() -> None:
    newest = (LIST_OFFSETS.newest, METADATA.newest, OFFSET_FETCH.newest, FIND_COORDINATOR.newest)

    versions = Versions()
    assert (versions.list_offsets, versions.metadata, versions.offset_fetch, versions.find_coordinator) == newest


@pytest.mark.parametrize("version", range(LIST_OFFSETS.oldest, LIST_OFFSETS.newest))
def test_log_ends_are_read_in_every_version_of_list_offsets(fake: WireFake, version: int) -> None:
    fake.versions = {**VERSIONS, LIST_OFFSETS.key: (0, version)}
    with reading(fake):
        assert asked_in(fake, LIST_OFFSETS.key) == {version}


@pytest.mark.parametrize("version", range(METADATA.oldest, METADATA.newest))
def test_topics_are_read_in_every_version_of_metadata(fake: WireFake, version: int) -> None:
    fake.versions = {**VERSIONS, METADATA.key: (0, version)}
    with reading(fake):
        assert asked_in(fake, METADATA.key) == {version}


def asked_in(fake: WireFake, key: int) -> set[int]:
    return {version for _, asked, version in fake.answered if asked == key}


def test_each_broker_is_asked_in_its_own_versions(fake: WireFake) -> None:
    """The bootstrap server is newer than one broker and older than another one."""
    fake.versions_of = {
        1: {**VERSIONS, LIST_OFFSETS.key: (0, 6), METADATA.key: (0, 10)},
        2: {**VERSIONS, LIST_OFFSETS.key: (0, 5), METADATA.key: (0, 9)},
    }
    with reading(fake) as running:
        running.wait_for_cycles(3)

    asked = {node: max(version for n, key, version in fake.answered if (n, key) == (node, 2)) for node in (1, 2, 3)}
    assert asked == {1: 6, 2: 5, 3: 7}


def test_a_broker_that_was_upgraded_is_asked_in_its_new_versions(fake: WireFake) -> None:
    fake.versions_of = {2: {**VERSIONS, LIST_OFFSETS.key: (0, 5)}}
    with reading(fake) as running, Watcher(running, ["billing"], one_of(billing=[13])) as watcher:
        fake.versions_of = {}
        fake.cut_all()
        running.wait_for(lambda: (2, LIST_OFFSETS.key, 7) in fake.answered)
    watcher.check()


def test_a_broker_that_was_downgraded_is_asked_in_its_old_versions(fake: WireFake) -> None:
    with reading(fake) as running, Watcher(running, ["billing"], one_of(billing=[13, 14])) as watcher:
        fake.versions_of = {2: {**VERSIONS, LIST_OFFSETS.key: (0, 5)}}
        fake.cut_all()
        fake.kafka.ends["orders", 1] += 1
        running.wait_for_lag(14, "billing")
    watcher.check()


@pytest.mark.parametrize(
    ("key", "newest", "words"),
    [
        (OFFSET_FETCH.key, 4, "broker 2 at {} offers OffsetFetch up to 4; 5 or newer is needed"),
        (LIST_OFFSETS.key, 1, "broker 2 at {} offers ListOffsets up to 1; 2 or newer is needed"),
    ],
)
def test_what_one_broker_does_not_offer_is_said_of_it_and_nothing_else_is_lost(
    fake: WireFake, key: int, newest: int, words: str
) -> None:
    fake.versions_of = {2: {**VERSIONS, key: (0, newest)}}
    with starting(fake) as running:
        running.wait_for_lag(19, "mail")
        running.wait_for_refusal(words.format(fake.address(2)), "billing")
        sent = fake.asked[2, key]
        running.wait_for_cycles(3)
        assert fake.asked[2, key] == sent == 0


def test_a_request_that_no_broker_offers_is_named(fake: WireFake) -> None:
    fake.versions = {**VERSIONS, METADATA.key: (0, 4)}
    with starting(fake) as running:
        running.wait_for_refusal("offers Metadata up to 4; 5 or newer is needed", "billing")


def test_a_broker_that_refuses_to_negotiate_is_named_and_not_asked_again_and_again(fake: WireFake) -> None:
    fake.versions_of = {2: {**VERSIONS, API_VERSIONS: (5, 9)}}
    with starting(fake) as running:
        running.wait_for_lag(19, "mail")
        running.wait_for_refusal(f"broker 2 at {fake.address(2)} answers ApiVersions in no version", "billing")
        asked = fake.asked[2, API_VERSIONS]
        running.wait_for_cycles(3)
        # Once for each new connection.
        assert fake.asked[2, API_VERSIONS] - asked < 20


def test_what_is_not_offered_counts_as_version_among_the_errors(fake: WireFake) -> None:
    fake.versions_of = {2: {**VERSIONS, LIST_OFFSETS.key: (0, 1)}}
    labels = {"cluster": "main", "cause": "version"}
    with starting(fake) as running:
        registry = running.telemetry.registry
        running.wait_for(lambda: bool(registry.get_sample_value("kafka_lag_adapter_broker_errors_total", labels)))


@pytest.mark.parametrize("version", [7, 8])
def test_brokers_that_list_no_groups_serve_those_that_rules_name(fake: WireFake, version: int) -> None:
    fake.versions = {key: span for key, span in VERSIONS.items() if key not in {LIST_GROUPS.key, DESCRIBE_GROUPS.key}}
    fake.versions |= {OFFSET_FETCH.key: (0, version)}
    rules = [{"group": group, "topics": ["orders"]} for group in ("billing", "unborn")]
    with starting(fake, rules=rules) as running:
        running.wait_for_lag(13, "billing")
        running.wait_for_lag(35, "unborn")
        running.wait_for_refusal("does not offer ListGroups", "mail")
        assert not {key for _, key in fake.asked} & {LIST_GROUPS.key, DESCRIBE_GROUPS.key}
        assert not running.telemetry.registry.get_sample_value(
            "kafka_lag_adapter_broker_errors_total", {"cluster": "main", "cause": "version"}
        )


@pytest.mark.parametrize(("listed", "described"), [(0, 0), (3, 5), (4, 4)])
def test_groups_are_listed_and_described_in_older_versions(fake: WireFake, listed: int, described: int) -> None:
    fake.versions = {**VERSIONS, LIST_GROUPS.key: (0, listed), DESCRIBE_GROUPS.key: (0, described)}
    fake.kafka.members["billing"] = {"orders"}
    with reading(fake) as running:
        running.wait_for(lambda: asked_in(fake, DESCRIBE_GROUPS.key) == {described})
        assert asked_in(fake, LIST_GROUPS.key) == {listed}
        running.wait_for(lambda: is_not_found(running, "nobody"))


def is_not_found(running: Served, group: str) -> bool:
    """Raises what else refuses it."""
    try:
        running.lag(group)
    except NoMatch:
        return True
    return False


# -- commits -------------------------------------------------------------------------------------


@pytest.mark.parametrize("version", range(OFFSET_FETCH.oldest, FIRST_WITH_GROUPS))
def test_commits_are_read_of_one_group_at_a_time_before_version_8(fake: WireFake, version: int) -> None:
    fake.versions = {**VERSIONS, OFFSET_FETCH.key: (0, version)}
    fake.kafka.commits |= {f"mail-{number}": {("letters", 0): number} for number in range(20)}
    with reading(fake) as running, Watcher(running, ["billing"], one_of(billing=[13])) as watcher:
        for number in range(20):
            running.wait_for_lag(20 - number, f"mail-{number}")
        assert asked_in(fake, OFFSET_FETCH.key) == {version}
        assert asked_in(fake, FIND_COORDINATOR.key) == set()
    watcher.check()


@pytest.mark.parametrize("version", [FIND_COORDINATOR.oldest, 3, 4])
def test_a_group_that_nobody_lists_is_found_by_its_rule_and_its_last_commits_count(
    fake: WireFake, version: int
) -> None:
    fake.versions = {**VERSIONS, OFFSET_FETCH.key: (0, 7), FIND_COORDINATOR.key: (0, version)}
    fake.kafka.unlisted.add("billing")
    with starting(fake, rules=[{"group": "billing", "topics": ["orders"]}]) as running:
        running.wait_for_lag(13, "billing")
        assert asked_in(fake, FIND_COORDINATOR.key) == {version}


def test_a_coordinator_that_moved_is_found_again_where_groups_are_asked_one_by_one(fake: WireFake) -> None:
    fake.versions = {**VERSIONS, OFFSET_FETCH.key: (0, 7), FIND_COORDINATOR.key: (0, 3)}
    with reading(fake) as running, Watcher(running, ["billing"], one_of(billing=[13, 12])) as watcher:
        fake.kafka.coordinators["billing"] = 3
        fake.kafka.commits["billing"]["orders", 0] = 8
        running.wait_for_lag(12, "billing")
    watcher.check()


def test_a_silent_broker_delays_no_group_of_another_one_where_they_are_asked_one_by_one(fake: WireFake) -> None:
    fake.versions = {**VERSIONS, OFFSET_FETCH.key: (0, 7)}
    with reading(fake) as running, Watcher(running, ["mail"], one_of(mail=[19, 18])) as watcher:
        fake.faults[2, OFFSET_FETCH.key] = lambda _: Spoilt()
        running.wait_for(lambda: any("broker 2 at" in cause for cause in running.causes("billing")))
        fake.kafka.commits["mail"]["letters", 0] = 2
        running.wait_for_lag(18, "mail")
        fake.faults.clear()
        running.wait_for(lambda: not running.causes("billing"))
    watcher.check()
