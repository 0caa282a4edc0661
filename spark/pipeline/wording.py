"""What Spark's UI and the line on a terminal say of a job."""

from collections.abc import Callable, Sequence

from adapter import clock
from spark.engine.progress import Progress
from spark.figures import formatting
from spark.pipeline.batches import ExaminedHour
from spark.tables.layout import HOUR

Words = Callable[[Progress], str]


def announced(hours: Sequence[ExaminedHour]) -> str:
    """A range of time and its rows; the end of the last hour with its date if it is another one."""
    first, end = hours[0].start, hours[-1].start + HOUR
    until = f"{end:%H:%M}" if end.date() == first.date() else f"{end:%Y-%m-%d %H:%M}"
    return f"{first:%Y-%m-%d %H:%M}–{until}, {rows_in_words(sum(hour.rows for hour in hours))}"  # noqa: RUF001 -- a range


def rows_in_words(rows: int) -> str:
    if rows < 1_000_000:
        return formatting.plural(rows, "row")
    return f"{rows / 1e6:.3g} million rows" if rows < 1_000_000_000 else f"{rows / 1e9:.3g} billion rows"


def progress_of(said: str, hours: Sequence[ExaminedHour]) -> Words:
    """Of a job about hours: rows, hours and the time left, by the rows of the tasks that have ended."""
    rows, began = sum(hour.rows for hour in hours), clock.monotonic()

    def words(progress: Progress) -> str:
        done = progress.counts.rows if progress.counts else rows * progress.tasks // progress.of
        share = done / rows if rows else 1.0
        return f"{said}: {done:,} rows, {round(share * len(hours))} of {formatting.plural(len(hours), 'hour')}" + _left(
            share, clock.monotonic() - began
        )

    return words


def tasks_of(said: str) -> Words:
    """Of a job of tasks that take about the same time each."""
    began = clock.monotonic()

    def words(progress: Progress) -> str:
        left = _left(progress.tasks / progress.of, clock.monotonic() - began)
        return f"{said}: {progress.tasks} of {progress.of} done{left}"

    return words


def _left(share: float, seconds: float) -> str:
    """Nothing before the first task has ended."""
    if not 0 < share < 1:
        return ""
    left = seconds * (1 - share) / share
    return f", {left:.0f} s left" if left < 90 else f", {left / 60:.0f} min left"
