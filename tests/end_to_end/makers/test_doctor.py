"""What doctor says of brokers that are older than Apache Kafka's current ones, or place groups in another way."""

from pathlib import Path

from adapter.kafka.passport import meet
from adapter.settings.models import Cluster
from apiservice.doctor.check import Category, Check, Outcome
from apiservice.doctor.kafka import checks_of
from local.kafka.tools import commit, create_topic, produce
from local.makers.brokers import maker_brokers
from local.processes import wait_until
from tests.support.checks import WAIT_SECONDS, broken, examined, of


def test_the_limits_of_an_older_release_are_a_warning(rig_home: Path) -> None:
    with maker_brokers(rig_home, "kafka-2.4") as brokers:
        servers = brokers.kafka.bootstrap_servers.split(",")
        found = [*checks_of(meet(Cluster.model_validate({"name": "main", "bootstrapServers": servers})))]

    assert broken(found) == {}
    limits = [check for check in of(found, "KLA208") if check.outcome is Outcome.WARNING]
    assert len(limits) == len(servers)
    assert all("no topic ids" in check.detail and "one group per OffsetFetch" in check.detail for check in limits)


def test_another_placement_of_groups_than_apache_kafkas_is_a_warning(rig_home: Path, tmp_path: Path) -> None:
    """No release of Apache Kafka can show it: each places a group by the hash of its name. Redpanda has another hash,
    and kfake, which stands in for it, has its own."""
    topic, found = "placed", list[Check]()
    with maker_brokers(rig_home, "redpanda-24.3") as brokers:
        create_topic(brokers.kafka, topic)
        produce(brokers.kafka, topic, 10)
        for number in range(10):
            commit(brokers.kafka, f"placed-{number}", {(topic, 0): number})
        settings = {"clusters": [{"name": "main", "bootstrapServers": brokers.kafka.bootstrap_servers.split(",")}]}

        def is_decided() -> bool:
            checks = examined(tmp_path, settings, Category.KAFKA, after=5.0)
            found[:] = [check for check in of(checks, "KLA208") if check.subject == "placement of groups in main"]
            return [check.outcome for check in found] != [Outcome.SKIPPED]

        wait_until(is_decided, "enough cycles to judge the placement", WAIT_SECONDS)

    assert [check.outcome for check in found] == [Outcome.WARNING]
    assert found[0].detail.startswith("groups are not placed as in Apache Kafka")
