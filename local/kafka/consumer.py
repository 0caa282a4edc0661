"""A member of a consumer group that handles a limited number of messages per second: the load of demo and tests.

python -m local.kafka.consumer --bootstrap-servers HOST:PORT --group G --topic T --rate 100

It commits after every small batch and leaves its group on SIGTERM."""

import argparse
import contextlib
import logging
import os
import signal
import threading
import time
from collections.abc import Callable, Collection, Mapping, Sequence
from contextlib import closing
from functools import partial
from pathlib import Path
from types import FrameType
from typing import TextIO

from kafka import KafkaConsumer, TopicPartition
from kafka.consumer.fetcher import ConsumerRecord
from kafka.consumer.subscription_state import ConsumerRebalanceListener
from kafka.errors import CommitFailedError, RebalanceInProgressError, RetriableError
from kafka.structs import MemberState

logger = logging.getLogger(__name__)

BATCH_SECONDS = 0.2
"""The work between two commits; SIGTERM waits at most this long, or for one slow message."""


Batch = Mapping[TopicPartition, Sequence[ConsumerRecord]]


def consume(
    consumer: KafkaConsumer, rate: float, is_ending: Callable[[], bool], committed: Callable[[Batch], None]
) -> None:
    """Reads, works and commits until it is stopped; `rate` is in messages per second, and `committed` receives each
    batch whose commit succeeded."""
    free_at = time.monotonic()
    while not is_ending():
        batch = consumer.poll(timeout_ms=200, max_records=max(1, int(rate * BATCH_SECONDS)))
        if consumer.group_metadata().state is MemberState.REBALANCING:
            # In kafka-python 3.0.12, a leader that joins again because partitions changed forgets that it is joining
            # as soon as it has assigned them. If its poll has ended by then, it never learns which are its own.
            consumer._coordinator.request_rejoin()
        count = sum(len(messages) for messages in batch.values())
        if count == 0:
            continue
        # Counted from when the work before was due to end, so that reading and committing cost no rate.
        free_at = max(free_at, time.monotonic() - BATCH_SECONDS) + count / rate
        time.sleep(max(0.0, free_at - time.monotonic()))  # the simulated work
        if _commit(consumer):
            committed(batch)
        else:
            _read_again(consumer, batch)


def _commit(consumer: KafkaConsumer) -> bool:
    try:
        consumer.commit()
    except (CommitFailedError, RebalanceInProgressError, RetriableError) as error:
        logger.warning("not committed: %s", error)
        return False
    return True


def _read_again(consumer: KafkaConsumer, batch: Batch) -> None:
    """Goes back to the batch in the partitions that are still the member's; their next owner repeats it in all others.

    A rebalance leaves the positions of kept partitions as they are: where no message follows, nothing else would ever
    commit them."""
    for partition in consumer.assignment() & batch.keys():
        consumer.seek(partition, batch[partition][0].offset)


def _waits_to(file: TextIO, batch: Batch) -> None:
    """Writes a line for each message: its partition, its offset, when it was written, and the time of its commit."""
    now = time.time()
    for partition, messages in batch.items():
        for message in messages:
            file.write(f"{partition.partition} {message.offset} {message.timestamp / 1000:.3f} {now:.3f}\n")
    file.flush()


class _Rebalances(ConsumerRebalanceListener):  # type: ignore[misc]  # kafka-python has no types
    """Writes a line whenever the member loses its partitions or gets some: which of both, how many, and the time."""

    def __init__(self, file: TextIO) -> None:
        self._file = file

    def on_partitions_revoked(self, revoked: Collection[TopicPartition]) -> None:
        self._write("revoked", revoked)

    def on_partitions_assigned(self, assigned: Collection[TopicPartition]) -> None:
        self._write("assigned", assigned)

    def _write(self, what: str, partitions: Collection[TopicPartition]) -> None:
        self._file.write(f"{what} {len(partitions)} {time.time():.3f}\n")
        self._file.flush()


def main() -> None:
    arguments = _arguments()
    logging.basicConfig(level=logging.WARNING, format="%(asctime)s %(levelname)s %(name)s: %(message)s")
    ending = threading.Event()

    def end(_number: int, _frame: FrameType | None) -> None:
        ending.set()

    signal.signal(signal.SIGTERM, end)
    signal.signal(signal.SIGINT, end)
    if ending.wait(arguments.start_seconds):
        return
    with contextlib.ExitStack() as running:
        # Opened first and so closed last: while the consumer closes, its listener still writes to them.
        waits, rebalances = (running.enter_context(_record(arguments.waits, kind)) for kind in ("waits", "rebalances"))
        consumer = running.enter_context(closing(_consumer(arguments)))
        consumer.subscribe([arguments.topic], listener=_Rebalances(rebalances))
        # A member that joins before it knows its topic assigns itself nothing, and joins once more.
        consumer.partitions_for_topic(arguments.topic)
        consume(consumer, arguments.rate, ending.is_set, partial(_waits_to, waits))


def _record(folder: Path | None, kind: str) -> TextIO:
    """Opens a file for each process, named after its pod: those of pods that have ended count, too."""
    name = f"{os.environ.get('POD', os.getpid())}.{time.time_ns()}.{kind}"
    path = Path(os.devnull) if folder is None else folder / name
    return path.open("w")


def _consumer(arguments: argparse.Namespace) -> KafkaConsumer:
    return KafkaConsumer(
        bootstrap_servers=arguments.bootstrap_servers.split(","),
        group_id=arguments.group,
        client_id=arguments.client_id,
        auto_offset_reset="earliest",
        enable_auto_commit=False,
        # The shortest that brokers allow: a killed member's partitions are another's soon.
        session_timeout_ms=6_000,
        heartbeat_interval_ms=1_000,
        metadata_max_age_ms=5_000,  # topics and partitions made later are noticed
        request_timeout_ms=10_000,
    )


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m local.kafka.consumer", description="Consume slowly.")
    parser.add_argument("--bootstrap-servers", required=True)
    parser.add_argument("--group", required=True)
    parser.add_argument("--topic", required=True)
    parser.add_argument("--client-id", default="consumer", help="consumer by default")
    parser.add_argument("--rate", type=float, default=100.0, help="messages per second, at most")
    parser.add_argument("--start-seconds", type=float, default=0.0, help="before it joins, as a large image takes")
    parser.add_argument(
        "--waits", type=Path, help="a folder for how long each message waited, and rebalances; default: none"
    )
    return parser.parse_args()


if __name__ == "__main__":
    main()
