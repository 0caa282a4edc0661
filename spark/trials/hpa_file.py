"""The HPA of `--hpa`: parsed, and refused where it scales on what is not replayed, or on another group."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TypeVar

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from adapter.columns import LARGEST_OFFSET
from adapter.documents import content_of, document_in
from adapter.errors import SettingsInvalid
from adapter.settings.models import Wait
from adapter.verdicts.hpa import Hpa, HpaInvalid, LabelSelector, Metric, hpa_of
from adapter.verdicts.simulation.promised import Promised
from spark.errors import Unusable
from spark.figures.model import Group
from spark.tables.seen_hpas import SeenHpa
from spark.trials.references import Candidate, served_by_lag

METRIC, REQUIRED = "kafka_consumergroup_lag", "kafka_consumergroup_required_replicas"
REPLICAS = "kafka_consumergroup_replicas"
ONE = 1000
"""A target of 1, in thousandths."""
Number = TypeVar("Number", int, float)
SETTINGS = "# | "
"""What begins a line of the file that has a part of the adapter's settings, as the report writes it."""
NO_LAG_PER_REPLICA = (
    "only the adapter's settings say how much lag asks for a replica. Write their rule above the HPA, in lines that "
    "begin with `# | `, as in the files of the report"
)


@dataclass(frozen=True, slots=True)
class GivenHpa:
    """The HPA that a group has today."""

    file: str
    """The name of its file; of one that the adapter saw, its namespace and name."""
    hpa: Hpa
    lag_per_replica: int | None = None
    """Messages for which a number of replicas asks for one; None: it does not go by the lag, or nobody knows."""
    max_wait: float | None = None
    """Seconds for which the number that keeps a promise is computed; None: it is not that number, or nobody knows."""


class _Objective(BaseModel):
    max_wait: Wait | None = Field(default=None, alias="maxWait")


class _Shape(_Objective):
    model_config = ConfigDict(extra="allow", strict=True)
    lag_per_replica: int | None = Field(default=None, alias="lagPerReplica", ge=1, le=LARGEST_OFFSET)


class _Entry(BaseModel):
    """A rule, or a named metric."""

    replicas: _Shape | None = None
    objective: _Objective | None = None


class _Settings(BaseModel):
    rules: tuple[_Entry, ...] = ()
    metrics: tuple[_Entry, ...] = ()

    @property
    def entries(self) -> tuple[_Entry, ...]:
        return *self.rules, *self.metrics


def given_in(path: Path) -> GivenHpa:
    """Raises Unusable with every problem of the file."""
    try:
        content = content_of(path)
    except SettingsInvalid as error:
        raise Unusable(f"--hpa {error}") from error
    try:
        hpa = hpa_of(document_in(content))
        settings = _settings_in(content) if _has_numbers_of_replicas(hpa) else _Settings()
        return GivenHpa(path.name, hpa, _lag_per_replica(settings), _max_wait(settings))
    except (HpaInvalid, SettingsInvalid) as error:
        raise Unusable(f"--hpa {path}: {error}") from error


def _has_numbers_of_replicas(hpa: Hpa) -> bool:
    return any(metric.source.target.average_value == ONE for metric in hpa.metrics)


def _settings_in(content: bytes) -> _Settings:
    """Reads the settings in the file's comments. Raises SettingsInvalid."""
    lines = content.decode().split("\n")
    # Blanks instead of the rest of the file, so that a problem has the line and the column that it has there.
    blanks = " " * len(SETTINGS)
    text = "\n".join(blanks + line.removeprefix(SETTINGS) if line.startswith(SETTINGS) else "" for line in lines)
    try:
        return _Settings.model_validate(document_in(text.rstrip().encode()) or {})
    except ValidationError as error:
        raise SettingsInvalid(("the settings in its comments are not valid rules or metrics",)) from error


def _lag_per_replica(settings: _Settings) -> int | None:
    """None: they have none. Raises SettingsInvalid."""
    shapes = (entry.replicas for entry in settings.entries)
    by_lag = [shape for shape in shapes if shape is not None and shape.lag_per_replica is not None]
    if any(shape.model_extra or shape.max_wait is not None for shape in by_lag):
        raise SettingsInvalid(("the settings in its comments have more than lagPerReplica, which alone is replayed",))
    return _only("lagPerReplica", {it.lag_per_replica for it in by_lag if it.lag_per_replica is not None})


