"""Fake brokers on loopback, in a separate process, that store the frames they have sent.

`python -m benchmarks.rig.stored_brokers --cluster FILE`. The first answer to a request is made by the tests' fake
brokers. After that, the same bytes get the stored frame with the new correlation id and offsets. This takes little CPU,
so that a client of 100,000 partitions can be measured on the same machine."""

import argparse
import asyncio
import contextlib
import logging
import sys
import threading
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from struct import Struct

import numpy as np
from cachetools import LRUCache
from numpy.typing import NDArray

from benchmarks.rig.stored_cluster import (
    FIRST_OFFSET,
    MARKED,
    MARKED_PREFIX,
    REFUSED_AFTER,
    Refusal,
    StoredCluster,
    StoredGroup,
    cluster_in,
)
from local.processes import free_port, is_listening, start, wait_until
from tests.support.kafka.wire_fake import (
    API_VERSIONS,
    DESCRIBE_GROUPS,
    FIND_COORDINATOR,
    LIST_GROUPS,
    LIST_OFFSETS,
    METADATA,
    OFFSET_FETCH,
    Asked,
    WireFake,
)

logger = logging.getLogger(__name__)

START_TIMEOUT_SECONDS = 120.0
MOST_KEPT = 20_000
VERSIONS = {
    API_VERSIONS: (0, 4),
    METADATA: (10, 11),
    LIST_GROUPS: (3, 5),
    FIND_COORDINATOR: (4, 4),
    DESCRIBE_GROUPS: (5, 5),
    OFFSET_FETCH: (8, 8),
    LIST_OFFSETS: (7, 7),
}
TOPIC_NOT_AUTHORIZED, GROUP_NOT_AUTHORIZED = 29, 30
_INT32 = Struct(">i")


@contextlib.contextmanager
def stored_brokers(
    home: Path,
    groups: tuple[StoredGroup, ...],
    nodes: int,
    refusal: Refusal | None = None,
    *,
    takes_groups: bool = True,
) -> Iterator[StoredCluster]:
    """Runs this number of nodes, which share these groups and topics; ends them with the block."""
    home.mkdir(parents=True, exist_ok=True)
    ports = tuple(free_port() for _ in range(nodes))
    cluster = StoredCluster(groups, ports, time.monotonic(), refusal, takes_groups)
    file = home / "cluster.json"
    file.write_text(cluster.to_json())
    command = [sys.executable, "-m", "benchmarks.rig.stored_brokers", f"--cluster={file}"]
    with start("stored brokers", command, log=home / "brokers.log") as process:
        wait_until(
            lambda: all(map(is_listening, cluster.ports)), "stored brokers", START_TIMEOUT_SECONDS, alive=[process]
        )
        yield cluster


@dataclass(slots=True)
class _Stored:
    """A response as a whole frame, and the positions of its offsets."""

    frame: bytearray
    places: NDArray[np.intp]
    """Eight bytes for each offset: shape (offsets, 8)."""
    offsets: NDArray[np.int64]
    """The offsets when all logs began."""
    answers: int

    def at(self, correlation_id: int, milliseconds: int) -> bytes:
        self.answers += 1
        _INT32.pack_into(self.frame, 4, correlation_id)
        if len(self.places):
            now = (self.offsets + milliseconds).astype(">i8").view(np.uint8)
            np.frombuffer(self.frame, dtype=np.uint8)[self.places] = now.reshape(-1, 8)
        return bytes(self.frame)


class _StoredFrames(WireFake):
    def __init__(self, cluster: StoredCluster) -> None:
        versions = VERSIONS if cluster.takes_groups else {**VERSIONS, OFFSET_FETCH: (7, 7)}
        super().__init__(cluster.kafka(), versions=versions, ports=dict(enumerate(cluster.ports, start=1)))
        self._cluster = cluster
        self._kept: LRUCache[tuple[int, int, int, bytes], _Stored] = LRUCache(MOST_KEPT)

    def frame(self, asked: Asked) -> bytes:
        # Metadata is the same from all nodes, and slow to encode.
        key = (0 if asked.key == METADATA else asked.node, asked.key, asked.version, asked.body)
        stored = self._kept.get(key)
        is_refused = stored is not None and self._is_to_be_refused(asked.key, stored)
        if is_refused:
            self._refuse()
        if stored is None or is_refused:
            stored = self._kept[key] = _stored(self._made(asked), answers=REFUSED_AFTER + 1 if is_refused else 0)
        return stored.at(asked.correlation, int((time.monotonic() - self._cluster.began) * 1000))

    def _made(self, asked: Asked) -> bytes:
        try:
            return super().frame(asked)
        except Exception:
            # The tests' brokers keep their mistakes for the process that started them, which is another one here.
            logger.exception("request %d of version %d", asked.key, asked.version)
            raise

    def _is_to_be_refused(self, key: int, stored: _Stored) -> bool:
        """True once for each request: the frame made then refuses everything."""
        refused = {Refusal.GROUPS: OFFSET_FETCH, Refusal.TOPICS: LIST_OFFSETS, None: None}[self._cluster.refusal]
        return key == refused and stored.answers == REFUSED_AFTER

    def _refuse(self) -> None:
        if self._cluster.refusal is Refusal.GROUPS:
            self.kafka.commit_errors = dict.fromkeys(self.kafka.commits, GROUP_NOT_AUTHORIZED)
        else:
            self.kafka.end_errors = dict.fromkeys(self.kafka.ends, TOPIC_NOT_AUTHORIZED)


def _stored(frame: bytes, answers: int) -> _Stored:
    places, begin = [], frame.find(MARKED_PREFIX)
    while begin >= 0:
        places.append(begin)
        begin = frame.find(MARKED_PREFIX, begin + 8)
    of_offsets = np.array(places, dtype=np.intp)[:, None] + np.arange(8)
    marked = np.frombuffer(frame, dtype=np.uint8)[of_offsets].copy().view(">i8").ravel()
    return _Stored(bytearray(frame), of_offsets, marked.astype(np.int64) - MARKED + FIRST_OFFSET, answers)


async def _serve(cluster: StoredCluster) -> None:
    await _StoredFrames(cluster).serve(threading.Event(), asyncio.Event())


def main(arguments: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--cluster", type=Path, required=True)
    asyncio.run(_serve(cluster_in(parser.parse_args(arguments).cluster)))


if __name__ == "__main__":
    main()
