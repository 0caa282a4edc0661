"""Events about HPAs: what they contain, how many there are, and that nothing waits for them."""

import copy
import re
import threading
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest

from adapter.conditions import Conditions
from apiservice.auth.cluster_settings import ClusterUnreachable
from apiservice.events import BURST, END_SECONDS, MOST_WAITING, SECONDS_EACH, Events, EventText, EventType, Regarded
from tests.support.kubernetes.fakes import FixedClock

HPA = Regarded("autoscaling/v2", "HorizontalPodAutoscaler", "shop", "consumer", "u-1")
OTHER = Regarded("autoscaling/v2", "HorizontalPodAutoscaler", "shop", "other", "u-2")


def text(note: str = "no work for 300 s") -> EventText:
    return EventText(EventType.NORMAL, "ScaledToZero", "ScaleToZero", note)


class Server:
    def __init__(self) -> None:
        self.created: list[tuple[str, dict[str, Any]]] = []
        self.counts: list[int] = []
        """Of the Events that occurred again, in order."""
        self.trouble: Exception | None = None
        self.before_merge: Callable[[], object] = int
        """What others do just before a change."""

    def create(self, path: str, document: dict[str, Any]) -> bool:
        if self.trouble:
            raise self.trouble
        if document["metadata"]["name"] in self.names:
            return False
        self.created.append((path, {**document, "metadata": {**document["metadata"], "resourceVersion": "1"}}))
        return True

    def merged(self, path: str, change: dict[str, Any]) -> dict[str, Any] | None:
        (kept,) = (each for _, each in self.created if each["metadata"]["name"] == path.rpartition("/")[2])
        if change:
            self.before_merge()
            assert set(change) == {"metadata", "series"}
            if change["metadata"]["resourceVersion"] != kept["metadata"]["resourceVersion"]:
                return None
            kept["series"] = change["series"]
            kept["metadata"]["resourceVersion"] += "1"
            self.counts.append(change["series"]["count"])
        return copy.deepcopy(kept)

    @property
    def names(self) -> list[str]:
        return [document["metadata"]["name"] for _, document in self.created]

    @property
    def notes(self) -> list[str]:
        return [document["note"] for _, document in self.created]


@pytest.fixture
def server() -> Server:
    return Server()


@pytest.fixture
def clock() -> FixedClock:
    return FixedClock()


@pytest.fixture
def events(server: Server, clock: FixedClock) -> Events:
    return events_of(server, clock)


def events_of(server: Server, clock: FixedClock, conditions: Conditions | None = None) -> Events:
    """A process that has posted nothing yet."""
    return Events(server.create, "pod-1", clock, merged=server.merged, conditions=conditions, wall=clock)


def post_all(events: Events, clock: FixedClock, seconds: float) -> None:
    """Runs the thread's turns for so many seconds."""
    end = clock.seconds + seconds
    while clock.seconds <= end:
        pause = events.turn()
        clock.seconds += pause


LABEL = r"[a-z0-9]([-a-z0-9]*[a-z0-9])?"


@pytest.mark.parametrize("name", ["a" * 253, f"{'a' * 199}.b", f"{'a' * 199}-b", f"{'a' * 198}-.b"])
def test_the_name_of_an_event_is_one_that_kube_apiserver_takes(
    events: Events, server: Server, clock: FixedClock, name: str
) -> None:
    events.post(replace(HPA, name=name), text())
    post_all(events, clock, 0)

    ((_, document),) = server.created
    assert re.fullmatch(rf"{LABEL}(\.{LABEL})*", document["metadata"]["name"])
    assert len(document["metadata"]["name"]) <= 253
    assert document["regarding"]["name"] == name


def test_an_event_is_about_the_object_and_in_its_namespace(events: Events, server: Server, clock: FixedClock) -> None:
    events.post(HPA, text())
    post_all(events, clock, 0)

    ((path, document),) = server.created
    assert path == "/apis/events.k8s.io/v1/namespaces/shop/events"
    assert document["metadata"]["namespace"] == "shop"
    assert document["regarding"] == {
        "apiVersion": "autoscaling/v2",
        "kind": "HorizontalPodAutoscaler",
        "namespace": "shop",
        "name": "consumer",
        "uid": "u-1",
    }
    assert (document["type"], document["reason"], document["action"]) == ("Normal", "ScaledToZero", "ScaleToZero")
    assert (document["reportingController"], document["reportingInstance"]) == ("kafka-lag-adapter", "pod-1")


