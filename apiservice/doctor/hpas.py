"""Decides what is wrong with an HPA, and between it and its metric."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from adapter.cluster.coordinators import Placement
from adapter.errors import did_you_mean, some_of
from adapter.metrics.definitions import SERVED
from adapter.metrics.query import Metrics
from adapter.overview.commit_pace import CommitPace
from adapter.settings.models import Settings
from adapter.verdicts.controllers import ControllerFlags
from adapter.verdicts.hpa import quantity
from apiservice.autoscalers.activator import asked_by
from apiservice.autoscalers.annotations import ASLEEP_SINCE, SCALE_TO_ZERO, CapWish
from apiservice.autoscalers.asked import groups_read
from apiservice.autoscalers.autoscaler import Autoscaler, UsedMetric
from apiservice.autoscalers.capper import limit_by
from apiservice.autoscalers.limits import LIMITED, TOO_MANY
from apiservice.autoscalers.rivals import Rivals
from apiservice.doctor import codes
from apiservice.doctor.check import Category, Check, Outcome, failed, judged, passed, skipped, warned
from apiservice.doctor.facts import LATE, Answer, HpaFacts, Json
from apiservice.doctor.surges import first_raised, surge_of

_NEEDED = ("AbleToScale", "ScalingActive")
"""Conditions that are good if they are true."""
_DEFAULT_SURGE = "25%"
UNNAMED = "without --config, the metrics that settings name are not known"
NOT_IN_SETTINGS = "these settings do not name it, so it may be the upstream's"


@dataclass(frozen=True, slots=True)
class Names:
    """The metrics that an HPA of this adapter can read."""

    values: Mapping[str, str | None]
    """Name in lower case -> the short name of what it serves; None: the running adapter alone knows."""
    are_all: bool = True
    """Whether there are no others."""
    why_unknown: str = UNNAMED
    """Why a value is None."""


OWN_NAMES = Names(SERVED)
"""Those that every adapter serves."""


@dataclass(frozen=True, slots=True)
class Known:
    """What this process has read of Kafka, by the settings."""

    settings: Settings
    metrics: Metrics
    pace: Callable[[str | None, str], tuple[CommitPace, int | None] | None]
    """Cluster, which may be None, and group -> how it commits, if that was watched, and its members."""
    placements: Mapping[str, Placement]
    """Of each cluster."""


@dataclass(frozen=True, slots=True)
class Seen:
    """One HPA."""

    document: Json
    autoscaler: Autoscaler | None
    """None: it uses no metric of ours."""
    facts: HpaFacts

    @property
    def subject(self) -> str:
        return f"HPA {self.document['metadata']['namespace']}/{self.document['metadata']['name']}"


def unread(subject: str, answer: Answer) -> Iterator[Check]:
    """HPAs could not be read. `subject`: the only one that was asked for; empty: all were."""
    if answer.is_absent:
        yield from codes.failed_all(codes.HPA, subject, answer.problem)
    else:
        yield from codes.skipped_all(Category.HPA, answer.problem, subject)


def foreign(seen: Seen, names: Names) -> Iterator[Check]:
    """It reads none of the metrics that are known."""
    read = [name for metric in seen.document["spec"].get("metrics") or () for name in _names_in(metric)]
    hint = did_you_mean(read[0], names.values) if read else ""
    text = f"it reads {some_of(read, separator=', ') or 'no metric by name'}{hint}"
    if names.are_all or not read:
        yield from codes.failed_all(codes.HPA, seen.subject, text)
    else:
        yield from codes.skipped_all(Category.HPA, f"{text}; {UNNAMED}", seen.subject)


def checks_of(
    seen: Seen, hpa: Autoscaler, rivals: Rivals | str, known: Known | str, names: Names = OWN_NAMES
) -> Iterator[Check]:
    """`rivals`, `known`: why other scalers are, and why nothing of Kafka is, not known, if it is a text."""
    subject = seen.subject
    yield passed(codes.HPA, subject)
    yield _value(seen)
    yield _conditions(hpa, subject)
    lags = [metric for metric in hpa.metrics if names.values.get(metric.name.lower()) == "lag"]
    yield _value_target(hpa, lags, names, subject)
    yield _alone(hpa, rivals, subject)
    yield _surge(seen, hpa)
    if isinstance(known, str):
        yield from (skipped(code, subject, known) for code in (codes.MOST_REPLICAS, codes.CADENCE, codes.ZERO))
        return
    yield _most_replicas(hpa, known.metrics, subject)
    yield _cadence(hpa, lags, known, subject)
    yield _zero(hpa, rivals, known, subject)


def _names_in(metric: Mapping[str, Any]) -> Iterator[str]:
    source = metric.get(str(metric["type"]).lower()) or {}
    if "metric" in source:
        yield source["metric"]["name"]


def _value(seen: Seen) -> Check:
    values, subject = seen.facts.values, seen.subject
    if not values:
        return skipped(codes.VALUE, subject, "it reads no External metric")
    problems = [(name, answer) for name, answer in values if answer.document is None]
    faults = [f"{name}: {each.problem}" for name, each in problems if each is not LATE and not each.is_forbidden]
    if problems and not faults:
        return skipped(codes.VALUE, subject, problems[0][1].problem)
    return judged(codes.VALUE, subject, some_of(faults))


def _value_target(hpa: Autoscaler, lags: Sequence[UsedMetric], names: Names, subject: str) -> Check:
    by_value = [metric for metric in hpa.metrics if metric.target_type == "Value"]
    if found := [metric.name for metric in by_value if metric in lags]:
        return warned(codes.VALUE_TARGET, subject, f"{some_of(found, separator=', ')} has a target of type Value")
    if unknown := [metric.name for metric in by_value if names.values.get(metric.name.lower()) is None]:
        return skipped(codes.VALUE_TARGET, subject, f"it reads {unknown[0]}; {names.why_unknown}")
    return passed(codes.VALUE_TARGET, subject)


def _alone(hpa: Autoscaler, rivals: Rivals | str, subject: str) -> Check:
    if isinstance(rivals, str):
        return skipped(codes.RIVALS, subject, rivals)
    others = some_of(rivals.of(hpa), separator=" and ")
    text = f"{hpa.target.kind} {hpa.target.name} is also scaled by {others}" if others else ""
    return judged(codes.RIVALS, subject, text)


def _conditions(hpa: Autoscaler, subject: str) -> Check:
    if not hpa.conditions:
        return skipped(codes.CONDITIONS, subject, "the HPA controller has not looked at it yet")
    for each in hpa.conditions:
        text = f"{each.type} is {each.status}: {each.reason}: {each.message}"
        if each.type in _NEEDED and each.status != "True" and ASLEEP_SINCE not in hpa.annotations:
            return failed(codes.CONDITIONS, subject, text)
        if (each.type, each.status, each.reason) == (LIMITED, "True", TOO_MANY):
            return warned(codes.CONDITIONS, subject, text)
    return passed(codes.CONDITIONS, subject)


def _surge(seen: Seen, hpa: Autoscaler) -> Check:
    deployment, subject = seen.facts.target.document, seen.subject
    if deployment is None:
        return skipped(codes.SURGE, subject, seen.facts.target.problem)
    strategy = deployment["spec"].get("strategy") or {}
    if strategy.get("type") == "Recreate" or all(metric.target_type != "AverageValue" for metric in hpa.metrics):
        return passed(codes.SURGE, subject)
    surge = (strategy.get("rollingUpdate") or {}).get("maxSurge", _DEFAULT_SURGE)
    raised = first_raised(hpa.minimum, hpa.maximum, surge_of(surge), _tolerance(seen.document))
    text = (
        ""
        if raised is None
        else (f"with maxSurge {surge}, an update at {raised} replicas adds so few pods that the HPA keeps them")
    )
    return judged(codes.SURGE, subject, text, Outcome.WARNING)


def _tolerance(document: Json) -> float:
    given = ((document["spec"].get("behavior") or {}).get("scaleDown") or {}).get("tolerance")
    return ControllerFlags().tolerance if given is None else float(quantity(given))


def _most_replicas(hpa: Autoscaler, metrics: Metrics, subject: str) -> Check:
    limit = limit_by(metrics, hpa, CapWish(), hpa.minimum).replicas
    if limit is None:
        return skipped(codes.MOST_REPLICAS, subject, "how many replicas can have a partition is not known")
    text = f"maxReplicas is {hpa.maximum}, and {limit} can have a partition" if hpa.maximum > limit else ""
    return judged(codes.MOST_REPLICAS, subject, text, Outcome.WARNING)


def _cadence(hpa: Autoscaler, lags: Sequence[UsedMetric], known: Known, subject: str) -> Check:
    targets = [metric.target for metric in lags if metric.target_type == "AverageValue"]
    groups = groups_read(hpa, known.metrics.named_groups)
    watched = [seen for place in groups if (seen := known.pace(place.cluster, place.group)) is not None]
    if not targets or not watched:
        return skipped(
            codes.CADENCE, subject, "no three commits of its groups were seen; `--after 75s` watches for longer"
        )
    target, (pace, members) = float(quantity(targets[0])), watched[0]
    each = pace.per_second / max(members or hpa.current_replicas, 1)
    work = target / each if each else float("inf")
    text = (
        f"commits come {pace.seconds:.0f} s apart, and the target of {targets[0]} messages is {work:.0f} s of one "
        f"replica's work ({each:.0f} messages/s): between two commits, the lag rises by more than the target"
    )
    if pace.is_bound and pace.seconds > work:
        why = f"every read has shown a commit: they come {pace.seconds:.0f} s apart or more often"
        return skipped(codes.CADENCE, subject, why)
    return judged(codes.CADENCE, subject, text if pace.seconds > work else "", Outcome.WARNING)


def _zero(hpa: Autoscaler, rivals: Rivals | str, known: Known, subject: str) -> Check:
    if SCALE_TO_ZERO not in hpa.annotations:
        gate = "by the HPA itself" if hpa.minimum == 0 else "not asked for"
        return passed(codes.ZERO, subject, gate)
    if isinstance(rivals, str):
        return skipped(codes.ZERO, subject, rivals)
    asked = asked_by(hpa, rivals, known.metrics, is_allowed=known.settings.autoscalers.scale_to_zero)
    if asked.wish is None and hpa.annotations[SCALE_TO_ZERO] == "false":
        return passed(codes.ZERO, subject, "not asked for")
    return judged(codes.ZERO, subject, asked.why_not if asked.wish is None else "")