def _max_wait(settings: _Settings) -> float | None:
    """None: they have none. Raises SettingsInvalid."""
    promises = (promise for entry in settings.entries for promise in (entry.objective, entry.replicas))
    return _only("maxWait", {it.max_wait for it in promises if it is not None and it.max_wait is not None})


def _only(key: str, numbers: set[Number]) -> Number | None:
    if len(numbers) > 1:
        raise SettingsInvalid((f"the settings in its comments have several values of {key}; keep one of them",))
    return next(iter(numbers), None)


def groups_of(given: GivenHpa, groups: Sequence[Group]) -> list[Group]:
    """Returns those on which it scales, and which a selector names.

    Raises Unusable where there is none, with the reason for the first one of that name."""
    selectors = [dict(_chosen(metric.source.metric.selector)) for metric in given.hpa.metrics]
    named = [group for group in groups if any(it.get("group") == {group.name} for it in selectors)]
    found = [group for group in named if _can_be_replayed(given, group)]
    if named and not found:
        candidate_of(given, named[0], 0.0)
    if not found:
        raise Unusable(f"--hpa {given.file}: does not scale on the lag of a group of the range with all its topics")
    return found


def was_seen_for(seen: SeenHpa, group: Group) -> bool:
    """Whether an HPA of a group scales on all its topics by metrics that can be replayed."""
    if not seen.is_replayable or (seen.topics and seen.topics != {topic.name for topic in group.topics}):
        return False
    return _can_be_replayed(GivenHpa(seen.name, seen.hpa), group)


def _can_be_replayed(given: GivenHpa, group: Group) -> bool:
    try:
        candidate_of(given, group, 0.0)
    except Unusable:
        return False
    return True


def candidate_of(given: GivenHpa, group: Group, promised_seconds: float) -> Candidate:
    """Returns the HPA with what it reads: the lag of the group, or a number of replicas that follows from it, or the
    one that keeps a promise about waiting.

    Raises Unusable where a metric is another one, or that of something else. A metric without a selector is taken for a
    named metric, because the names of these are only in the adapter's settings: with an average of 1 for a number of
    replicas, otherwise for the group's lag. `promised_seconds`: what the number keeps if nobody knows its own wait."""
    metrics = {_metric(at, it, given, group) for at, it in enumerate(given.hpa.metrics)}
    if metrics == {METRIC}:
        return Candidate(given.hpa)
    if metrics == {REQUIRED}:
        return Candidate(given.hpa, rule=Promised(given.max_wait or promised_seconds))
    if metrics == {REPLICAS} and given.lag_per_replica is not None:
        return Candidate(given.hpa, served_by_lag(given.lag_per_replica, group.partitions))
    raise Unusable(
        f"--hpa {given.file}: spec.metrics has different kinds of metrics; HPAs are replayed with one of them"
    )


def _metric(at: int, metric: Metric, given: GivenHpa, group: Group) -> str:
    """Returns METRIC, REPLICAS or REQUIRED."""
    place = f"--hpa {given.file}: spec.metrics[{at}]"
    name, target = metric.source.metric.name.lower(), metric.source.target
    chosen = dict(_chosen(metric.source.metric.selector))
    if not chosen:
        number = REQUIRED if given.lag_per_replica is None else REPLICAS
        return number if target.average_value == ONE else METRIC
    wanted = {"cluster": {group.cluster}, "group": {group.name}, "topic": {topic.name for topic in group.topics}}
    for key, values in chosen.items():
        if values != wanted.get(key):
            shown, all_of_it = ", ".join(sorted(values)), "all topics" if key == "topic" else "the lag"
            raise Unusable(f"{place} scales on {key} {shown!r}, not on {all_of_it} of group {group.name!r}")
    if name not in {METRIC, REPLICAS, REQUIRED} or "group" not in chosen:
        shown = metric.source.metric.name
        raise Unusable(f"{place} scales on {shown!r}, not on the lag of group {group.name!r}")
    if name != METRIC and target.average_value != ONE:
        raise Unusable(f'{place} is a number of replicas, so its target must be `averageValue: "1"`')
    if name == REPLICAS and given.lag_per_replica is None:
        raise Unusable(f"{place} is {REPLICAS}, and {NO_LAG_PER_REPLICA}")
    return name


def _chosen(selector: LabelSelector) -> Iterator[tuple[str, set[str]]]:
    """Yields each key with the values that it may have."""
    for key, value in selector.match_labels.items():
        yield key, {value}
    for requirement in selector.match_expressions:
        is_list = requirement.operator == "In"
        yield requirement.key, set(requirement.values) if is_list else {f"{requirement.operator} {requirement.values}"}
