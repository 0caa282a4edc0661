"""Which partitions had a backlog throughout a sample, by hand: four partitions of one topic, an hour of samples."""

import numpy as np

from spark.rules.totals import has_backlog
from spark.tables.columns import TableRows, Values

SAMPLES = 6
MOMENT = np.tile(np.arange(SAMPLES), 4)


def deltas(lag: list[int], produced: list[int], consumed: list[int], owner: list[int] | None = None) -> TableRows:
    """Of each partition a lag, and what was produced and consumed in each sample of 10 s."""

    def column(values: list[int]) -> Values:
        return np.repeat(np.array(values, np.int64), SAMPLES)

    columns: dict[str, Values] = {
        **{name: np.zeros(4 * SAMPLES, np.int32) for name in ("cluster", "group", "topic")},
        "partition": column([0, 1, 2, 3]),
        "lag": column(lag),
        "produced": column(produced),
        "consumed": column(consumed),
        "seconds": np.full(4 * SAMPLES, 10.0),
        "owner": column(owner or [-1] * 4),
    }
    return TableRows(columns, {})


def waiting(*of: list[int]) -> list[int]:
    """Partitions."""
    found = has_backlog(deltas(*of), MOMENT).reshape(4, SAMPLES)
    assert (found.all(axis=1) == found.any(axis=1)).all()
    return np.flatnonzero(found.all(axis=1)).tolist()


def test_a_backlog_is_more_than_thirty_seconds_of_production_at_both_ends() -> None:
    assert waiting([301, 300, 301, 9], [100, 100, 100, 0], [100, 100, 99, 0]) == [0, 3]


def test_what_is_not_known_is_no_backlog() -> None:
    assert waiting([-1, 900, 900, 900], [10, -1, 10, 10], [10, 10, -1, 10]) == [3]


def test_a_member_counts_only_if_all_its_partitions_have_a_backlog() -> None:
    everything = ([900, 900, 900, 0], [10] * 4, [10] * 4)

    assert waiting(*everything, [0, 0, 1, 1]) == [0, 1]
    assert waiting(*everything, [0, 0, -1, -1]) == [0, 1, 2]


def test_in_one_quiet_sample_a_message_on_its_way_is_no_backlog() -> None:
    """One message in a minute: in the samples in which it waits for its commit, nothing is produced."""
    rows = deltas([1, 0, 0, 0], [0, 0, 0, 0], [0, 0, 0, 0])
    rows["produced"][0] = 3

    assert not has_backlog(rows, MOMENT).any()
