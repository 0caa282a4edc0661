"""Times and time zones as options name them."""

from datetime import UTC, datetime
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

from spark.errors import Unusable


def zone_of(name: str) -> ZoneInfo:
    try:
        return ZoneInfo(name)
    except (ZoneInfoNotFoundError, ValueError, OSError) as error:
        raise Unusable(f"--timezone: is {name!r}; must be a time zone such as Europe/Berlin") from error


def parsed_time(option: str, text: str | None, zone: ZoneInfo) -> datetime | None:
    """In UTC; a time that UTC or `zone`, in which it is shown, cannot represent is refused."""
    if text is None:
        return None
    try:
        time = datetime.fromisoformat(text)
    except ValueError as error:
        raise Unusable(f"{option}: is {text!r}; must be a time such as 2026-11-20T07:00") from error
    try:
        return (time if time.tzinfo else time.replace(tzinfo=zone)).astimezone(zone).astimezone(UTC)
    except OverflowError as error:
        raise Unusable(f"{option} {text} in {zone.key} or UTC is outside the years 1 to 9999") from error
