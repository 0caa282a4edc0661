"""Groups as advice sees them, and what it finds of them."""

import dataclasses
from collections.abc import Sequence
from zoneinfo import ZoneInfo

import numpy as np

from spark.advice.advised import Advice, Ask, advice_for_all, key_of
from spark.advice.assessment import Report, decided
from spark.advice.finding import Finding
from spark.figures.model import Group, Periods, ReportData
from spark.trials.minutes import NUMPY_MINUTE, Minutes
from spark.trials.trial import trials_of
from tests.support.history.minutes import START
from tests.support.history.report_groups import group, topic

UTC = ZoneInfo("UTC")
REPLAYED_HOURS = 6


def advice_for(of: Group, zone: ZoneInfo = UTC) -> Advice:
    """After a replay of what the group did in each minute of its hours, which one member a partition read at once."""
    (advice,) = advice_for_all([of], replayed_on([of]), zone, {})
    return advice


def decided_on(data: ReportData) -> Report:
    return decided(data, replayed_on(data.groups))


def replayed_on(groups: Sequence[Group]) -> Ask:
    minutes = {key_of(of): minutes_of(of) for of in groups}
    return lambda asked: dict(
        zip(asked, trials_of([(minutes[key], question) for key, question in asked.items()]), strict=True)
    )


def minutes_of(of: Group) -> Minutes:
    """Evenly over each hour and all partitions; of the hours around the busiest one, because replays take time."""
    begin = max(0, int(np.nan_to_num(of.hours.produced).argmax()) - REPLAYED_HOURS // 2)
    produced = np.repeat(of.hours.produced[begin : begin + REPLAYED_HOURS] / 60, 60)
    nothing = np.zeros(len(produced))
    return Minutes(
        START + np.arange(len(produced)) * NUMPY_MINUTE,
        produced=produced,
        lag=nothing,
        wait_seconds=nothing,
        members_min=np.full(len(produced), float(of.partitions)),
        members_max=np.full(len(produced), float(of.partitions)),
        partitions_with_lag=nothing,
        skew=np.full(len(produced), 1 / max(1, of.partitions)),
    )


def finding(of: Group, code: str) -> Finding | None:
    return next((it for it in advice_for(of).findings if it.code == code), None)


def changed(of: Periods, **columns: float) -> Periods:
    return dataclasses.replace(of, **{name: np.full(len(of), value) for name, value in columns.items()})


def read(of: Periods, **given: object) -> Group:
    return dataclasses.replace(group("billing", topic(of=of)), **given)  # type: ignore[arg-type]  # test's own words
