"""What cycles handed over becomes rows, and the rows a file that says the same: read back by pyarrow itself."""

import subprocess
import sys
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any

import numpy as np
import pyarrow as pa
from hypothesis import given
from hypothesis import strategies as st
from pyarrow import parquet

from adapter.history.contract import SAMPLES, VERSION_KEY
from adapter.history.parquet import ROW_GROUP, SCHEMA, encoded, table_of
from adapter.history.rows import STATES, by_hour, rows_of
from adapter.history.sample import Sample
from adapter.lag.layout import layout_of
from adapter.lag.snapshot import State
from tests.support import samples
from tests.support.history.histories import SAMPLED, TO_EPOCH, observing, owning, read_back, sample

EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
SAMPLED_AT = EPOCH + timedelta(seconds=SAMPLED)


def kept(*given: Sample) -> list[dict[str, Any]]:
    rows = rows_of(given)
    return [] if rows is None else read_back(encoded(rows))


def test_a_row_has_what_was_seen_in_the_contracts_columns() -> None:
    layout = layout_of({"billing": ["orders"]}, samples.topology({"orders": [1]}, {"orders": "gen-1"}))
    seen = sample(layout, members=[3], is_committed_only=[True], state=[State.TRUNCATED], counts_from_start=[True])
    seen = replace(seen, last_commit=np.array([5]), has_marker=np.array([True]))
    seen = owning(seen, "billing-0")

    assert kept(seen) == [
        {
            "sampled_at": SAMPLED_AT,
            "received_at": SAMPLED_AT + timedelta(seconds=0.5),
            "interval_seconds": 10.0,
            "cluster": "main",
            "group": "billing",
            "topic": "orders",
            "topic_id": "gen-1",
            "partition": 0,
            "committed": 7,
            "log_end": 10,
            "log_start": 0,
            "state": "truncated",
            "members": 3,
            "isolation": "read_committed",
            "owner": "billing-0",
            "offset_reset": "earliest",
            "last_commit": 5,
            "has_marker": True,
        }
    ]


def test_a_group_of_rows_has_a_dictionary_of_its_own_names() -> None:
    """pyarrow writes all names of a dictionary into every group of rows."""
    layout = samples.layout([(f"group-{number:04}", "t", 0) for number in range(1000)])
    rows = rows_of([owning(sample(layout), *(f"member-{n:04}" for n in range(1000)))])
    assert rows is not None

    some = table_of(rows.chosen(slice(10, 12)))
    assert some["owner"].combine_chunks().dictionary.to_pylist() == ["member-0010", "member-0011"]
    assert some["group"].to_pylist() == ["group-0010", "group-0011"]


def test_a_file_says_its_contract_and_has_its_schema() -> None:
    rows = rows_of([sample()])
    assert rows is not None
    file = parquet.ParquetFile(pa.BufferReader(encoded(rows)))

    assert file.metadata.metadata == {VERSION_KEY.encode(): b"2"}
    assert file.schema_arrow.names == SCHEMA.names == [column.name for column in SAMPLES]
    assert str(file.schema_arrow.field("sampled_at").type) == "timestamp[us, tz=UTC]"
    assert [field.name for field in file.schema_arrow if field.nullable] == [c.name for c in SAMPLES if c.is_nullable]


def test_no_other_library_is_loaded_to_write_a_file() -> None:
    """pyarrow is eager for pandas, whose import takes longer than the end of the process may."""
    code = (
        "import sys\n"
        "from adapter.history.parquet import encoded\n"
        "from adapter.history.rows import rows_of\n"
        "from tests.support.history.histories import sample\n"
        "assert encoded(rows_of([sample(), sample(at=1_795_003_010.0)])).size\n"
        "sys.exit('pandas' in sys.modules)\n"
    )

    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0


def test_a_topic_made_again_has_another_id_in_its_later_rows() -> None:
    old, new = (layout_of({"g": ["t"]}, samples.topology({"t": [1]}, {"t": generation})) for generation in ("z", "a"))

    assert [row["topic_id"] for row in kept(sample(old), sample(new, at=SAMPLED + 10))] == ["z", "a"]


def test_a_group_whose_name_is_no_text_differs_from_similar_ones() -> None:
    layout = samples.layout([("\udcfe", "t", 0), ("\udcff", "t", 0)])

    assert [row["group"] for row in kept(sample(layout))] == ["\\udcfe", "\\udcff"]


def test_samples_belong_to_the_hour_in_which_their_cycle_began_and_earlier_hours_come_first() -> None:
    hour = SAMPLED // 3600 * 3600
    hours = by_hour([sample(at=hour + 3600.0), sample(at=hour + 3599.5)])

    assert [[s.sampled_at - hour for s in own] for own in hours.values()] == [[3599.5], [3600.0]]


