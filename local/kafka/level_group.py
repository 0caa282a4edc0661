"""A group that commits every batch of a steady producer at once, and its lag at any time."""

import threading
import time
from bisect import bisect_left
from collections.abc import Iterator
from contextlib import closing, contextmanager, suppress
from dataclasses import dataclass

from kafka import KafkaConsumer, KafkaProducer, TopicPartition
from kafka.errors import KafkaError
from kafka.structs import OffsetAndMetadata

from local.processes import RigError, wait_until

TIMEOUT_SECONDS = 120.0


@dataclass(frozen=True, slots=True)
class Step:
    """One batch in one partition: seconds of the monotonic clock, and offsets over all partitions."""

    begun: float
    """When its first message may have been written."""
    written: float
    committed: float
    """When the commit was acknowledged."""
    end: int
    """The sum of the log ends from now on, and of the commits once they are acknowledged."""


class LevelGroup:
    """Batches go to the partitions in turn. Made by `level_group`."""

    def __init__(self, servers: str, group: str, topic: str, partitions: int, rate: int, batch: int) -> None:
        self._servers = servers.split(",")
        self._group = group
        self._partitions = [TopicPartition(topic, index) for index in range(partitions)]
        self._batch = batch
        self._pause = batch / rate
        self._stopping = threading.Event()
        self._thread = threading.Thread(target=self._run, name=f"level-group-{group}")
        self._failure: Exception | None = None
        self.steps: list[Step] = []
        """Only appended to."""

    @property
    def rate(self) -> float:
        """Returns the messages per second since the first batch."""
        steps = self.steps[1:]
        return (steps[-1].end - steps[0].end) / (steps[-1].written - steps[0].written) if len(steps) > 1 else 0.0

    def wait_for_steps(self, count: int) -> None:
        """Waits until it has done this many more."""
        wanted = len(self.steps) + count
        wait_until(lambda: len(self.steps) >= wanted or self._failure is not None, "the load to run", TIMEOUT_SECONDS)

    def excess(self, lag: int, asked: float, since: float) -> float:
        """Returns for how many seconds the lag was too large: 0 for a lag that was true between the two times."""
        steps = self.steps[:]
        ends = [step.end for step in steps]
        # A commit is known from before it was acknowledged, and until the next one is.
        untils = [*(step.committed for step in steps[1:]), asked]
        commits = [(step, until) for step, until in zip(steps, untils, strict=True) if until >= since]
        least = float("inf")
        for step, until in commits:
            if step.written > asked:
                break
            place = bisect_left(ends, step.end + lag)
            if place < len(steps):
                least = min(least, steps[place].begun - until)
            elif step.end + lag <= ends[-1] + self._batch:  # of the batch that is being written
                least = min(least, steps[-1].committed - until)
        return max(least, 0.0)

    def slowest_step(self, since: float) -> float:
        """Returns the seconds of the slowest batch since that time: how long the brokers take for one at most."""
        return max((step.committed - step.begun for step in self.steps[:] if step.committed >= since), default=0.0)

    def start(self) -> None:
        self._thread.start()

    def stop(self) -> None:
        """Raises RigError if it could not continue until now."""
        self._stopping.set()
        self._thread.join()
        if self._failure is not None:
            raise RigError(f"the load of group {self._group} ended: {self._failure!r}")

    def _run(self) -> None:
        try:
            with (
                closing(KafkaProducer(bootstrap_servers=self._servers, acks=1, linger_ms=5)) as producer,
                closing(
                    KafkaConsumer(bootstrap_servers=self._servers, group_id=self._group, enable_auto_commit=False)
                ) as consumer,
            ):
                self._produce(producer, consumer)
        except KafkaError as error:
            self._failure = error

    def _produce(self, producer: KafkaProducer, consumer: KafkaConsumer) -> None:
        consumer.assign(self._partitions)
        ends = dict(consumer.end_offsets(self._partitions))
        self.steps.append(Step(0.0, 0.0, 0.0, sum(ends.values())))
        due, number = time.monotonic(), 0
        while not self._stopping.wait(due - time.monotonic()):
            partition = self._partitions[number % len(self._partitions)]
            number += 1
            begun = time.monotonic()
            sent = [
                producer.send(partition.topic, value=b"message", partition=partition.partition)
                for _ in range(self._batch)
            ]
            ends[partition] = 1 + max(one.get(timeout=TIMEOUT_SECONDS).offset for one in sent)
            written = time.monotonic()
            consumer.commit({partition: OffsetAndMetadata(ends[partition], "", -1)})
            self.steps.append(Step(begun, written, time.monotonic(), sum(ends.values())))
            due = max(due + self._pause, time.monotonic())


@contextmanager
def level_group(
    servers: str, group: str, topic: str, partitions: int, rate: int = 5_000, batch: int = 200
) -> Iterator[LevelGroup]:
    """Keeps the group running; `rate` is in messages per second over all partitions, less on a busy machine."""
    load = LevelGroup(servers, group, topic, partitions, rate, batch)
    load.start()
    try:
        yield load
    except BaseException:
        with suppress(RigError):  # what went wrong first is what counts
            load.stop()
        raise
    load.stop()
