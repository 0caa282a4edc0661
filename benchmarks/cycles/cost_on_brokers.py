"""Table: the cost of a cycle on three real brokers with a thousand groups of 40 partitions, and of admin calls."""

import contextlib
from collections.abc import Iterator
from pathlib import Path

from kafka.admin import KafkaAdminClient, NewTopic

from benchmarks.cycles.cost import WARM_UP, cost_rows
from benchmarks.cycles.timed import CyclePlan, run
from benchmarks.measuring.effort import Effort
from benchmarks.measuring.tables import Table
from benchmarks.rig.cluster import BROKERS, commit_all, say
from local.kafka.admin import admin
from local.kafka.broker import Kafka, kafka
from local.processes import RigError, wait_until

TOPICS = 25
PARTITIONS = 40
MOST_MILLISECONDS = 40
TIMEOUT_SECONDS = 90.0
HOW = (
    f"Groups of {PARTITIONS} partitions each on {BROKERS} real brokers, in {TOPICS} topics without messages that the "
    "groups share. Measured like the table above, from the wire to the store with its totals; the admin calls only "
    "read."
)


def measure(home: Path, effort: Effort) -> Table:
    groups = effort.groups_on_brokers
    with thousand_groups(home / "kafka", groups) as cluster:
        say(f"  {groups:,} groups: {effort.timed_cycles} cycles")
        plan = CyclePlan(
            cluster.bootstrap_servers, WARM_UP, effort.timed_cycles, groups * PARTITIONS,
            admin_rounds=effort.admin_rounds,
        )  # fmt: skip
        costs = run(plan, home / "cycles")
    if set(costs.outcomes) != {"complete"}:
        raise RigError(f"cycles were {', '.join(sorted(set(costs.outcomes)))}: see {home}")
    who = f"{groups:,} groups, {groups * PARTITIONS:,} rows"
    return Table(
        f"CPU of a cycle on {BROKERS} real brokers",
        HOW,
        tuple(cost_rows(who, costs.cycles, costs.admin, MOST_MILLISECONDS)),
    )


@contextlib.contextmanager
def thousand_groups(home: Path, groups: int) -> Iterator[Kafka]:
    """Runs brokers with groups that have each committed offset 0 in every partition of one topic."""
    say(f"  starting {BROKERS} brokers and making {groups:,} groups")
    with kafka(home, brokers=BROKERS, heap_megabytes=512) as cluster:
        topics = [f"topic-{number:02}" for number in range(TOPICS)]
        with admin(cluster.bootstrap_servers, request_timeout_ms=60_000) as client:
            client.create_topics([NewTopic(name, PARTITIONS, 1) for name in topics])
            wait_until(lambda: _all_have_leaders(client, topics), "the leaders", TIMEOUT_SECONDS)
        own = {f"group-{number:04}": topics[number % TOPICS] for number in range(groups)}
        commit_all(cluster, {g: {(topic, index): 0 for index in range(PARTITIONS)} for g, topic in own.items()})
        yield cluster


def _all_have_leaders(client: KafkaAdminClient, topics: list[str]) -> bool:
    partitions = [each for topic in client.describe_topics(topics) for each in topic["partitions"]]
    return len(partitions) == len(topics) * PARTITIONS and all(each["leader_id"] >= 0 for each in partitions)