def test_the_same_state_is_posted_once_for_each_object_until_it_changes(
    events: Events, server: Server, clock: FixedClock
) -> None:
    for note in ("a", "a", "b", "b", "a"):
        events.post_change(HPA, "ScaleToZero", text(note))
        events.post_change(OTHER, "ScaleToZero", text(note))
    events.post_change(HPA, "ScaleToZero", None)
    events.post_change(HPA, "ScaleToZero", text("a"))
    post_all(events, clock, 0)

    assert server.notes == ["a", "a", "b", "b", "a", "a", "a"]


def test_more_than_a_burst_is_posted_two_a_second(events: Events, server: Server, clock: FixedClock) -> None:
    for number in range(10 * BURST):
        events.post(HPA, text(str(number)))
    post_all(events, clock, 0)
    assert len(server.created) == BURST

    post_all(events, clock, 10)

    assert len(server.created) == pytest.approx(BURST + 10 / SECONDS_EACH, abs=2)


def test_of_too_many_the_oldest_are_dropped(events: Events, server: Server, clock: FixedClock) -> None:
    for number in range(MOST_WAITING + 5):
        events.post(HPA, text(str(number)))
    post_all(events, clock, 0)

    assert server.notes[0] == "5"


def test_what_the_api_server_refuses_is_not_repeated(events: Events, server: Server, clock: FixedClock) -> None:
    server.trouble = ClusterUnreachable("the Kubernetes API server answered 403: forbidden", 403)
    events.post(HPA, text("first"))
    post_all(events, clock, 0)
    server.trouble = None
    events.post(HPA, text("second"))
    post_all(events, clock, 0)

    assert server.notes == ["second"]


def test_a_note_is_one_line_of_at_most_a_kilobyte(events: Events, server: Server, clock: FixedClock) -> None:
    events.post(HPA, text("line\nline " + "ä" * 2000))
    post_all(events, clock, 0)

    (note,) = server.notes
    assert note.startswith("line line ää")
    assert 900 < len(note.encode()) <= 1024


def test_events_are_counted_by_their_reason_whether_they_can_be_posted_or_not(
    server: Server, clock: FixedClock
) -> None:
    counted: list[str] = []
    events = Events(server.create, "pod-1", clock, counted.append)
    server.trouble = ClusterUnreachable("refused")
    events.post(HPA, text())
    events.post_change(HPA, "zero", text())
    events.post_change(HPA, "zero", text())
    post_all(events, clock, 0)

    assert counted == ["ScaledToZero", "ScaledToZero"]


def test_an_event_that_exists_already_is_not_counted(server: Server, clock: FixedClock) -> None:
    counted: list[str] = []
    for _ in range(2):
        events = Events(server.create, "pod-1", clock, counted.append)
        events.post_state(HPA, "metric 0", text(), since=None)
        post_all(events, clock, 0)

    assert counted == ["ScaledToZero"]


def test_a_state_that_another_process_has_posted_is_not_posted_again(server: Server, clock: FixedClock) -> None:
    for _ in range(2):
        events = events_of(server, clock)
        events.post_state(HPA, "metric 0", text(), since=None)
        events.post_state(OTHER, "metric 0", text(), since=None)
        events.post_state(HPA, "metric 1", text(), since=None)
        post_all(events, clock, 0)

    assert len(set(server.names)) == len(server.created) == 3
    assert server.counts == []


def test_a_state_that_comes_again_is_another_time_of_its_event_whoever_posts_it(
    server: Server, clock: FixedClock
) -> None:
    for _ in range(3):
        events = events_of(server, clock)
        events.post_state(HPA, "metric 0", text(), since=clock.seconds - 30)
        post_all(events, clock, 0)
        clock.seconds += 60

    assert (len(server.created), server.counts) == (1, [2, 3])


def test_an_event_of_others_under_the_same_name_needs_no_time_of_its_own(
    events: Events, server: Server, clock: FixedClock
) -> None:
    events.post_state(HPA, "metric 0", text(), since=None)
    post_all(events, clock, 60)
    ((_, known),) = server.created
    known["eventTime"] = None
    known["metadata"]["creationTimestamp"] = "1970-01-01T00:16:40Z"

    events.post_state(HPA, "metric 0", text(), since=clock.seconds)
    post_all(events, clock, 0)

    assert server.counts == [2]


