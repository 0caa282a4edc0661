"""The consumer that demos and tests start, on a real broker."""

import signal
import sys
from pathlib import Path

from local.kafka.broker import Kafka
from local.kafka.tools import create_topic, produce
from local.processes import start, wait_until

NAME = "member-that-leaves"


def test_a_member_that_is_asked_to_end_leaves_its_group_and_records_the_partitions_that_it_gave_up(
    one_broker: Kafka, tmp_path: Path
) -> None:
    create_topic(one_broker, NAME, 2)
    produce(one_broker, NAME, 10)
    records = tmp_path / "records"
    records.mkdir()
    flags = {"bootstrap-servers": one_broker.bootstrap_servers, "group": NAME, "topic": NAME, "waits": records}
    command = [sys.executable, "-m", "local.kafka.consumer", *(f"--{name}={value}" for name, value in flags.items())]
    with start("a member", command, log=tmp_path / "member.log") as member:
        # A commit whose answer comes too late is repeated, and so are the lines.
        wait_until(lambda: len(places(records)) == 10, "all messages to be read", 120, alive=[member])
        member.send(signal.SIGTERM)
        status = member.wait(60)

    assert status == 0, member.log_tail()
    assert [line.split()[:2] for line in lines(records, "rebalances")][-1] == ["revoked", "2"]


def lines(folder: Path, kind: str) -> list[str]:
    return [line for file in folder.glob(f"*.{kind}") for line in file.read_text().splitlines()]


def places(folder: Path) -> set[tuple[str, ...]]:
    """Partition and offset of each message that was read and committed."""
    return {tuple(line.split()[:2]) for line in lines(folder, "waits")}
