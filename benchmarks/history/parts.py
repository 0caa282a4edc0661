"""`python -m benchmarks.history.parts LOCATION BEGAN`: compacts one hour and prints the seconds of each part as JSON.
BEGAN is the start of this process in seconds since the epoch."""

import json
import sys
import time
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from functools import partial
from typing import TypeVar
from unittest import mock

Task = TypeVar("Task")
Made = TypeVar("Made")
SECONDS: dict[str, float] = defaultdict(float)


@contextmanager
def measured(part: str) -> Iterator[None]:
    began = time.monotonic()
    yield
    SECONDS[part] += time.monotonic() - began


def clocked(kernel: Callable[[Task], Made], task: Task) -> tuple[float, Made]:
    began = time.monotonic()
    made = kernel(task)
    return time.monotonic() - began, made


def main(location: str, began: str) -> None:
    from datetime import UTC, datetime  # noqa: PLC0415 -- what is imported is measured

    from spark.engine import tasks  # noqa: PLC0415
    from spark.engine.jobs import Spark, context_of  # noqa: PLC0415
    from spark.engine.session import SparkSettings, started, stop  # noqa: PLC0415
    from spark.pipeline import compact, days, stage  # noqa: PLC0415
    from spark.storage.location import files_at  # noqa: PLC0415

    SECONDS["Python and its imports"] = time.time() - float(began)

    def run(
        spark: Spark, kernel: Callable[[Task], Made], of: Iterable[Task], said: str, _: object = None
    ) -> list[Made]:
        start = time.monotonic()
        found = tasks.run(spark, partial(clocked, kernel), of, said)
        longest = max((seconds for seconds, _ in found), default=0.0)
        name = "hour" if kernel.__module__.endswith("hour_task") else "day"
        SECONDS[f"the {name}'s task: the kernel, reading and writing"] += longest
        SECONDS[f"the {name}'s task: all else"] += time.monotonic() - start - longest
        return [made for _, made in found]

    now = datetime(2027, 1, 1, tzinfo=UTC)
    starting = started(SparkSettings())
    with measured("the JVM and the session"):
        spark = starting.__enter__()
    with (
        mock.patch.object(stage, "arriving", run),
        mock.patch.object(days, "outcomes", run),
        measured("listing, planning and publishing"),
    ):
        compact.compact(files_at(location), lambda: spark, now, now, lambda _: None)
    inner = ("the hour's", "the day's")
    SECONDS["listing, planning and publishing"] -= sum(of for part, of in SECONDS.items() if part.startswith(inner))
    with measured("the session's end"):
        stop(context_of(spark))
    print(json.dumps(SECONDS))


if __name__ == "__main__":
    main(*sys.argv[1:])