def test_the_same_time_of_a_state_is_posted_once_by_two_processes(server: Server, clock: FixedClock) -> None:
    changed_at = (clock.seconds - 30, clock.seconds + 90)
    for since in changed_at:
        clock.seconds = since + 30
        for _ in range(2):
            events = events_of(server, clock)
            events.post_state(HPA, "metric 0", text(), since=since)
            post_all(events, clock, 0)
            clock.seconds += 20

    assert (len(server.created), server.counts) == (1, [2])


def test_two_processes_that_post_at_the_same_moment_count_once(server: Server, clock: FixedClock) -> None:
    first, second = events_of(server, clock), events_of(server, clock)
    first.post_state(HPA, "metric 0", text(), since=None)
    post_all(first, clock, 60)
    for each in (first, second):
        each.post_state(HPA, "metric 0", text(), since=clock.seconds - 30)

    def meanwhile() -> None:
        server.before_merge = int
        post_all(second, clock, 0)

    server.before_merge = meanwhile
    post_all(first, clock, 0)

    assert (len(server.created), server.counts) == (1, [2])


def test_an_event_has_the_time_at_which_it_was_noticed(events: Events, server: Server, clock: FixedClock) -> None:
    for number in range(BURST + 1):
        events.post(HPA, text(str(number)))
    post_all(events, clock, 60)

    assert {document["eventTime"] for _, document in server.created} == {"1970-01-01T00:16:40.000000Z"}


def refused(status: int | None, said: str = "cannot create resource") -> tuple[str, str]:
    """Reason and status of the condition after such an answer; empty: there is no condition."""
    server, clock, conditions = Server(), FixedClock(), Conditions()
    server.trouble = ClusterUnreachable(f"the Kubernetes API server answered {status}: {said}", status)
    events = events_of(server, clock, conditions)
    events.post(HPA, text())
    post_all(events, clock, 0)
    return next(((each.reason, each.status) for each in conditions.current), ("", ""))


def test_a_missing_right_and_a_silent_api_server_are_a_condition() -> None:
    assert refused(403) == ("Forbidden", "false")
    assert refused(None) == refused(503) == ("NotPosted", "false")


def test_a_namespace_that_goes_is_none() -> None:
    assert refused(403, "forbidden: unable to create new content in namespace shop because it is being terminated") == (
        refused(404)
    )
    assert refused(404) == ("", "")


def test_the_condition_holds_again_with_the_next_event(events: Events, server: Server, clock: FixedClock) -> None:
    conditions = Conditions()
    events = events_of(server, clock, conditions)
    server.trouble = ClusterUnreachable("it cannot be reached")
    events.post(HPA, text())
    post_all(events, clock, 0)
    server.trouble = None
    events.post(HPA, text())
    post_all(events, clock, 0)

    assert [(each.name, each.status) for each in conditions.current] == [("autoscaler-events", "true")]


def test_what_waits_at_the_end_is_posted_as_far_as_a_burst_allows_and_the_rest_is_counted(
    events: Events, server: Server, caplog: pytest.LogCaptureFixture
) -> None:
    for number in range(BURST + 3):
        events.post(HPA, text(str(number)))
    events.end()
    events.stop(0.0)

    assert len(server.created) == BURST
    assert [line.getMessage() for line in caplog.records] == [
        "Events about HPAs that are not posted because the process ends: 3"
    ]


def test_at_the_end_nothing_is_begun_after_its_time(
    server: Server, clock: FixedClock, caplog: pytest.LogCaptureFixture
) -> None:
    def slow(path: str, document: dict[str, Any]) -> bool:
        clock.seconds += END_SECONDS
        return server.create(path, document)

    slowly = Events(slow, "pod-1", clock, wall=clock)
    for number in range(3):
        slowly.post(HPA, text(str(number)))
    slowly.end()
    slowly.stop(0.0)

    assert server.notes == ["0"]
    assert [line.getMessage() for line in caplog.records] == [
        "Events about HPAs that are not posted because the process ends: 2"
    ]


def test_an_event_that_is_being_posted_when_the_time_is_over_counts_as_not_posted(
    caplog: pytest.LogCaptureFixture,
) -> None:
    begun, ended = threading.Event(), threading.Event()

    def silent(path: str, document: dict[str, Any]) -> bool:
        del path, document
        begun.set()
        return ended.wait(60)

    events = Events(silent, "pod-1")
    events.post(HPA, text())
    events.start()
    assert begun.wait(60)
    events.stop(0.0)
    ended.set()

    assert [line.getMessage() for line in caplog.records] == [
        "Events about HPAs that are not posted because the process ends: 1"
    ]
