"""What all parts of the settings share, and the types of single settings. Each error is one sentence."""

import re
from pathlib import Path
from typing import Annotated
from urllib.parse import urlsplit
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

from pydantic import AfterValidator, BaseModel, BeforeValidator, ConfigDict, Field
from pydantic.alias_generators import to_camel

from adapter.columns import LARGEST_OFFSET
from adapter.errors import shown
from adapter.location import FORMS, bucket_at

SECONDS = {"ms": 0.001, "s": 1.0, "m": 60.0, "h": 3600.0, "d": 86400.0}
DURATION = re.compile(r"(?:[0-9]{1,9}(?:ms|s|m|h|d))+")
DurationText = Annotated[str, Field(pattern=f"^{DURATION.pattern}$")]
HOST_PORT = re.compile(r"(?P<host>\[[0-9a-fA-F:.%]+\]|[^\s:/@]+):(?P<port>\d{1,5})")
METRIC_NAME = re.compile(r"[A-Za-z0-9](?:[-A-Za-z0-9_.]{0,251}[A-Za-z0-9])?")
LABEL_VALUE = re.compile(r"[A-Za-z0-9](?:[-A-Za-z0-9_.]{0,61}[A-Za-z0-9])?")
NOT_RESERVED = re.compile(r"(?!(?:status|finalize)$).*", re.IGNORECASE)
TOPIC_NAME = re.compile(r"(?!\.{1,2}$)[a-zA-Z0-9._-]{1,249}")
PARTITION_RANGE = re.compile(r"(?P<first>[0-9]{1,5})(?:\s*-\s*(?P<last>[0-9]{1,5}))?")
SERIES_LABEL = re.compile(
    r"(?!__|(?:bound|consumergroup|group|instance|job|partition|topic)$)[a-zA-Z_][a-zA-Z0-9_]{0,62}"
)
ENDS = "with a letter or digit at both ends"
DNS_LABEL = re.compile(r"[a-z0-9](?:[-a-z0-9]{0,61}[a-z0-9])?")


class SettingsPart(BaseModel):
    """Frozen and strict about keys, because a misspelt key would silently watch something else."""

    model_config = ConfigDict(
        frozen=True, extra="forbid", alias_generator=to_camel, validate_by_name=False, validate_by_alias=True
    )


def seconds_of(value: object) -> float:
    """Parses `1m30s` to 90.0."""
    if not isinstance(value, str) or not DURATION.fullmatch(value):
        raise ValueError(f"is {shown(value)}; must be a duration such as 10s, 1m30s or 30d")
    return sum(int(amount) * SECONDS[unit] for amount, unit in re.findall(r"([0-9]+)(ms|s|m|h|d)", value))


def duration(shortest: str, longest: str) -> BeforeValidator:
    def between(value: object) -> float:
        seconds = seconds_of(value)
        if not seconds_of(shortest) <= seconds <= seconds_of(longest):
            raise ValueError(f"is {shown(value)}; must be between {shortest} and {longest}")
        return seconds

    return BeforeValidator(between, json_schema_input_type=DurationText)


def regular_expression(text: str) -> str:
    try:
        re.compile(text)
    except (re.error, OverflowError, RecursionError) as error:
        raise ValueError(f"{shown(text)} is not a regular expression: {error}") from error
    return text


def host_and_port(text: str) -> str:
    match = HOST_PORT.fullmatch(text)
    if match is None or not 0 < int(match["port"]) < 65536:
        raise ValueError(f"{shown(text)} is not HOST:PORT")
    return text


def matching(pattern: re.Pattern[str], problem: str) -> AfterValidator:
    """Requires that the pattern matches the whole text; the error is the text, then the problem."""

    def matched(text: str) -> str:
        if not pattern.fullmatch(text):
            raise ValueError(f"{shown(text)} {problem}")
        return text

    return AfterValidator(matched)


def file_path(path: Path) -> Path:
    if not path.parts or "\0" in str(path):
        raise ValueError("is not the path of a file or folder")
    return path


def web_address(text: str) -> str:
    parts = urlsplit(text)
    if parts.scheme not in {"https", "http"} or not parts.hostname or parts.username is not None:
        raise ValueError("must be an https:// or http:// address without credentials")
    return text


