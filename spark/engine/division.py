"""How tasks, and what they are made of, are divided: neighbours stay together."""

from collections.abc import Callable, Iterable, Sequence
from itertools import pairwise
from typing import TypeVar

Item = TypeVar("Item")
JOBS = 8
"""Into which many tasks are divided, for results to arrive before the last one."""
PLAN_BYTES = 1 << 20
"""Of the tasks of one DataFrame, all of which Spark sends with each of them. A Connect server also refuses a message of
more than 128 MB."""


def neighbours(items: Iterable[Item], size: Callable[[Item], int], limit: int) -> list[list[Item]]:
    """Those that follow one another together, as many as the limit allows; one that is larger is alone."""
    groups: list[list[Item]] = []
    room = 0
    for item in items:
        if not groups or size(item) > room:
            groups.append([])
            room = limit
        groups[-1].append(item)
        room -= size(item)
    return groups


def jobs_of(tasks: Sequence[Item], at_once: int) -> list[Sequence[Item]]:
    """The tasks of each job."""
    number = min(JOBS, -(-len(tasks) // at_once))
    bounds = [len(tasks) * each // number for each in range(number + 1)]
    return [tasks[first:last] for first, last in pairwise(bounds)]


def plans_of(packed: Sequence[bytes], at_once: int) -> list[list[bytes]]:
    """The tasks of each job whose plan has them in it."""
    return [plan for job in jobs_of(packed, at_once) for plan in neighbours(job, len, PLAN_BYTES)]
