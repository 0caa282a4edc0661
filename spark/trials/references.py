"""Pure: HPAs as lanes of a replay, and what they are compared with: the HPA of KEDA's defaults, and an oracle."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from adapter.verdicts.hpa import Hpa, Metric, MetricIdentifier, MetricSource, MetricTarget
from adapter.verdicts.owners import owners_table
from adapter.verdicts.recent import Counts
from adapter.verdicts.simulation.consumers import Consumers
from adapter.verdicts.simulation.promised import Promised
from adapter.verdicts.simulation.scalers import LAG, Lane, RuleOf, Served
from spark.figures.model import Flags, Floats
from spark.trials.calibration import events_of, load_of, members_of
from spark.trials.minutes import Minutes, Shape

KEDA_LAG, KEDA_MOST = 10, 100
"""`lagThreshold` and `maxReplicaCount` that KEDA assumes where a ScaledObject gives none."""


LEAD = np.timedelta64(10, "m")
"""Before the hours for which a schedule wants more replicas, it sets them."""
TINY = 1e-9
"""The weight of no partition."""


@dataclass(frozen=True, slots=True)
class Candidate:
    """An HPA, and what the metric is that it reads."""

    hpa: Hpa
    served: Served = LAG
    rule: RuleOf | None = None
    """What it reads instead; None: `served`."""
    least_by_hour: tuple[int, ...] | None = None
    """Its least replicas in each hour of a `Shape`, from `LEAD` before it on; None: those of the HPA."""

    @property
    def max_wait(self) -> float | None:
        """Seconds for which the number that keeps a promise is computed; None: it reads something else."""
        return self.rule.max_wait if isinstance(self.rule, Promised) else None


def served_by_lag(messages: int, partitions: int) -> Served:
    """Returns what a rule with `lagPerReplica` serves: no more replicas than there are partitions."""
    return Served(most=float(messages * partitions), replica=float(messages))


def lanes_with(minutes: Minutes, consumers: Consumers, candidates: Sequence[Candidate], shape: Shape) -> list[Lane]:
    """Each begins with the members that were there."""
    load, events, is_known = load_of(minutes), events_of(minutes), ~np.isnan(minutes.lag)
    first = int(members_of(minutes)[0])
    return [
        Lane(
            load,
            consumers,
            it.hpa,
            replicas=int(np.clip(first, max(1, it.hpa.min_replicas), it.hpa.max_replicas)),
            lag_is_known=is_known,
            served=it.served,
            rule=it.rule,
            events=events,
            least=None if it.least_by_hour is None else _least(minutes, it.hpa, it.least_by_hour, shape),
        )
        for it in candidates
    ]


def _least(minutes: Minutes, hpa: Hpa, by_hour: tuple[int, ...], shape: Shape) -> Counts:
    """The `minReplicas` that a schedule sets, minute by minute. In hours without a value it sets the smallest one."""
    column = np.array(by_hour, float)
    now, soon = (shape.at(column, minutes.start + lead) for lead in (0 * LEAD, LEAD))
    return np.nan_to_num(np.fmax(now, soon), nan=min(by_hour, default=hpa.min_replicas)).astype(np.int64)


def lane_of_oracle(minutes: Minutes, consumers: Consumers) -> Lane:
    return Lane(load_of(minutes), consumers, members=foreseen(minutes, consumers), events=events_of(minutes))


def keda_of(consumers: Consumers) -> Candidate:
    """The HPA that KEDA makes of a ScaledObject with defaults. The lag that it serves is at most that of one
    replica for each partition. What KEDA does at zero replicas is not replayed."""
    target = MetricTarget(type="AverageValue", average_value=KEDA_LAG)
    metric = Metric(type="External", external=MetricSource(metric=MetricIdentifier(name="lag"), target=target))
    return Candidate(Hpa(max_replicas=KEDA_MOST, metrics=(metric,)), Served(most=float(KEDA_LAG * consumers.width)))


def foreseen(minutes: Minutes, consumers: Consumers) -> Counts:
    """The fewest members of whom none gets more than it can read in any minute or in the next one; as many as there are
    partitions, where none are enough, and until what waited has been read."""
    produced, width = np.nan_to_num(minutes.produced) / 60, consumers.width
    able = consumers.capacity * (np.ones(len(produced)) if minutes.pace is None else minutes.pace)
    needed: Counts = np.full(len(produced), width, np.int64)
    for members in range(width - 1, 0, -1):
        needed[produced * _largest_share(minutes, consumers, members) <= able] = members
    largest = _largest_share(minutes, consumers, width)
    # Of the lag, which is that of the first known minute, what came since the last commit has been read.
    first = produced[minutes.is_known][:1].sum()
    waiting = max(0.0, load_of(minutes).lag - first * (consumers.commit_seconds + consumers.interval_seconds))
    needed[_is_behind(able - produced * largest, waiting * largest[:1])] = width
    return np.maximum(needed, np.append(needed[1:], needed[-1:]))


def _is_behind(spare: Floats, waiting: Floats) -> Flags:
    """Whether messages wait at the beginning of each minute, if there are as many members as partitions all the time.
    `spare`: what the busiest member could read beside what it gets, in messages per second. `waiting`: the messages for
    it that wait at the beginning of the first minute."""
    total = np.cumsum(np.append(waiting, -60 * spare))[:-1]
    is_behind: Flags = total - np.minimum.accumulate(np.minimum(total, 0.0)) >= 1
    return is_behind


def _largest_share(minutes: Minutes, consumers: Consumers, members: int) -> Floats:
    """Of what arrives in each minute, what the member with most gets. Members carry whole partitions, unless they read
    all of them together."""
    if consumers.assignor is None:
        return np.full(len(minutes), 1 / members)
    weights = np.ones(consumers.width) if minutes.weights is None else minutes.weights
    least = weights[0] / weights.sum()
    busiest = np.clip(np.nan_to_num(minutes.skew, nan=least), least, 1.0)
    owners = owners_table(consumers.partitions, consumers.assignor)[members]
    others = np.bincount(owners[1:], weights[1:], members)
    others /= max(float(others.sum()), TINY)
    elsewhere = float(np.delete(others, owners[0]).max(initial=0.0))
    largest: Floats = np.maximum(busiest + (1 - busiest) * others[owners[0]], (1 - busiest) * elsewhere)
    return largest
