"""`kafka-lag-adapter doctor`: what stands between the brokers, this adapter and an HPA, found check by check.

Gathers first of Kubernetes, because HPAs say what is to be read of Kafka; what was gathered is decided in `doctor`."""

import io
import json
import re
import sys
from collections.abc import Collection, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from dataclasses import dataclass
from functools import partial
from threading import Event
from typing import Literal

import typer
from rich.console import Console

from adapter import clock
from adapter.errors import AdapterError, SettingsInvalid
from adapter.kafka.passport import Meeting, meet
from adapter.lag.rules import AskedTopics
from adapter.metrics.definitions import SERVED
from adapter.metrics.query import Metrics
from adapter.overview.commit_pace import CommitPace, CommitWatch
from adapter.settings.models import Settings
from adapter.settings.types import DNS_LABEL
from apiservice.api_group import registered
from apiservice.autoscalers.asked import asked_topics
from apiservice.autoscalers.autoscaler import autoscaler_of
from apiservice.autoscalers.rivals import Rivals, scaler_of
from apiservice.commands.cluster_facts import Cluster
from apiservice.commands.reading import Reading, hurried, reading
from apiservice.doctor import codes, groups, hpas, kafka, kubernetes
from apiservice.doctor.check import Category, Check, Outcome, failed, passed, skipped
from apiservice.doctor.facts import Answer, ClusterFacts, Json
from apiservice.doctor.hpas import NOT_IN_SETTINGS, OWN_NAMES, UNNAMED, Known, Names, Seen
from apiservice.doctor.rendering import document_of, lines_of, status_of
from apiservice.flags import TWICE, DoctorFlags, given_settings
from apiservice.registration.api_service import service_of
from apiservice.tls.issuing import PRODUCT

STATUS_FAILED = 1
AT_ONCE = 4
INTERVAL_SECONDS = 1.0
LOOK_SECONDS = 0.25
MOST_HPAS = 100
NO_SETTINGS = "no --config and no --bootstrap-servers"
NO_KUBECONFIG = "no --kubeconfig, and not in a cluster"
NOT_ASKED = "not asked for"
OBJECT_NAME = re.compile(r"(?=.{1,253}$)[a-z0-9]+(?:[-.]+[a-z0-9]+)*")
"""Roughly: kube-apiserver accepts no dots beside dots or hyphens, but parts of any length."""
_READS_KAFKA = {Category.KAFKA, Category.GROUPS, Category.HPA}
_READS_KUBERNETES = {Category.KUBERNETES, Category.GROUPS, Category.HPA}
"""HPAs name groups."""


@dataclass(frozen=True, slots=True)
class _Kubernetes:
    """What was gathered; why nothing was, if there are no facts."""

    facts: ClusterFacts | None = None
    why: str = ""
    is_fault: bool = False
    names: Names = OWN_NAMES
    hpas: Sequence[Seen] = ()
    rivals: Rivals | str = ""
    """Why it is not known what else scales, if it is a text."""
    hpas_problem: Answer | None = None
    left_out: int = 0


def run(options: DoctorFlags) -> None:
    """Prints the checks. Ends with status 1 if one has failed. Raises SettingsInvalid for flags that cannot be used."""
    checks = checks_of(options)
    _show(checks, options.output)
    if status_of(checks) is Outcome.FAILED:
        raise typer.Exit(STATUS_FAILED)


def checks_of(options: DoctorFlags) -> list[Check]:
    """Raises typer.BadParameter and SettingsInvalid for flags that cannot be used."""
    categories = _categories(options)
    _confirm(options)
    return [check for check in _checks(options, categories) if check.code.category in categories]


def _categories(options: DoctorFlags) -> Collection[Category]:
    known = [each.value for each in Category]
    for name in options.category or ():
        if name not in known:
            raise typer.BadParameter(f"{name!r} is not one of {', '.join(known)}", param_hint="--category")
    return {Category(name) for name in options.category or known}


def _confirm(options: DoctorFlags) -> None:
    service_of(options.service, PRODUCT)
    for flag, name, kind in (("--hpa", options.hpa, OBJECT_NAME), ("--namespace", options.namespace, DNS_LABEL)):
        if name is not None and not kind.fullmatch(name):
            raise typer.BadParameter(f"{name!r} is not a valid name of a Kubernetes object", param_hint=flag)
    if None not in {options.config, options.bootstrap_servers}:
        raise SettingsInvalid((TWICE,))


