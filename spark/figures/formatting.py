"""Numbers as people read them: with a unit, no more digits than help, and a word where nothing is known."""

import math
import re
from datetime import datetime
from zoneinfo import ZoneInfo

UNKNOWN = "unknown"
_THIN = "\u202f"  # a narrow space that does not break


def count(value: float | None) -> str:
    """A whole number with its thousands apart: `12 345`."""
    if value is None or math.isnan(value):
        return UNKNOWN
    return f"{round(value):,}".replace(",", _THIN)


def short(value: float) -> str:
    """For axes: three digits at most, then k, M or G."""
    for size, letter in ((1e9, "G"), (1e6, "M"), (1e3, "k")):
        if abs(value) >= size:
            return f"{value / size:.3g}{_THIN}{letter}"
    return f"{value:.3g}"


def rate(value: float | None) -> str:
    if value is None or math.isnan(value):
        return UNKNOWN
    return f"{decimal(value)}{_THIN}/s"


def decimal(value: float) -> str:
    """One digit after the point below 100, two below 1; whole above."""
    if value >= 100 or math.isnan(value):
        return count(value)
    if value == 0:
        return "0"
    return _tenths(value) if value >= 1 else f"{value:.2f}" if value >= 0.01 else f"{value:.1g}"


def share(value: float | None) -> str:
    """Of a whole, in per cent; never rounded to all or to nothing."""
    if value is None or math.isnan(value):
        return UNKNOWN
    if 0 < value < 0.001:
        return f"<{_THIN}0.1{_THIN}%"
    if 0.999 < value < 1:
        return f">{_THIN}99.9{_THIN}%"
    return percent(100 * value)


def percent(value: float) -> str:
    """Already of a hundred: one digit after the point, unless it is 0."""
    return f"{_tenths(value)}{_THIN}%"


def seconds(value: float) -> str:
    """As Kubernetes' fields have them: `3 600 s`."""
    return f"{decimal(value)}{_THIN}s"


def _tenths(value: float) -> str:
    return f"{value:.1f}".removesuffix(".0")


def change(new: float, old: float) -> str:
    """By how much the new value is above or below the old one."""
    if math.isnan(new) or math.isnan(old):
        return UNKNOWN
    if new == old:
        return "none"
    if not old:
        return "from 0"
    per_cent = 100 * (new - old) / old
    return f"<{_THIN}1{_THIN}%" if abs(per_cent) < 0.5 else f"{per_cent:+,.0f}{_THIN}%".replace(",", _THIN)


def duration(seconds: float | None) -> str:
    """The two largest units: `2 h 5 min`."""
    if seconds is None or math.isnan(seconds):
        return UNKNOWN
    if math.isinf(seconds):
        return "never"
    if seconds < 60:
        return f"{decimal(seconds)}{_THIN}s"
    whole = round(seconds)
    for large, large_word, small, small_word in ((86400, "d", 3600, "h"), (3600, "h", 60, "min"), (60, "min", 1, "s")):
        if whole >= large:
            rest = whole % large // small
            return f"{whole // large}{_THIN}{large_word}" + (f" {rest}{_THIN}{small_word}" if rest else "")
    return UNKNOWN


def short_duration(seconds: float) -> str:
    """For axes, in one unit: `1.5 h`."""
    for size, unit in ((86400, "d"), (3600, "h"), (60, "min")):
        if seconds >= size:
            return f"{seconds / size:.3g}{_THIN}{unit}"
    return f"{seconds:.3g}{_THIN}s" if seconds else "0"


def wait(seconds: float | None, *, is_bound: bool) -> str:
    """`is_bound`: whether it may have been longer."""
    is_known = seconds is not None and not math.isnan(seconds)
    return f"at least {duration(seconds)}" if is_bound and is_known else duration(seconds)


def with_wait(lag: float | None, seconds: float | None, *, is_bound: bool = False) -> str:
    """A lag, and the wait that was measured in the same samples, if it is known: `300 (wait 2 min)`."""
    is_said = bool(lag) and seconds is not None and not math.isnan(seconds)
    return f"{count(lag)} (wait {wait(seconds, is_bound=is_bound)})" if is_said else count(lag)


def first_sentence(text: str) -> str:
    """Up to the first full stop that a space follows."""
    return re.split(r"(?<=[.!?]) ", text, maxsplit=1)[0]


def name(text: str) -> str:
    """In quotes where nobody would see it: Kafka takes an empty name for a group, and one of spaces."""
    return text if text.strip() else f'"{text}"'


def moment(time: datetime, zone: ZoneInfo) -> str:
    return f"{time.astimezone(zone):%a %Y-%m-%d %H:%M}"


def known_plural(number: int | None, word: str) -> str:
    return f"{UNKNOWN} {word}s" if number is None else plural(number, word)


def span(least: float, most: float, word: str = "") -> str:
    """From the least to the most, where they differ: `2 to 4 members`."""
    if math.isnan(least) or math.isnan(most):
        return f"{UNKNOWN} {word}s" if word else UNKNOWN
    if round(least) == round(most):
        return plural(round(most), word) if word else count(most)
    return f"{count(least)} to {count(most)}" + (f" {word}s" if word else "")


def plural(number: int, word: str) -> str:
    return f"{count(number)} {word}" if number == 1 else f"{count(number)} {word}s"
