"""Minutes of a group, made of what it produced and of the members that read it by a rule of their own."""

from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from spark.figures.model import Floats
from spark.tables import layout
from spark.trials.minutes import COLUMNS, NUMPY_MINUTE, Minutes

START = np.datetime64("2026-11-01T00:00", "m")


def read_by(
    produced: Floats, members: Floats, able: float, commit_seconds: float = 5.0, partitions: int = 12
) -> Minutes:
    """`produced`: messages of each minute, evenly over partitions and time. Members do `able` messages/s
    each, share them evenly, and commit every so many seconds. Second by second, unlike the replay."""
    arriving = np.repeat(produced / 60, 60)
    doing = np.repeat(members * able, 60)
    waiting, lags = 0.0, np.empty(len(arriving))
    for second, (new, most) in enumerate(zip(arriving.tolist(), doing.tolist(), strict=True)):
        waiting = max(0.0, waiting + new - most)
        lags[second] = waiting
    ends = np.cumsum(arriving)
    seconds = np.arange(1, len(ends) + 1.0)
    wait = np.where(lags > 0, seconds - np.interp(ends - lags, ends, seconds), 0.0) + commit_seconds * (arriving > 0)
    seen = lags + arriving * commit_seconds / 2
    at_end = slice(59, None, 60)
    nothing = np.zeros(len(produced))
    return Minutes(
        START + np.arange(len(produced)) * NUMPY_MINUTE,
        produced=produced,
        lag=seen[at_end],
        wait_seconds=wait.reshape(-1, 60).max(axis=1),
        members_min=members.astype(float),
        members_max=members.astype(float),
        partitions_with_lag=np.where(seen[at_end] > 0, partitions, nothing),
        skew=np.full(len(produced), 1 / partitions),
    )


def written(folder: Path, **groups: Minutes) -> Path:
    """The table of the day of START, of these groups on cluster `main`."""
    file = folder / layout.minutes_table("2026-11-01")
    file.parent.mkdir(parents=True, exist_ok=True)
    columns = {
        "cluster": pa.array(["main"] * sum(map(len, groups.values()))),
        "group": pa.array([name for name, minutes in groups.items() for _ in range(len(minutes))]),
        "minute": pa.array(np.concatenate([of.start.astype("datetime64[us]") for of in groups.values()])),
        **{
            name: pa.array(np.concatenate([getattr(of, name) for of in groups.values()]), from_pandas=True)
            for name in COLUMNS
        },
    }
    columns["minute"] = columns["minute"].cast(pa.timestamp("us", "UTC"))
    pq.write_table(pa.table(columns), file, row_group_size=500)
    return folder