def history_location(text: str) -> str:
    """Checks an absolute path or a bucket with an optional prefix; removes a trailing `/`."""
    if (bucket := bucket_at(text)) is not None:
        return str(bucket)
    path = Path(text)
    if not path.is_absolute() or "\0" in text:
        raise ValueError(f"{shown(text)} is neither an absolute path nor {FORMS}")
    if path == path.parent or ".." in path.parts:
        raise ValueError(f"{shown(text)} must be a folder of its own, without '..'")
    return str(path)


def partition_numbers(text: str) -> frozenset[int]:
    """Parses `0-3, 7` to 0, 1, 2, 3 and 7."""
    numbers: set[int] = set()
    for part in text.split(","):
        match = PARTITION_RANGE.fullmatch(part.strip())
        if match is None:
            raise ValueError(f"is {shown(text)}; must be numbers and ranges of at most 99999, such as '0-3,7'")
        first, last = int(match["first"]), int(match["last"] or match["first"])
        if last < first:
            raise ValueError(f"is {shown(text)}; the range {first}-{last} ends before it begins")
        numbers.update(range(first, last + 1))
    return frozenset(numbers)


def no_boolean(value: object, *, what: str = "a whole number") -> object:
    """pydantic takes `true` as 1."""
    if isinstance(value, bool):
        raise ValueError(f"is {shown(value)}; must be {what}")  # noqa: TRY004 - pydantic's way to refuse
    return value


File = Annotated[Path, AfterValidator(file_path)]
Pattern = Annotated[str, AfterValidator(regular_expression)]
Namespaces = Annotated[tuple[Pattern, ...], Field(min_length=1)]
BootstrapServer = Annotated[str, AfterValidator(host_and_port)]
TopicName = Annotated[str, matching(TOPIC_NAME, "is not a valid topic name")]
TopicNames = Annotated[tuple[TopicName, ...], Field(min_length=1)]
HistoryLocation = Annotated[str, AfterValidator(history_location)]
ClusterName = Annotated[
    str, matching(LABEL_VALUE, f"must be a valid label value: at most 63 letters, digits, '-', '_' and '.', {ENDS}")
]
MetricName = Annotated[
    str,
    matching(METRIC_NAME, f"must be letters, digits, '-', '_' and '.', {ENDS}"),
    matching(NOT_RESERVED, "is reserved for Kubernetes' own paths below a namespace"),
]
Partitions = Annotated[str, AfterValidator(lambda text: partition_numbers(text) and text)]


def _known_zone(name: str) -> str:
    try:
        ZoneInfo(name)
    except (ZoneInfoNotFoundError, ValueError, OSError):
        raise ValueError(f"is {shown(name)}; must be a time zone such as UTC or Europe/Berlin") from None
    return name


Count = Annotated[int, BeforeValidator(no_boolean), Field(ge=1, le=2**31 - 1)]
"""Of replicas or the like: Kubernetes counts them in 32 bits."""
Rate = Annotated[
    float,
    BeforeValidator(lambda value: no_boolean(value, what="a number")),
    Field(ge=0.001, le=1e9, allow_inf_nan=False),
]
"""Messages per second."""
TimeZone = Annotated[str, AfterValidator(_known_zone)]
"""A name such as Europe/Berlin."""
Messages = Annotated[int, BeforeValidator(no_boolean), Field(ge=0, le=LARGEST_OFFSET)]
SomeMessages = Annotated[int, BeforeValidator(no_boolean), Field(ge=1, le=LARGEST_OFFSET)]
"""A separate range, so that an error names the least number."""
SeriesLabel = Annotated[
    str,
    matching(
        SERIES_LABEL,
        "must be letters, digits and '_', not begin with a digit or '__', and not be the name of another label",
    ),
]
DnsLabel = Annotated[str, matching(DNS_LABEL, f"must be at most 63 lower-case letters, digits and '-', {ENDS}")]
Name = Annotated[str, Field(min_length=1, max_length=8191)]
"""Brokers drop the connection for names of more than 32767 bytes."""
