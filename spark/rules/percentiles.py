"""Pure: exact percentiles of the values of many topics or groups, interpolated as SQL's percentile_cont."""

import numpy as np

from spark.tables.columns import Ints, Values


def percentiles_of(values: Values, sizes: Ints, *percents: int) -> dict[str, Values]:
    """`p95`, for one, is the 95th percentile of each segment; NaN without a value. `values`: segment after segment,
    sorted in place; `sizes`: of the segments."""
    ends = np.cumsum(sizes)
    for begin, end in zip((ends - sizes).tolist(), ends.tolist(), strict=True):
        values[begin:end].sort()
    has_any = sizes > 0
    first, last = (ends - sizes)[has_any], (ends - 1)[has_any]
    percentiles = {}
    for percent in percents:
        place = percent / 100 * (last - first)
        low = np.floor(place).astype(np.int64)
        lower, upper = values[first + low], values[np.minimum(first + low + 1, last)]
        of_all = np.full(len(sizes), np.nan)
        of_all[has_any] = lower + (upper - lower) * (place - low)
        percentiles[f"p{percent}"] = of_all
    return percentiles
