"""Several hours or days that are published beside one another, while others are still being made.

In a bucket, most of a publication is waiting for the store. The order does not matter: each record says what its hour
started from, so a run that ends between two publications leaves nothing that the next one would not see.
"""

import contextlib
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor

from spark.pipeline.runs import Run

AT_ONCE = 8
"""In a bucket, where each of them copies several objects side by side. In a folder, one after the other."""

Work = Callable[[], None]


@contextlib.contextmanager
def publishing(run: Run) -> Iterator[Callable[[Work], None]]:
    """Yields what begins a publication. All have ended at the end of the block, which raises the first error. After an
    error, none begins any more."""
    begun: list[Future[None]] = []

    def begin(work: Work) -> None:
        _raise_first_error(begun)
        begun.append(pool.submit(_published, run, begun, work))

    with ThreadPoolExecutor(min(AT_ONCE, run.files.at_once), "publication") as pool:
        yield begin
    _raise_first_error(begun)


def _published(run: Run, begun: Sequence[Future[None]], work: Work) -> None:
    _raise_first_error(begun)
    run.check()
    run.refuse_if_lost()
    work()


def _raise_first_error(begun: Sequence[Future[None]]) -> None:
    for each in begun:
        if each.done():
            each.result()
