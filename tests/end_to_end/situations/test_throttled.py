"""A broker whose quota lets the adapter ask little: every answer says how long to wait before the next question."""

import time

from adapter.collector.cycle import Outcome
from local.kafka.broker import Kafka
from local.kafka.tools import commit, create_topic, produce
from local.processes import wait_until
from tests.support.real.changes import WAIT_SECONDS, quota, readable
from tests.support.real.in_process import InProcess, in_process
from tests.support.real.versions import needs_quota_requests

pytestmark = needs_quota_requests

TINY = ("kafka-lag-adapter", "request_percentage", 0.01)
"""Used up by every single request: the broker asks for a wait of a second each time, its longest."""


def test_a_throttled_adapter_is_slower_and_as_right(one_broker: Kafka) -> None:
    topic = group = "throttled"
    create_topic(one_broker, topic)
    commit(one_broker, group, {(topic, 0): 0})
    only_it = {"groups": {"include": [group]}}  # others on this broker may be in trouble
    with in_process(one_broker, collection=only_it) as rig:
        rig.run_once()
        with quota(one_broker, *TINY):
            wait_until(lambda: _seconds_of_a_cycle(rig) > 0.5, "the quota to be felt", WAIT_SECONDS)
            produce(one_broker, topic, 3)
            outcome = rig.run_once()

            assert outcome.completeness == "complete", outcome
            assert rig.lag(group) == 3


def test_a_wait_beyond_the_deadline_is_told_and_the_last_value_stays(one_broker: Kafka) -> None:
    topic = group = "throttled-for-long"
    create_topic(one_broker, topic)
    produce(one_broker, topic, 3)
    commit(one_broker, group, {(topic, 0): 0})
    with in_process(one_broker, call_seconds=0.5, collection={"maxAge": "60s"}) as rig:
        rig.wait_for_lag(3, group)
        with quota(one_broker, *TINY):
            rig.wait_for(lambda: _keeps_the_last_value(rig, one_broker, topic), "a throttled cycle to keep the value")

        rig.wait_for_lag(readable(one_broker, topic), group)


def _keeps_the_last_value(rig: InProcess, cluster: Kafka, topic: str) -> bool:
    """False if the quota did not delay this cycle beyond the deadline: the value is a new one then."""
    last = rig.lag(topic)
    produce(cluster, topic, 1)
    return _is_throttled(rig.run_once()) and rig.lag(topic) == last


def _seconds_of_a_cycle(rig: InProcess) -> float:
    begun = time.monotonic()
    assert rig.run_once().completeness == "complete"
    return time.monotonic() - begun


def _is_throttled(outcome: Outcome) -> bool:
    return any(
        failure.cause == "throttled" and "throttles the adapter because a quota is used up" in failure.text
        for failure in outcome.failures
    )
