"""The thread that reads the past back: once, when rows are known, and whatever the location does."""

import logging
import math
from dataclasses import dataclass, field

import numpy as np
import pytest

from adapter.conditions import Conditions
from adapter.history.errors import HistoryUnwritable
from adapter.history.reading.recall import LOOK_SECONDS, RETRY_SECONDS, Recall
from adapter.lag.earlier import Wanted
from adapter.lag.ring import Ring
from tests.support import samples
from tests.support.history.histories import FakeFiles
from tests.support.samples import SteppedClock

LAYOUT = samples.layout([("billing", "orders", 0)])
UNREACHABLE = HistoryUnwritable("unreachable", "s3://lag: cannot be reached")


@dataclass
class Cluster:
    """A follower of offsets."""

    rows_to_recall: Wanted | None = field(default_factory=lambda: Wanted("main", LAYOUT, np.zeros(1, dtype=bool)))
    pasts: list[Ring] = field(default_factory=list)

    def precede(self, past: Ring) -> None:
        self.pasts.append(past)


class Rig:
    def __init__(self, cluster: Cluster, trouble: Exception | None = None) -> None:
        self.clusters = {"main": cluster}
        self.files, self.conditions = FakeFiles(trouble=trouble), Conditions()
        self.recall = Recall(self.files, lambda: self.clusters, 10.0, self.conditions, SteppedClock(), "a")

    @property
    def condition(self) -> tuple[str, str]:
        (one,) = self.conditions.current
        return one.reason, one.message


def test_the_past_is_read_once_when_the_rows_are_known() -> None:
    cluster = Cluster(rows_to_recall=None)
    rig = Rig(cluster)
    assert rig.recall.turn() == LOOK_SECONDS
    assert cluster.pasts == []

    cluster.rows_to_recall = Cluster().rows_to_recall
    assert [rig.recall.turn(), rig.recall.turn()] == [math.inf, math.inf]
    assert len(cluster.pasts) == 1
    assert rig.condition == ("Read", "what moved before the start has been read back")


def test_a_location_that_cannot_be_read_is_said_once_and_tried_again(caplog: pytest.LogCaptureFixture) -> None:
    cluster = Cluster()
    rig = Rig(cluster, UNREACHABLE)
    assert [rig.recall.turn(), rig.recall.turn()] == [RETRY_SECONDS, RETRY_SECONDS]
    assert rig.condition == ("NotRead", "ages and rates count from the start of this process")
    assert sum("history-past: NotRead" in message for message in caplog.messages) == 1
    assert cluster.pasts == []

    rig.files.trouble = None
    assert rig.recall.turn() == math.inf
    assert len(cluster.pasts) == 1


def test_a_collector_that_took_over_meanwhile_gets_the_past() -> None:
    former, next_one = Cluster(rows_to_recall=None), Cluster()
    rig = Rig(former)
    rig.recall.turn()
    rig.clusters = {"main": next_one}
    rig.recall.turn()

    assert (len(former.pasts), len(next_one.pasts)) == (0, 1)


def test_a_cluster_that_was_added_later_has_no_past() -> None:
    rig, added = Rig(Cluster()), Cluster()
    rig.clusters["added"] = added
    rig.recall.turn()

    assert added.pasts == []


def test_the_hours_that_log_ends_are_remembered_are_looked_through(caplog: pytest.LogCaptureFixture) -> None:
    """At an interval of 10 s, 4,000 cycles: 11 hours, the hours around them included."""
    listed: list[str] = []
    rig = Rig(Cluster())
    rig.files.names = lambda folder: listed.append(folder) or []  # type: ignore[method-assign, func-returns-value]
    with caplog.at_level(logging.INFO):
        rig.recall.turn()

    assert 13 <= len(listed) <= 14
    assert "history: read back 0 readings of the offsets of cluster main" in caplog.messages
