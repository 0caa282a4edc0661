"""A group's line as short texts for a table: numbers that people read at a glance, `-` for what is not known."""

from collections.abc import Sequence

from adapter.errors import one_line
from adapter.overview.lines import GroupLine

HEADINGS = ("GROUP", "STATE", "MEMBERS", "LAG", "WAIT", "IN/S", "OUT/S", "ATTENTION")
RIGHT = frozenset({"MEMBERS", "LAG", "WAIT", "IN/S", "OUT/S"})
UNKNOWN = "-"
BARS = "▁▂▃▄▅▆▇█"


def cells_of(line: GroupLine, *, names_cluster: bool) -> tuple[str, ...]:
    """Returns one text for each of HEADINGS."""
    return (
        one_line(f"{line.cluster}/{line.group}" if names_cluster else line.group),
        line.state or UNKNOWN,
        UNKNOWN if line.members is None else str(line.members),
        UNKNOWN if line.lag is None else f"{line.lag:,}",
        _wait(line),
        _rate(line.production),
        _rate(line.consumption),
        f"{line.attention}: {one_line(line.reason)}" if line.reason and line.attention else line.attention.value,
    )


def trend_of(lags: Sequence[int]) -> str:
    """Returns a bar for each lag: 0 is the lowest, and the largest one the highest."""
    highest = max(lags, default=0)
    return "".join(BARS[0 if not highest else round(lag / highest * (len(BARS) - 1))] for lag in lags)


def duration(seconds: float) -> str:
    """Returns such as `8s`, `12m` or `3h20m`."""
    whole = round(seconds)
    if whole < 100:
        return f"{whole}s"
    if whole < 6000:
        return f"{whole // 60}m"
    return f"{whole // 3600}h{whole % 3600 // 60}m" if whole < 360_000 else f"{whole // 86_400}d"


def _wait(line: GroupLine) -> str:
    if line.wait is None or (line.wait_is_bound and line.wait < 1):
        return UNKNOWN
    return f">{duration(line.wait)}" if line.wait_is_bound else duration(line.wait)


def _rate(per_second: float | None) -> str:
    if per_second is None:
        return UNKNOWN
    return f"{per_second:,.0f}" if per_second >= 10 or per_second == 0 else f"{per_second:.1f}"
