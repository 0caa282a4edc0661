"""The number of members that keeps a promise as the metric of HPAs in a replay, with what the adapter would know."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from adapter.verdicts.assignment import Counts, Divisions, Sharing
from adapter.verdicts.plant import Consumers, Messages
from adapter.verdicts.required import (
    Course,
    Courses,
    Demands,
    Promise,
    Promises,
    following_a_rise,
    quick_window_of,
    required_of_all,
)
from adapter.verdicts.scalers import Lane, Views
from adapter.verdicts.waits import beyond_flight


@dataclass(frozen=True, slots=True)
class Promised:
    """`kafka_consumergroup_required_replicas`, with the capacity that the consumers have from the start."""

    max_wait: float
    """Seconds."""

    def together(self, lanes: Sequence[Lane]) -> "_Required":
        return _Required(lanes)


class _Required:
    def __init__(self, lanes: Sequence[Lane]) -> None:
        self._groups = [lane.consumers for lane in lanes]
        self._sharings = [sharing_of(group) for group in self._groups]
        self._widths: Counts = np.array([group.width for group in self._groups], np.int64)
        self._divisions = self._divided(self._widths)
        waits = [lane.rule.max_wait for lane in lanes if isinstance(lane.rule, Promised)]
        self._promises = Promises.of(
            [Promise.of(*it) for it in zip(waits, self._sharings, self._intervals.tolist(), strict=True)]
        )
        self._capacity = np.array([group.capacity for group in self._groups])
        self._flight = self._intervals + [group.commit_seconds for group in self._groups]
        self._courses: Courses | None = None

    def values(self, views: Views) -> Messages:
        if (views.widths != self._widths).any():
            self._widths, self._divisions = views.widths, self._divided(views.widths)
        width = self._divisions.place.shape[1]
        lag, arriving, lately = (column[:, :width] for column in (views.lag, views.arriving, views.lately))
        arriving = following_a_rise(arriving, lately, quick_window_of(self._intervals))
        demands = Demands(
            arriving=arriving,
            lag=lag,
            beyond=beyond_flight(lag, arriving, self._flight[:, np.newaxis]),
            capacity=self._capacity,
            read=views.read,
            members=views.members,
            expected_members=views.replicas,
            owners=views.owners[:, :width],
        )
        courses = self._courses or Courses.of([Course(replicas) for replicas in views.replicas.tolist()])
        found, self._courses = required_of_all(views.now, demands, self._divisions, self._promises, courses)
        return found.members.astype(np.float64)

    @property
    def _intervals(self) -> Messages:
        return np.array([group.interval_seconds for group in self._groups])

    def _divided(self, widths: Counts) -> Divisions:
        """Partitions are added to groups of one topic alone."""
        partitions = [
            group.partitions if width == group.width else (width,)
            for group, width in zip(self._groups, widths.tolist(), strict=True)
        ]
        return Divisions.of(partitions, self._sharings)


def sharing_of(group: Consumers) -> Sharing:
    if group.assignor is None:
        return Sharing.SEVERAL_READERS
    return Sharing.BY_TOPIC if group.assignor.divides_each_topic else Sharing.TOGETHER
