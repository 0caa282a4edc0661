"""The requests that reach the brokers, from Kafka's own request log in the brokers' files.

At level DEBUG, `kafka.request.logger` writes a line of JSON for each completed request, with the client's id, the
kind and the content. So the client library's own requests are counted as well."""

import contextlib
import json
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from kafka.admin import ConfigResource, ConfigResourceType

from local.kafka.admin import admin
from local.kafka.broker import Kafka

LOGGER = "kafka.request.logger"
MARK = "Completed request:"
CLIENT_ID = "kafka-lag-adapter"
EARLIEST = -2
LOG_STARTS = "LIST_OFFSETS (log starts)"
OFFSET_KINDS = ("OFFSET_FETCH", "LIST_OFFSETS")
"""The kinds that every cycle needs: commits and log ends."""


@dataclass(frozen=True, slots=True)
class Mark:
    """The length of each broker's log file at one moment."""

    sizes: tuple[int, ...]


@contextlib.contextmanager
def recording(cluster: Kafka) -> Iterator[None]:
    """The brokers log every request inside this context."""
    _set_level(cluster, "DEBUG")
    try:
        yield
    finally:
        _set_level(cluster, "INFO")


def mark(cluster: Kafka) -> Mark:
    return Mark(tuple(broker.process.log.stat().st_size for broker in cluster.brokers))


def requests_between(cluster: Kafka, begin: Mark, end: Mark) -> Counter[str]:
    """Returns the adapter's requests by kind, at all brokers together."""
    found: Counter[str] = Counter()
    for broker, first, last in zip(cluster.brokers, begin.sizes, end.sizes, strict=True):
        with broker.process.log.open("rb") as log:
            log.seek(first)
            found += kinds_in(log.read(last - first).decode(errors="replace").splitlines())
    return found


def kinds_in(lines: Iterable[str]) -> Counter[str]:
    """Returns the adapter's requests by kind in lines of a broker's log; reading log starts is a separate kind."""
    marked = (line.partition(MARK)[2] for line in lines)
    logged = [json.loads(text) for text in marked if text]
    return Counter(_kind(each) for each in logged if each["requestHeader"].get("clientId") == CLIENT_ID)


def _kind(logged: Mapping[str, Any]) -> str:
    kind = str(logged["requestHeader"]["requestApiKeyName"])
    if kind != "LIST_OFFSETS":
        return kind
    timestamps = {part["timestamp"] for topic in logged["request"]["topics"] for part in topic["partitions"]}
    return LOG_STARTS if timestamps == {EARLIEST} else kind


def _set_level(cluster: Kafka, level: str) -> None:
    resources = [
        ConfigResource(ConfigResourceType.BROKER_LOGGER, str(broker.node_id), {LOGGER: level})
        for broker in cluster.brokers
    ]
    with admin(cluster.bootstrap_servers) as client:
        client.alter_configs(resources, raise_on_unknown=False)
