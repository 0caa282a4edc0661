"""What doctor says of brokers that are older than Apache Kafka's current ones."""

from pathlib import Path

from adapter.kafka.passport import meet
from adapter.settings.models import Cluster
from apiservice.doctor.check import Outcome
from apiservice.doctor.kafka import checks_of
from local.makers.brokers import maker_brokers
from tests.support.checks import broken, of


def test_the_limits_of_an_older_release_are_a_warning(rig_home: Path) -> None:
    with maker_brokers(rig_home, "kafka-2.4") as brokers:
        servers = brokers.kafka.bootstrap_servers.split(",")
        found = [*checks_of(meet(Cluster.model_validate({"name": "main", "bootstrapServers": servers})))]

    assert broken(found) == {}
    limits = [check for check in of(found, "KLA208") if check.outcome is Outcome.WARNING]
    assert len(limits) == len(servers)
    assert all("no topic ids" in check.detail and "one group per OffsetFetch" in check.detail for check in limits)
