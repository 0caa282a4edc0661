"""The file that `--groups` names: what was agreed on for each group. Every problem is reported with its place in it."""

import re
from collections.abc import Collection, Mapping
from dataclasses import dataclass, field, replace
from datetime import timedelta
from pathlib import Path
from typing import Annotated, Literal, Self
from zoneinfo import ZoneInfo

from pydantic import AfterValidator, Field, ValidationError, model_validator

from adapter.documents import content_of, document_in, problems_of
from adapter.errors import SettingsInvalid
from adapter.settings.types import Pattern, SettingsPart, duration, seconds_of
from spark.advice.hpa import shortest_wait
from spark.errors import Unusable
from spark.figures.agreement import Agreement, Pause

DAYS = ("Mon", "Tue", "Wed", "Thu", "Fri", "Sat", "Sun")
DAY = timedelta(days=1)


def _clock(text: str) -> str:
    if not re.fullmatch(r"([01]\d|2[0-3]):[0-5]\d|24:00", text):
        raise ValueError(f"{text!r} must be a time such as '22:00', in quotes")
    return text


Clock = Annotated[str, AfterValidator(_clock)]
Threshold = Annotated[int, Field(ge=1, strict=True)]
"""As `--threshold`: above 0 messages, any lag would be an episode."""


class PausePart(SettingsPart):
    days: tuple[Literal["Mon", "Tue", "Wed", "Thu", "Fri", "Sat", "Sun"], ...] = DAYS  # type: ignore[assignment]
    begins: Clock = Field("00:00", alias="from")
    ends: Clock = Field("24:00", alias="to")

    def pause(self, zone: ZoneInfo) -> Pause:
        """One that ends before it begins ends on the next day."""
        begins, ends = (timedelta(hours=int(at[:2]), minutes=int(at[3:])) for at in (self.begins, self.ends))
        days = frozenset(DAYS.index(day) for day in self.days)
        return Pause(days, begins, ends if ends > begins else ends + DAY, zone)


class GroupPart(SettingsPart):
    group: str | None = None
    groups: Pattern | None = None
    cluster: str | None = None
    owner: str = ""
    max_wait: Annotated[float, duration("1s", "3650d")] | None = None
    threshold: Threshold | None = None
    thresholds: dict[str, Threshold] = Field(default_factory=dict)
    pauses: tuple[PausePart, ...] = ()

    @model_validator(mode="after")
    def _names_groups(self) -> Self:
        if (self.group is None) == (self.groups is None):
            raise ValueError("needs either `group`, a name, or `groups`, a regular expression")
        return self

    def is_about(self, cluster: str, group: str) -> bool:
        if self.cluster not in {None, cluster}:
            return False
        return group == self.group if self.groups is None else re.fullmatch(self.groups, group) is not None

    def agreement(self, default: Agreement, zone: ZoneInfo) -> Agreement:
        return replace(
            default,
            max_wait_seconds=self.max_wait or default.max_wait_seconds,
            has_wait=self.max_wait is not None or default.has_wait,
            threshold=default.threshold if self.threshold is None else self.threshold,
            thresholds=self.thresholds,
            owner=self.owner,
            pauses=tuple(part.pause(zone) for part in self.pauses),
        )


class GroupFile(SettingsPart):
    groups: tuple[GroupPart, ...]


@dataclass(frozen=True, slots=True)
class Agreements:
    """Which groups a report is about, and what was agreed on for each."""

    default: Agreement = field(default_factory=Agreement)
    parts: tuple[GroupPart, ...] = ()
    """The first that is about a group counts."""
    only: Collection[str] = ()
    """Names; empty: all groups."""
    zone: ZoneInfo = field(default_factory=lambda: ZoneInfo("UTC"))
    """Of the pauses, and of all that the report shows."""

    def of(self, cluster: str, group: str, interval_seconds: float) -> Agreement:
        """`interval_seconds`: between two samples. Where people did not agree on a wait, it is none that an HPA cannot
        keep because samples are too rare."""
        part = next((part for part in self.parts if part.is_about(cluster, group)), None)
        agreement = part.agreement(self.default, self.zone) if part else self.default
        if agreement.has_wait:
            return agreement
        return replace(agreement, max_wait_seconds=max(agreement.max_wait_seconds, shortest_wait(interval_seconds)))


def agreed(max_wait: str | None, threshold: int | None, file: Path | None, only: Collection[str] = ()) -> Agreements:
    """The flags as one value, or Unusable."""
    default = Agreement(threshold=threshold)
    if max_wait is not None:
        default = replace(default, max_wait_seconds=_wait_in(max_wait), has_wait=True)
    return Agreements(default, parts_in(file) if file else (), frozenset(only))


def _wait_in(text: str) -> float:
    try:
        seconds = seconds_of(text)
    except ValueError as error:
        raise Unusable(f"--max-wait: {error}") from error
    if seconds <= 0:
        raise Unusable(f"--max-wait: is {text!r}; must be above 0")
    return seconds


def parts_in(path: Path) -> tuple[GroupPart, ...]:
    """Raises Unusable with every problem of the file."""
    try:
        content = content_of(path)
    except SettingsInvalid as invalid:
        raise Unusable(str(invalid)) from invalid
    try:
        return _validated(document_in(content))
    except SettingsInvalid as invalid:
        raise Unusable("\n".join(f"{path}: {problem}" for problem in invalid.problems)) from invalid


def _validated(content: object) -> tuple[GroupPart, ...]:
    if not isinstance(content, Mapping):
        raise SettingsInvalid(("must be a mapping with `groups`",))
    try:
        return GroupFile.model_validate(content).groups
    except ValidationError as error:
        raise SettingsInvalid(problems_of(error, GroupFile)) from error
