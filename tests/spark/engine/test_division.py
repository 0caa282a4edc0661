"""How tasks become jobs and plans."""

from itertools import chain

from spark.engine.division import PLAN_BYTES, jobs_of, neighbours, plans_of


def test_a_job_has_as_many_tasks_as_run_at_once_and_there_are_eight_jobs_at_most() -> None:
    assert [len(job) for job in jobs_of(range(5), 2)] == [1, 2, 2]
    assert [len(job) for job in jobs_of(range(80), 2)] == [10] * 8
    assert list(chain.from_iterable(jobs_of(range(80), 2))) == list(range(80))


def test_neighbours_stay_below_the_limit_together_and_one_that_is_larger_is_alone() -> None:
    assert neighbours([3, 4, 3, 12, 1, 9, 1], int, 10) == [[3, 4, 3], [12], [1, 9], [1]]
    assert neighbours([], int, 10) == []


def test_a_plan_never_has_more_bytes_of_tasks_than_spark_should_send_with_each() -> None:
    """30 days of hours with 14 ranges, of 4 KB each."""
    packed = [bytes(4_000) for _ in range(30 * 24 * 14)]

    plans = plans_of(packed, 512)

    assert max(sum(map(len, plan)) for plan in plans) <= PLAN_BYTES
    assert len(list(chain.from_iterable(plans))) == len(packed)


def test_few_tasks_are_one_plan() -> None:
    assert plans_of([b"a", b"b"], 2) == [[b"a", b"b"]]