def _checks(options: DoctorFlags, categories: Collection[Category]) -> Iterator[Check]:
    settings, check = _settings(options)
    yield check
    cluster = _kubernetes(options, settings) if _READS_KUBERNETES & {*categories} else _Kubernetes(why=NOT_ASKED)
    with ExitStack() as stack:
        known: Known | str = NOT_ASKED
        if settings is None:
            known = check.detail if check.outcome is Outcome.SKIPPED else f"{check.code.name} {check.outcome}"
            yield from codes.skipped_all(Category.KAFKA, known)
        elif _READS_KAFKA & {*categories}:
            meetings = _meetings(settings)
            yield from (check for meeting in meetings for check in kafka.checks_of(meeting))
            known = _known(settings, meetings, cluster, options.after, stack)
        yield from _of_groups(known, cluster)
        yield from _of_kubernetes(cluster, options)
        yield from _of_hpas(cluster, options, known)


def _settings(options: DoctorFlags) -> tuple[Settings | None, Check]:
    if options.config is None and options.bootstrap_servers is None:
        return None, skipped(codes.SETTINGS, "", NO_SETTINGS)
    subject = str(options.config or options.bootstrap_servers)
    try:
        return given_settings(options.config, options.bootstrap_servers), passed(codes.SETTINGS, subject)
    except SettingsInvalid as invalid:
        return None, failed(codes.SETTINGS, subject, "; ".join(invalid.problems))


# -- Kubernetes ------------------------------------------------------------------------------------


def _kubernetes(options: DoctorFlags, settings: Settings | None) -> _Kubernetes:
    try:
        cluster = Cluster(options.kubeconfig)
    except AdapterError as error:
        is_fault = options.kubeconfig is not None or options.hpa is not None
        return _Kubernetes(why=str(error) if is_fault else NO_KUBECONFIG, is_fault=is_fault)
    service = service_of(options.service, PRODUCT)
    assert service is not None, "a namespace was given"
    api_groups = registered(custom_metrics=settings is not None and settings.custom_metrics.register_services)
    facts = cluster.facts(service, api_groups, installs=options.pre)
    if facts.version.document is None or options.pre:
        return _Kubernetes(facts)
    namespace = options.namespace or ("default" if options.hpa else None)
    everywhere = cluster.hpas(None, namespace)
    listed = cluster.hpas(options.hpa, namespace) if options.hpa else everywhere
    if listed.document is None:
        return _Kubernetes(facts, hpas_problem=listed)
    rivals = everywhere.problem if everywhere.document is None else _rivals(everywhere.document["items"])
    wanted, names = listed.document["items"], _names(options, settings, facts)
    ours = [(each, autoscaler_of(each, names.values)) for each in wanted]
    shown = [pair for pair in ours if options.hpa or pair[1] is not None]
    with ThreadPoolExecutor(AT_ONCE, thread_name_prefix="hpas") as threads:
        read = threads.map(cluster.of_hpa, [document for document, _ in shown[:MOST_HPAS]])
        seen = [Seen(*pair, facts) for pair, facts in zip(shown, read, strict=False)]
    return _Kubernetes(facts, names=names, hpas=seen, rivals=rivals, left_out=len(shown) - len(seen))


def _names(options: DoctorFlags, settings: Settings | None, facts: ClusterFacts) -> Names:
    """What the running adapter serves may be an upstream's, so without --hpa it makes no HPA ours if ours are known."""
    are_known = settings is not None and options.config is not None
    listed = {} if are_known and options.hpa is None else dict.fromkeys(name.lower() for name in facts.served)
    own = {each.name.lower(): each.value for each in (settings.metrics if settings else ())}
    return Names(
        {**listed, **SERVED, **own},
        are_all=are_known or bool(facts.served),
        why_unknown=NOT_IN_SETTINGS if are_known else UNNAMED,
    )


def _rivals(hpas: Sequence[Json]) -> Rivals:
    scalers = [scaler_of(each) for each in hpas]
    return Rivals(lambda: scalers)


def _of_kubernetes(cluster: _Kubernetes, options: DoctorFlags) -> Iterator[Check]:
    if cluster.facts is not None:
        yield from kubernetes.checks_of(cluster.facts, before_install=options.pre)
    else:
        yield from (
            codes.failed_all(codes.CLUSTER, "", cluster.why)
            if cluster.is_fault
            else codes.skipped_all(Category.KUBERNETES, cluster.why)
        )


