"""What a report is asked for: its range, its place, and what was agreed on for each group."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from pathlib import Path

from spark.errors import Unusable
from spark.figures.periods import Wanted
from spark.report.group_file import Agreements
from spark.time_options import parsed_time, zone_of
from spark.trials.hpa_file import GivenHpa, given_in


@dataclass(frozen=True, slots=True)
class Request:
    location: str
    output: str
    wanted: Wanted
    now: datetime
    agreements: Agreements
    hpas: tuple[GivenHpa, ...] = ()
    """Those that groups have today."""


def requested(
    location: str,
    output: str,
    times: tuple[str | None, str | None],
    timezone: str,
    now: datetime,
    agreements: Agreements | None = None,
    hpa_files: Sequence[Path] = (),
) -> Request:
    """The flags as one value, or Unusable. A time without a zone is one of `timezone`."""
    zone = zone_of(timezone)
    since, until = (parsed_time(option, text, zone) for option, text in zip(("--from", "--to"), times, strict=True))
    if since is not None and until is not None and since >= until:
        raise Unusable(f"--from {times[0]} is not before --to {times[1]}")
    if since is not None and since >= now:
        raise Unusable(f"--from {times[0]} is in the future")
    if until is not None and until > now:
        until = None  # what ends later has no end yet
    agreed = replace(agreements or Agreements(), zone=zone)
    return Request(location, output, Wanted(since, until), now, agreed, tuple(map(given_in, hpa_files)))
