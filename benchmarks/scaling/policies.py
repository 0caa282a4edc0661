"""Pure: ways to scale a group, each as lanes of the simulator. Of a policy with several lanes, the best one counts."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache, partial

import numpy as np
import yaml

from adapter.verdicts.owners import owners_table
from adapter.verdicts.recent import Counts
from adapter.verdicts.simulation.consumers import Consumers, Messages
from adapter.verdicts.simulation.promised import Promised
from adapter.verdicts.simulation.scalers import Lane, RuleOf
from benchmarks.scaling.hpas import Json, average, down_after, hpa, value
from benchmarks.scaling.rules import Alone, Flink, Foreseen, Keda, OfOne, Packed, Rate, by_weight
from benchmarks.scaling.workloads import Setting
from local.manifests.check import MANIFESTS

TARGET_SECONDS = (5, 10, 20, 40, 80, 160, 320)
"""What one member reads in so long is a target for the lag, or its share of the group."""
WINDOWS = (60, 300, 900)
KEDA_SECONDS = 10
MAX_WAIT = 30.0
"""Seconds: the promise of every policy that takes one."""
USED_AT_MOST = 0.9
"""The share of a member's capacity that a rate is divided by."""
EXAMPLE = MANIFESTS / "example-hpa-required.yaml"
"""The HPA that users copy."""
AT_ONCE = {
    "tolerance": "0",
    "stabilizationWindowSeconds": 0,
    "policies": [
        {"type": "Percent", "value": 10_000, "periodSeconds": 15},
        {"type": "Pods", "value": 1000, "periodSeconds": 15},
    ],
}
"""Of scalers that are no HPA: what they say is done."""


@dataclass(frozen=True, slots=True)
class Policy:
    key: str
    name: str
    lanes: Callable[[Setting], Sequence[Lane]]


@lru_cache(maxsize=64)
def foreseen(setting: Setting) -> Counts:
    """The fewest members that read all that arrives in each minute and in the next one, with whole partitions. What
    one member could not read of a partition, nobody can."""
    consumers, load, events = setting.consumers, setting.workload.load, setting.workload.events
    weights = np.ones(consumers.width) if load.weights is None else load.weights
    capacity = consumers.capacity * (np.ones(len(load.produced)) if events.capacity is None else events.capacity)
    first, since = events.partitions or (consumers.width, 0)
    minutes = np.arange(len(load.produced))
    needed = np.where(
        minutes < since,
        _fewest(load.produced, capacity, weights[:first], replace(consumers, partitions=(first,))),
        _fewest(load.produced, capacity, weights, consumers),
    )
    soon: Counts = np.maximum(needed, np.append(needed[1:], needed[-1:]))
    return np.maximum(soon, setting.workload.least)


def _fewest(produced: Messages, capacity: Messages, weights: Messages, consumers: Consumers) -> Counts:
    assert consumers.assignor is not None
    table = owners_table(consumers.partitions, consumers.assignor)
    rates = np.minimum(np.outer(produced / 60, weights / weights.sum()), capacity[:, np.newaxis])
    needed = np.zeros(len(produced), np.int64)
    for members in range(len(weights), 0, -1):
        groups = np.stack([rates[:, table[members] == member].sum(axis=1) for member in range(members)])
        needed[(groups.max(axis=0) <= capacity + 1e-9) & (produced > 0)] = members
    return np.where((needed == 0) & (produced > 0), len(weights), needed)


def _scaled(setting: Setting, target: Json, behavior: Json | None = None, rule: RuleOf | None = None) -> Lane:
    """By an HPA. Without a rule, it reads the lag."""
    workload = setting.workload
    return Lane(
        workload.load,
        setting.consumers,
        hpa(target, behavior, least=workload.least, most=workload.partitions),
        replicas=int(np.clip(foreseen(setting)[0], max(1, workload.least), workload.partitions)),
        lag_is_known=None if workload.lag_is_known is None else workload.lag_is_known > 0,
        rule=rule,
        events=workload.events,
    )


def _given(setting: Setting, members: Counts) -> list[Lane]:
    workload = setting.workload
    return [Lane(workload.load, setting.consumers, members=members, events=workload.events)]


def _fixed(setting: Setting) -> list[Lane]:
    return _given(setting, np.full(len(setting.workload.load.produced), setting.workload.partitions))


def _oracle(setting: Setting) -> list[Lane]:
    return _given(setting, foreseen(setting))


def _oracle_that_starts(setting: Setting) -> list[Lane]:
    """Its replicas take as long to start as those of every other policy."""
    return [_obeyed(setting, lambda _: Foreseen(foreseen(setting)))]


def _by_lag(setting: Setting, *, is_value: bool) -> Iterator[Lane]:
    """A Value is compared with the lag of all members: here, of half as many as there are partitions."""
    for seconds in TARGET_SECONDS:
        amount = seconds * setting.workload.capacity
        target = value(amount * setting.workload.partitions / 2) if is_value else average(amount)
        for window in WINDOWS:
            yield _scaled(setting, target, down_after(window))


def _keda(setting: Setting) -> list[Lane]:
    threshold = KEDA_SECONDS * setting.workload.capacity
    return [_scaled(setting, average(threshold), rule=Alone(partial(Keda, threshold=threshold)))]


def _rate(setting: Setting) -> list[Lane]:
    return [_scaled(setting, average(USED_AT_MOST * setting.workload.capacity), rule=Alone(Rate))]


def _obeyed(setting: Setting, rule: Callable[[Consumers], OfOne]) -> Lane:
    return _scaled(setting, average(1), {"scaleUp": AT_ONCE, "scaleDown": AT_ONCE}, Alone(rule))


def _packed(setting: Setting, promised: float | None) -> list[Lane]:
    """With assignors of their own, as their authors have it."""
    lane = _obeyed(setting, partial(Packed, promised=promised))
    weights = setting.workload.load.weights
    if weights is None or setting.workload.events.partitions is not None:
        return [lane]
    return [replace(lane, consumers=replace(lane.consumers, table=by_weight(weights)))]


def _required(setting: Setting) -> list[Lane]:
    behavior = yaml.safe_load(EXAMPLE.read_text())["spec"]["behavior"]
    return [_scaled(setting, average(1), behavior, Promised(MAX_WAIT))]


ORACLE, STARTED, LAG, VALUE, REQUIRED = "oracle", "oracle-started", "lag", "value", "required"
POLICIES = (
    Policy("fixed", "as many as partitions", _fixed),
    Policy(LAG, "HPA on lag, AverageValue, best of 21", lambda setting: list(_by_lag(setting, is_value=False))),
    Policy(VALUE, "HPA on lag, Value, best of 21", lambda setting: list(_by_lag(setting, is_value=True))),
    Policy("keda", "KEDA, lagThreshold of 10 s", _keda),
    Policy("rate", "HPA on rate ÷ capacity", _rate),
    Policy("flink", "Flink's autoscaler", lambda setting: [_obeyed(setting, Flink)]),
    Policy("packed", "bin packing by rate", lambda setting: _packed(setting, None)),
    Policy("packed-lag", "bin packing by rate and backlog", lambda setting: _packed(setting, 30.0)),
    Policy(REQUIRED, "`required_replicas`", _required),
    Policy(ORACLE, "oracle of the next minute", _oracle),
)
BOUND = Policy(STARTED, "the oracle, if its pods start, too", _oracle_that_starts)
"""What no policy does better that knows only this minute and the next one. It is compared with the others, not shown as
one of them."""
