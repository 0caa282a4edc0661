"""Groups with one trouble each, or with what looks like one: what a reader of the report must not be misled by."""

from collections.abc import Iterator
from dataclasses import replace

import numpy as np

from tests.support.history.planted_weeks import DAYS, MINUTES, STEPS, Clock, Read

AT = MINUTES.at
LAST_DAY = AT >= (DAYS - 1) * 86_400
LAST_12_HOURS = AT >= DAYS * 86_400 - 12 * 3600
LAST_2_HOURS = AT >= DAYS * 86_400 - 2 * 3600
OFFICE_HOURS = (MINUTES.hour >= 8) & (MINUTES.hour < 18)
BUSINESS_IN_INDIA = (AT % 86_400 >= 3.5 * 3600) & (AT % 86_400 < 6.5 * 3600)
"""09:00 to 12:00 there, which is five and a half hours ahead."""


def every(number: int, group: str, clock: Clock = MINUTES, **other: object) -> Iterator[Read]:
    """As many equal partitions."""
    for partition in range(number):
        yield Read(group, clock, partition=partition, **other)  # type: ignore[arg-type]  # test's own words


def troubled_groups() -> Iterator[Read]:
    yield from members_trouble()
    yield from partitions_trouble()
    yield from late_or_not()
    yield from over_or_growing()
    yield from handed_over()


def handed_over() -> Iterator[Read]:
    """By a writer whose clock is four seconds slow to one whose clock is right. For five minutes, both write."""
    is_early, is_late = len(AT) // 2 + 5 > np.arange(len(AT)), np.arange(len(AT)) >= len(AT) // 2
    for partition in range(2):
        of = Read("another writer", MINUTES, 50.0, partition=partition, in_hand=100, cluster="second", owner="m-0")
        yield replace(of, writer="adapter-1", clock_ahead=-4, taken_after=1, is_seen=is_early)
        yield replace(of, writer="adapter-2", is_seen=is_late)


def members_trouble() -> Iterator[Read]:
    is_down = np.arange(len(AT)) % 2 == 0
    yield from every(4, "crash loop", produced=25.0, able=np.where(is_down, 0.0, 37.5), members=np.where(is_down, 0, 2))
    one_or_four = np.where(MINUTES.minute // 5 % 2 == 0, 1, 4)
    yield from every(4, "one or four members", able=np.where(MINUTES.minute % 5, 75.0, 0.0), members=one_or_four)
    is_gone = MINUTES.minute >= 10
    yield from every(4, "mostly gone", able=np.where(is_gone, 0.0, 150.0), members=np.where(is_gone, 0, 3))
    yield from every(2, "members died", able=np.where(LAST_DAY, 0.0, 50.0), members=np.where(LAST_DAY, 0, 2))


def partitions_trouble() -> Iterator[Read]:
    is_blocked = LAST_12_HOURS & (MINUTES.minute < 55)
    yield from every(3, "poison", owner="m-0")
    yield Read("poison", MINUTES, able=np.where(is_blocked, 0.0, 100.0), partition=3, owner="m-1")
    for partition in range(8):
        able = np.where((partition in {2, 5}) & is_blocked, 0.0, 100.0)
        yield Read("two poisoned", MINUTES, able=able, partition=partition, members=4, owner=f"m-{partition // 2}")
    for partition in range(8):
        is_slow = {2: LAST_12_HOURS, 5: LAST_2_HOURS}.get(partition, False)
        able = np.where(is_slow, 2.0, 100.0)
        yield Read("one after another", MINUTES, able=able, partition=partition, members=4)
    for partition in range(8):
        produced = np.where(partition == AT // 3600 % 8, 60.0, 5.7)
        yield Read("moving hot", MINUTES, produced, 50.0, partition=partition, members=4)
    yield from every(3, "unsubscribed", owner="m-0")
    owners = np.where(LAST_DAY, None, "m-1")  # type: ignore[call-overload]  # an array of objects
    yield from every(3, "unsubscribed", produced=1.0, able=np.where(LAST_DAY, 0.0, 9.0), topic="old", owner=owners)
    yield from every(2, "never committed")
    yield Read("never committed", MINUTES, 5.0, partition=2, is_committed=False)
    yield Read("one partition", MINUTES, 200.0, 150.0, members=1, owner="m-0")


def late_or_not() -> Iterator[Read]:
    yield from every(4, "healthy", owner="m-0")
    yield from every(3, "at rest", produced=np.where(OFFICE_HOURS, 2.0, 0.0), is_read_committed=True)
    left_alone = np.where(OFFICE_HOURS, 2.0, 0.0)
    yield from every(3, "at rest, not recognised", produced=left_alone, is_read_committed=True, is_marker_told=False)
    wave = 15 + 10 * np.sin(AT / 86_400 * 2 * np.pi)
    yield from every(4, "ten minutes late", produced=wave, late_samples=10)
    yield from every(4, "commits all, rarely", produced=25.0, able=250.0, commits_every=5)
    lunch = np.where((MINUTES.hour >= 10) & (MINUTES.hour < 12), 250.0, 83.0)
    yield from every(4, "commits most, rarely", produced=25.0, able=250.0, commits_every=5, in_hand=750)
    yield from every(6, "a quiet topic beside", produced=lunch, able=167.0, topic="big", members=3)
    seldom = np.where(MINUTES.minute % 4 == 0, 1 / 60, 0.0)
    yield from every(2, "a quiet topic beside", produced=seldom, topic="tiny", members=3)
    by_day = np.where(OFFICE_HOURS, 10.0, 25.0)
    yield from every(4, "slower by day", produced=15.0, able=by_day, members=1)
    burst = np.where((MINUTES.minute >= 30) & (MINUTES.minute < 36), 150.0, 2.5)
    yield from every(4, "bursts", produced=burst, able=60.0, members=4)
    yield from every(4, "bursts, two hours", produced=burst, able=60.0, members=4, is_seen=LAST_2_HOURS)
    yield from every(4, "office hours in India", produced=np.where(BUSINESS_IN_INDIA, 50.0, 2.5), able=25.0)
    waves = 22 + 18 * np.sin(AT / 86_400 * 2 * np.pi)
    yield from every(12, "waves", produced=waves, able=30.0, members=4)
    sunday = (STEPS.day % 7 == 6) & (STEPS.hour == 2)
    yield from every(4, "batch on Sundays", STEPS, produced=np.where(sunday, 250.0, 0.0), able=50.0)


def over_or_growing() -> Iterator[Read]:
    members = np.where(np.arange(len(AT)) < 720, 1, 6)
    yield from every(6, "mended", able=members * 5.0, members=members)
    yield from every(2, "deleted", is_seen=~LAST_DAY, able=8.0)
    yield from every(2, "deleted at rest", is_seen=~LAST_DAY)
    yield from every(3, "two hours", is_seen=LAST_2_HOURS, members=1)
    nights = {720 + 1440 * day: 100_000 for day in range(3)}
    yield from every(2, "reads again at night", produced=25.0, able=150.0, rewinds=nights)
    rate = 0.0625 * 2.0**STEPS.day * (0.5 + 0.5 * (STEPS.hour >= 12))
    members = np.clip(np.ceil(rate * 8 / 480), 1, 8).astype(np.int64)
    yield from every(8, "doubles every day", STEPS, produced=rate, able=members * 75.0, members=members)