def _of_hpas(cluster: _Kubernetes, options: DoctorFlags, known: Known | str) -> Iterator[Check]:
    if cluster.facts is None or cluster.facts.version.document is None:
        yield from codes.skipped_all(Category.HPA, cluster.why or f"{codes.CLUSTER.name} failed")
    elif options.pre:
        yield from codes.skipped_all(Category.HPA, "--pre is before the installation")
    elif cluster.hpas_problem is not None:
        place = f"HPA {options.namespace or 'default'}/{options.hpa}" if options.hpa else ""
        yield from hpas.unread(place, cluster.hpas_problem)
    elif not cluster.hpas:
        where = f" in namespace {options.namespace}" if options.namespace else ""
        yield from codes.skipped_all(Category.HPA, f"no HPA{where} reads a metric of this adapter")
    for seen in cluster.hpas:
        if seen.autoscaler is None:
            yield from hpas.foreign(seen, cluster.names)
        else:
            yield from hpas.checks_of(seen, seen.autoscaler, cluster.rivals, known, cluster.names)
    if cluster.left_out:
        yield skipped(codes.HPA, f"{cluster.left_out} more HPAs", "--hpa NAME, or --namespace, checks them")


# -- Kafka -----------------------------------------------------------------------------------------


def _meetings(settings: Settings) -> list[Meeting]:
    with ThreadPoolExecutor(AT_ONCE, thread_name_prefix="doctor") as threads:
        return [*threads.map(meet, settings.clusters)]


def _asked(cluster: _Kubernetes, metrics: Metrics) -> Mapping[str, tuple[AskedTopics, ...]]:
    ours = (seen.autoscaler for seen in cluster.hpas)
    return {"/".join(hpa.place): asked_topics(hpa, metrics.named_groups) for hpa in ours if hpa is not None}


def _known(
    settings: Settings, meetings: Sequence[Meeting], cluster: _Kubernetes, after: float, stack: ExitStack
) -> Known | str:
    """Returns why nothing can be known, if nothing can."""
    if not any(meeting.brokers for meeting in meetings):
        return "no broker can be read"

    def ask(metrics: Metrics) -> Collection[AskedTopics]:
        return [topics for asked in _asked(cluster, metrics).values() for topics in asked]

    clusters = stack.enter_context(reading(hurried(settings, INTERVAL_SECONDS), ask))
    try:
        clusters.wait()
    except AdapterError as error:
        return str(error)
    watch = _watched(clusters, after)
    placed = {each.name: each.placement for each in clusters.collectors}
    return Known(settings, clusters.metrics, partial(_pace, clusters, watch), placed)


def _watched(clusters: Reading, seconds: float) -> CommitWatch:
    watch, began, pause = CommitWatch(), clock.monotonic(), Event()
    watch.look(clusters.store.views)
    while clock.monotonic() - began < seconds:
        pause.wait(LOOK_SECONDS)
        watch.look(clusters.store.views)
    return watch


def _pace(
    clusters: Reading, watch: CommitWatch, cluster: str | None, group: str
) -> tuple[CommitPace, int | None] | None:
    for view in clusters.store.views:
        pace = watch.of(view, group) if cluster in {None, view.cluster} else None
        if pace is not None:
            members = view.members_of(group)
            return pace, None if members is None else members.members
    return None


def _of_groups(known: Known | str, cluster: _Kubernetes) -> Iterator[Check]:
    if isinstance(known, str):
        yield from codes.skipped_all(Category.GROUPS, known)
    else:
        yield from (kafka.placement_check(*each) for each in known.placements.items())
        named = groups.named_in(known.settings, _asked(cluster, known.metrics))
        yield from groups.checks_of(named, known.metrics)


# -- apply -----------------------------------------------------------------------------------------


def _show(checks: Sequence[Check], output: Literal["text", "json"]) -> None:
    if isinstance(sys.stdout, io.TextIOWrapper):
        sys.stdout.reconfigure(errors="replace")  # not every terminal has the signs
    if output == "json":
        print(json.dumps(document_of(checks), indent=2))
        return
    console = Console(soft_wrap=True) if sys.stdout.isatty() else None
    for line in lines_of(checks):
        if console is None:
            print(line.plain)
        else:
            console.print(line)