offsets = st.one_of(st.just(-1), st.integers(0, 2**53))
series = st.tuples(st.sampled_from("ab"), st.sampled_from("st"), st.integers(0, 2))


@st.composite
def some_samples(draw: st.DrawFn) -> list[Sample]:
    """Cycles of two clusters, whose rows come and go, by a clock that may be set back."""
    times = draw(st.permutations(range(6)))
    layouts = [samples.layout(draw(st.sets(series, min_size=1, max_size=4))) for _ in range(2)]
    made = []
    for number in times[: draw(st.integers(1, 6))]:
        layout = draw(st.sampled_from(layouts))

        def column(values: st.SearchStrategy[Any], size: int = len(layout)) -> list[Any]:
            return draw(st.lists(values, min_size=size, max_size=size))

        at = SAMPLED + 10 * number
        plain = sample(
            layout,
            at=at,
            cluster=draw(st.sampled_from(["main", "eu"])),
            state=column(st.sampled_from(State)),
            members=column(st.integers(-1, 9)),
            counts_from_start=column(st.booleans()),
            last_commit=column(offsets),
            has_marker=column(st.booleans()),
        )
        plain = owning(plain, *(draw(st.sampled_from([None, "m-0", "m-1", "m-2"])) for _ in range(len(layout))))
        seen = {name: column(offsets) for name in ("committed", "log_end", "log_start")}
        causes = {name: column(st.integers(0, 1)) for name in ("commit_cause", "end_cause")}
        made.append(observing(plain, **seen, **causes))
    return made


def plainly(seen: Sample, row: int) -> dict[str, Any]:
    """What the file should say of a row, value by value."""

    def known(value: int, *, is_known: bool = True) -> int | None:
        return int(value) if value >= 0 and is_known else None

    observed, layout = seen.observed, seen.layout
    log_end = known(observed.log_end[row], is_known=observed.end_cause[row] == 0)
    received = EPOCH + timedelta(microseconds=round((observed.end_received[row] + TO_EPOCH) * 1e6))
    return {
        "sampled_at": EPOCH + timedelta(seconds=seen.sampled_at),
        "received_at": None if log_end is None else received,
        "interval_seconds": 10.0,
        "cluster": seen.cluster,
        "group": layout.groups[layout.group[row]],
        "topic": layout.topics[layout.topic[row]],
        "topic_id": None,
        "partition": int(layout.partition[row]),
        "committed": known(observed.committed[row], is_known=observed.commit_cause[row] == 0),
        "log_end": log_end,
        "log_start": known(observed.log_start[row]),
        "state": STATES[seen.state[row]],
        "members": known(seen.members[row]),
        "isolation": "read_uncommitted",
        "owner": None if (code := seen.owners.codes[row]) < 0 else seen.owners.names[code],
        "offset_reset": "earliest" if seen.counts_from_start[row] else "latest",
        "last_commit": known(seen.last_commit[row]),
        "has_marker": bool(seen.has_marker[row]),
    }


@given(some_samples())
def test_whatever_was_seen_is_read_back_row_by_row(given: list[Sample]) -> None:
    expected = [plainly(seen, int(row)) for seen in given for row in range(len(seen.layout))]

    def key(row: dict[str, Any]) -> tuple[Any, ...]:
        return tuple(row[name] for name in ("cluster", "group", "topic", "partition", "sampled_at"))

    assert kept(*given) == sorted(expected, key=key)


def groups_of(partitions: list[int]) -> list[tuple[str, str, int]]:
    """First and last topic and rows of each group of rows in a file with topics of so many partitions."""
    layout = samples.layout([("billing", f"orders-{number:02d}", each - 1) for number, each in enumerate(partitions)])
    rows = rows_of([sample(layout)])
    assert rows is not None
    metadata = parquet.read_metadata(pa.BufferReader(encoded(rows)))
    groups = [metadata.row_group(number) for number in range(metadata.num_row_groups)]
    return [(it.column(5).statistics.min, it.column(5).statistics.max, it.num_rows) for it in groups]


def test_rows_are_written_in_groups_of_whole_topics_so_that_a_reader_of_some_leaves_out_the_others() -> None:
    assert groups_of([4000] * 20) == [("orders-00", "orders-15", 64_000), ("orders-16", "orders-19", 16_000)]


def test_a_topic_with_more_rows_than_a_group_has_several() -> None:
    more = 5000

    assert groups_of([10, ROW_GROUP + more, 20]) == [
        ("orders-00", "orders-00", 10),
        ("orders-01", "orders-01", ROW_GROUP),
        ("orders-01", "orders-02", more + 20),
    ]
