"""The HPAs that groups had, as the adapter saw them and kept them in the history."""

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any

from pydantic import BaseModel, Field, ValidationError

from adapter.verdicts.hpa import API_VERSION, KIND, Hpa, HpaInvalid, hpa_of
from spark.storage.protocol import HistoryFiles
from spark.tables import layout
from spark.tables.sample_files import Skipped

NAME = re.compile(r".+-(\d{8}T\d{6}\.\d{6})Z\.json")
MOST_DOCUMENTS = 20
"""That are read. The newest has all, unless several adapters keep one history."""
REPEATED = timedelta(hours=2)
"""A document is written once an hour: in the range of a report, or a little before it."""


class _Entry(BaseModel):
    cluster: str | None
    group: str
    topics: tuple[str, ...]
    values: tuple[str, ...]
    max_wait_seconds: float | None = Field(default=None, alias="maxWaitSeconds", gt=0)
    namespace: str
    name: str
    spec: dict[str, Any]


class _Document(BaseModel):
    clusters: tuple[str, ...]
    autoscalers: tuple[_Entry, ...]
    seen_at: datetime = Field(alias="seenAt")


@dataclass(frozen=True, slots=True)
class SeenHpa:
    """One HPA, in the newest document that may have those of a cluster."""

    cluster: str
    group: str
    topics: frozenset[str]
    """Empty: all of the group."""
    is_replayable: bool
    """Whether each of its metrics is the lag, or each is the number that keeps a promise."""
    namespace: str
    name: str
    seen_at: datetime
    hpa: Hpa
    max_wait_seconds: float | None = None
    """That a number keeps by the settings; None: it keeps none, or the document is of an earlier release."""


def seen_hpas(files: HistoryFiles, since: datetime, until: datetime, clusters: Iterable[str]) -> list[SeenHpa]:
    """Returns the HPAs of these clusters in the newest documents of the range; those that cannot be parsed are left
    out."""
    left, seen = set(clusters), list[SeenHpa]()
    for document in _newest_documents(files, since, until):
        told = left.intersection(document.clusters)
        seen += [each for entry in document.autoscalers for each in _of(entry, document.seen_at, sorted(told))]
        left -= told
        if not left:
            break
    return seen


def misnamed_documents(files: HistoryFiles) -> list[Skipped]:
    """Files from whose names nobody knows when they were written."""
    return [
        Skipped(file.path, "is no document of HPAs by its name")
        for file in files.listed(layout.AUTOSCALERS, 1)
        if _time_of(file.name) is None
    ]


def _newest_documents(files: HistoryFiles, since: datetime, until: datetime) -> Iterator[_Document]:
    listed = [(_time_of(file.name), file.path) for file in files.listed(layout.AUTOSCALERS, 1)]
    times = {path: time for time, path in listed if time is not None and since - REPEATED <= time < until}
    for path in sorted(times, key=lambda path: times[path], reverse=True)[:MOST_DOCUMENTS]:
        try:
            yield _Document.model_validate_json(files.read(path) or "")
        except ValidationError:
            continue  # of a later release, or edited


def _time_of(name: str) -> datetime | None:
    match = NAME.fullmatch(name)
    try:
        return None if match is None else datetime.strptime(match[1], "%Y%m%dT%H%M%S.%f").replace(tzinfo=UTC)
    except ValueError:
        return None  # such as the 31st of November


def _of(entry: _Entry, seen_at: datetime, clusters: Sequence[str]) -> Iterator[SeenHpa]:
    try:
        hpa = hpa_of({"apiVersion": API_VERSION, "kind": KIND, "spec": entry.spec})
    except HpaInvalid:
        return
    for cluster in clusters:
        if entry.cluster in {None, cluster}:
            is_replayable = set(entry.values) in ({"lag"}, {"required_replicas"})
            topics = frozenset(entry.topics)
            yield SeenHpa(
                cluster,
                entry.group,
                topics,
                is_replayable,
                entry.namespace,
                entry.name,
                seen_at,
                hpa,
                entry.max_wait_seconds,
            )
