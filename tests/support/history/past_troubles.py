"""Groups whose trouble is over, or returns each week, written as samples."""

from collections.abc import Iterator
from dataclasses import replace

import numpy as np

from tests.support.history.planted_weeks import MINUTES, STEPS, Clock, Read
from tests.support.history.troubled_groups import LAST_DAY, every

EIGHT_DAYS = Clock(days=8, interval=600)
DAY_13 = MINUTES.day == 12
"""The last Saturday."""


def past_troubles() -> Iterator[Read]:
    yield from weekly_loads()
    yield from over_for_days()
    yield from over_since_yesterday()
    yield from from_before()


def weekly_loads() -> Iterator[Read]:
    """What arrives in three hours of a morning takes the rest of the day."""
    monday = (STEPS.day % 7 == 0) & (STEPS.hour >= 8) & (STEPS.hour < 11)
    wednesday = (STEPS.day == 9) & (STEPS.hour >= 8) & (STEPS.hour < 11)
    yield from every(2, "each Monday", STEPS, produced=np.where(monday, 200.0, 10.0), able=100.0)
    yield from every(2, "one Wednesday", STEPS, produced=np.where(wednesday, 200.0, 10.0), able=100.0)
    late = (EIGHT_DAYS.day == 7) & (EIGHT_DAYS.hour >= 8) & (EIGHT_DAYS.hour < 11)
    yield from every(2, "one Monday of eight days", EIGHT_DAYS, produced=np.where(late, 200.0, 10.0), able=100.0)


def over_for_days() -> Iterator[Read]:
    is_stuck = (STEPS.day == 3) & (STEPS.hour < 5)
    yield from every(2, "stuck a week ago", STEPS, able=np.where(is_stuck, 0.0, 50.0))
    for partition, hot in enumerate((24.0, 2.0, 2.0, 2.0)):
        yield Read("was hot", STEPS, produced=np.where(STEPS.day < 10, hot, 7.5), partition=partition)
    for partition in range(3):
        members = np.where(STEPS.day < 10, 6, 3)
        yield Read("had idle members", STEPS, partition=partition, members=members, owner=f"m-{partition}")


def from_before() -> Iterator[Read]:
    """What waits in the first sample is older than the history, and is never worked off."""
    produced = np.where(np.arange(len(MINUTES.at)) == 0, 1e5, 10.0)
    yield from every(2, "behind from the start", produced=produced, able=11.0)


def over_since_yesterday() -> Iterator[Read]:
    is_gone = DAY_13 & (MINUTES.hour < 5)
    yield from every(2, "members back", able=np.where(is_gone, 0.0, 50.0), members=np.where(is_gone, 0, 2))
    is_down = is_gone & (MINUTES.minute % 2 == 0)
    yield from every(2, "steady again", able=np.where(is_down, 0.0, 50.0), members=np.where(is_down, 0, 2))
    is_blocked = DAY_13 & (MINUTES.hour < 5) & (MINUTES.minute < 55)
    slow = every(4, "slow on Saturday", owner="m-0")
    yield from (replace(it, able=np.where((it.partition == 3) & is_blocked, 0.0, 100.0)) for it in slow)
    yield from every(2, "deleted while stuck", able=np.where(DAY_13, 0.0, 50.0), is_seen=~LAST_DAY)
