"""`python -m local.kafka.class_archive` writes the archive of the classes that brokers load, unless it is there.

It takes about 10 s once, and saves more than a second of CPU at every start of a broker."""

import signal
import sys
from pathlib import Path

from local.downloads import cached
from local.kafka.broker import kafka
from local.kafka.java import archive_path
from local.kafka.security import Login
from local.kafka.tools import commit, create_topic, produce
from local.processes import RigError, exit_on_sigterm, scratch

NEEDS_BYTES = 200 * 1024**2
WRITE_SECONDS = 300.0


def _write(target: Path) -> None:
    """Runs a broker for what most brokers do, and lets it end by itself, as Java writes the archive then."""
    with (
        scratch("classes") as home,
        kafka(home, security=Login("alice", "wonderland"), writes_archive=target) as cluster,
    ):
        create_topic(cluster, "orders")
        produce(cluster, "orders", 1)
        commit(cluster, "billing", {("orders", 0): 1})
        (broker,) = cluster.brokers
        broker.process.send(signal.SIGTERM)
        broker.process.wait(WRITE_SECONDS)
        broker.stop()
        if not target.exists():
            raise RigError(f"Java wrote no archive of Kafka's classes:\n{broker.process.log_tail()}")


def main() -> int:
    try:
        with exit_on_sigterm():
            cached(archive_path().name, NEEDS_BYTES, _write)
    except RigError as error:
        # Everything works without it.
        print(error, file=sys.stderr)
    except KeyboardInterrupt:
        return 130
    return 0


if __name__ == "__main__":
    sys.exit(main())
