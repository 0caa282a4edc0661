"""Pure: HPAs as lanes of a replay, and what they are compared with: the HPA of KEDA's defaults, and an oracle."""

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from adapter.verdicts.hpa import Hpa, Metric, MetricIdentifier, MetricSource, MetricTarget
from adapter.verdicts.plant import Consumers
from adapter.verdicts.recent import Counts
from adapter.verdicts.scalers import LAG, Lane, Served
from spark.trials.calibration import load_of, members_of
from spark.trials.minutes import Minutes

KEDA_LAG, KEDA_MOST = 10, 100
"""`lagThreshold` and `maxReplicaCount` that KEDA assumes where a ScaledObject gives none."""


@dataclass(frozen=True, slots=True)
class Candidate:
    """An HPA, and what the metric is that it reads."""

    hpa: Hpa
    served: Served = LAG


def lanes_with(minutes: Minutes, consumers: Consumers, candidates: Sequence[Candidate]) -> list[Lane]:
    """Each begins with the members that were there."""
    load, is_known, first = load_of(minutes), ~np.isnan(minutes.lag), int(members_of(minutes)[0])
    return [
        Lane(
            load,
            consumers,
            it.hpa,
            replicas=int(np.clip(first, max(1, it.hpa.min_replicas), it.hpa.max_replicas)),
            lag_is_known=is_known,
            served=it.served,
        )
        for it in candidates
    ]


def lane_of_oracle(minutes: Minutes, consumers: Consumers) -> Lane:
    return Lane(load_of(minutes), consumers, members=foreseen(minutes, consumers))


def keda_of(consumers: Consumers) -> Candidate:
    """The HPA that KEDA makes of a ScaledObject with defaults. The lag that it serves is at most that of one
    replica for each partition. What KEDA does at zero replicas is not replayed."""
    target = MetricTarget(type="AverageValue", average_value=KEDA_LAG)
    metric = Metric(type="External", external=MetricSource(metric=MetricIdentifier(name="lag"), target=target))
    return Candidate(Hpa(max_replicas=KEDA_MOST, metrics=(metric,)), Served(most=float(KEDA_LAG * consumers.width)))


def foreseen(minutes: Minutes, consumers: Consumers) -> Counts:
    """The fewest members of whom none gets more than it can read in any minute or in the next one; all, where none are
    enough. Members carry whole partitions, and one of them the busiest."""
    produced = np.nan_to_num(minutes.produced) / 60
    width = consumers.width
    busiest = np.clip(np.nan_to_num(minutes.skew, nan=1 / width), 1 / width, 1.0)
    other = (1 - busiest) / max(1, width - 1)
    needed: Counts = np.full(len(produced), width, np.int64)
    for members in range(width - 1, 0, -1):
        carried = math.ceil(width / members)
        is_enough = produced * (busiest + (carried - 1) * other) <= consumers.capacity
        needed[is_enough] = members
    return np.maximum(needed, np.append(needed[1:], needed[-1:]))
