"""Whatever the location does, in whatever order: the history's writer loses no row that it does not count."""

import contextlib
from collections import Counter

import pyarrow as pa
from hypothesis import given
from hypothesis import strategies as st

from adapter.history.buffer import Buffer
from adapter.history.errors import HistoryUnwritable
from tests.adapter.history.test_writer import FULL, Rig
from tests.support.history.histories import SAMPLED, read_back, sample

ROWS = 2
"""Of a sample."""
STEPS = st.one_of(
    st.integers(0, 3).map(lambda hours: f"append {hours}"),  # the clock may be set back
    st.sampled_from(["round 300", "round 30", "full", "broken", "half", "well"]),
)


class Location:
    """What `Rig` writes to, in one of several kinds of trouble; "half": all is written, but reported as a failure."""

    def __init__(self, rig: Rig) -> None:
        self._files, self._write, self.trouble = rig.files, rig.files.write, "well"
        rig.files.write = self.write  # type: ignore[method-assign]  # it changes from step to step

    def write(self, path: str, content: pa.Buffer) -> None:
        if self.trouble == "full":
            raise FULL
        if self.trouble == "broken":
            raise RuntimeError("a library's own mistake")
        self._write(path, content)
        if self.trouble == "half":
            raise HistoryUnwritable("io", "/history: the folder's sync failed")


@given(st.lists(STEPS, max_size=40))
def test_every_row_is_written_once_or_counted_as_dropped(steps: list[str]) -> None:
    rig = Rig()
    rig.history._samples, rig.history._unwritten = Buffer(500), Buffer(8_000)
    location, appended = Location(rig), 0
    for step in [*steps, "well", "round 300"]:
        word, _, number = step.partition(" ")
        if word == "append":
            # No two cycles begin in the same microsecond.
            at = SAMPLED + 3600 * int(number) + appended / 1000
            rig.history.append(sample(at=at, cluster=f"cluster-{appended}"))
            appended += 1
        elif word == "round":
            with contextlib.suppress(RuntimeError):
                rig.round_after(int(number))
        else:
            location.trouble = word
    written = Counter(row["cluster"] for content in rig.files.written.values() for row in read_back(content))
    reported = rig.metric("rows_total")

    assert set(written.values()) <= {ROWS}
    assert rig.metric("buffered_rows") == 0
    assert reported + rig.metric("dropped_rows_total") == ROWS * appended
    assert reported <= written.total()
    assert "half" in steps or reported == written.total()
