"""Builds everything from the flags and serves.

Separate from `__main__`, so that `--help` and `certificates` load none of it."""

import contextlib
import datetime
import gc
import importlib.util
import logging
import os
import socket
import sys
import tempfile
import threading
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Protocol, TypeVar

from adapter import clock
from adapter.conditions import (
    AUTHENTICATION_SETTINGS,
    AUTOSCALERS,
    CUSTOM_UPSTREAM,
    LISTENING,
    SERVING_CERTIFICATE,
    UPSTREAM,
    Conditions,
)
from adapter.errors import AdapterError, SettingsInvalid
from adapter.history.notes import Note, NoteNow
from adapter.history.writer_election import process_name
from adapter.memory.keeper import Exchange
from adapter.overview.series import CONTENT_TYPE, GroupSeries
from adapter.reload.live_metrics import LiveMetrics
from adapter.reload.settings_watch import SettingsWatch
from adapter.repeating import Repeated
from adapter.settings.models import Settings
from adapter.telemetry import HistoryTelemetry, Telemetry
from apiservice import explanations
from apiservice.api_group import API_GROUPS, CUSTOM, EXTERNAL, registered
from apiservice.app import ApiServer, create_metrics_app
from apiservice.auth import cluster_settings
from apiservice.auth.callers import Callers
from apiservice.auth.cluster_settings import Authentication, AuthenticationFollower
from apiservice.autoscalers import followed
from apiservice.autoscalers.followed import Autoscalers
from apiservice.autoscalers.record import record_of
from apiservice.cluster_api import kept_text
from apiservice.cluster_api.connection import Client, authorization_of, connect
from apiservice.cluster_api.kinds import ClusterKinds
from apiservice.cluster_api.lease import Lease
from apiservice.cluster_api.objects import ClusterObjects
from apiservice.cluster_api.reviews import ClusterReviews
from apiservice.cluster_api.watch import Watch
from apiservice.flags import Flags, given_settings
from apiservice.hpa_threads import autoscalers_for, shadows_of, writers_for
from apiservice.http import health
from apiservice.http.group_series import GroupSeriesRoute
from apiservice.http.server import Listener, Stages, listen, place_of, serve
from apiservice.metrics_api.reads import MetricReads, Replies
from apiservice.pods.watches import PodWatches
from apiservice.registration.api_service import Service, service_of
from apiservice.registration.keeper import Registration
from apiservice.status_page.route import StatusPage
from apiservice.tls.certificates import PairFiles, ServingTls, self_signed_files
from apiservice.tls.issuing import service_names
from apiservice.upstream.live import Upstreams

if TYPE_CHECKING:
    from adapter.history.reading.patterns import Patterns
    from adapter.history.reading.recall import Recall
    from adapter.history.writer import HistoryWriter

logger = logging.getLogger(__name__)

Made = TypeVar("Made")

COLLECTOR_STOP_SECONDS = 5.0  # in parallel with the listeners' end, which takes about as long
HISTORY_STOP_SECONDS = 3.0  # after the collectors' end
LEASE_STOP_SECONDS = 1.0  # after that
MEMORY_STOP_SECONDS = 1.0  # after that
PART_STOP_SECONDS = 1.0  # of all other parts together, and of the Events after them; almost all end at once
FIRST_LIST_SECONDS = 5.0  # of HPAs, so that the first cycle reads what they ask for
GC_THRESHOLDS = 5_000, 10, 100  # a collection then takes 2 ms; of 50,000 new objects that live on, up to 20 ms
SWITCH_SECONDS = 0.0005
NO_HISTORY = (
    "history.location: a history needs pyarrow, which is not installed; use the image that"
    " `docker build --target history` builds, or install kafka-lag-adapter with the extra `history`"
)
NAMESPACE_FILE = Path("/var/run/secrets/kubernetes.io/serviceaccount/namespace")


@dataclass(frozen=True, slots=True)
class Prepared:
    settings: Settings
    client: Client
    tls: ServingTls
    service: Service | None
    secure_socket: socket.socket
    plain_socket: socket.socket


def run(flags: Flags, version: str, asked_to_end: threading.Event) -> None:
    """Serves until a signal, or ends soon if `asked_to_end` has noted one; raises SettingsInvalid with every problem of
    the flags and files."""
    with contextlib.ExitStack() as stack:
        telemetry = Telemetry()
        telemetry.show_build(version)
        is_hanging = _serve(_prepare(flags, stack), flags, telemetry, version, asked_to_end)
    if is_hanging:
        # The interpreter's exit would wait longer than we can: object-store libraries for pending requests, Python for
        # the threads of the upstream and those that make pages and replies.
        logging.shutdown()
        os._exit(0)


def _prepare(flags: Flags, stack: contextlib.ExitStack) -> Prepared:
    """Tries everything before reporting all problems."""
    problems: list[str] = []

    def tried(make: Callable[[], Made]) -> Made | None:
        try:
            return make()
        except AdapterError as error:
            problems.extend(error.problems if isinstance(error, SettingsInvalid) else [str(error)])
            return None

    settings = tried(lambda: _settings(flags))
    client = tried(lambda: connect(flags.kubeconfig))
    tls = tried(lambda: ServingTls(_serving_files(flags, stack)))
    secure = tried(lambda: stack.enter_context(listen(flags.bind_address, flags.secure_port)))
    service = tried(lambda: service_of(flags.service, _own_namespace()))
    plain = tried(lambda: stack.enter_context(_plain_socket(flags)))
    if problems or not (settings and client and tls and secure and plain):
        raise SettingsInvalid(tuple(problems))
    return Prepared(settings, client, tls, service, secure, plain)


def _plain_socket(flags: Flags) -> socket.socket:
    if flags.secure_port == flags.metrics_port != 0:
        raise SettingsInvalid((f"--secure-port and --metrics-port are both {flags.secure_port}; they must differ",))
    return listen(flags.metrics_bind_address, flags.metrics_port)


def _settings(flags: Flags) -> Settings:
    settings = given_settings(flags.config, flags.bootstrap_servers)
    if settings.history.location is not None and importlib.util.find_spec("pyarrow") is None:
        raise SettingsInvalid((NO_HISTORY,))
    return settings


def _serving_files(flags: Flags, stack: contextlib.ExitStack) -> PairFiles:
    match flags.tls_cert_file, flags.tls_private_key_file:
        case Path() as certificate, Path() as key:
            return PairFiles(certificate, key)
        case None, None:
            if (directory := flags.cert_dir) is None:
                temporary = tempfile.TemporaryDirectory(prefix="kafka-lag-adapter-", ignore_cleanup_errors=True)
                directory = Path(stack.enter_context(temporary))
            return self_signed_files(directory, _own_names(), datetime.datetime.now(datetime.UTC))
    raise SettingsInvalid(("--tls-cert-file and --tls-private-key-file must be used together",))


def _own_namespace() -> str | None:
    return NAMESPACE_FILE.read_text().strip() if NAMESPACE_FILE.is_file() else None


def _own_names() -> tuple[str, ...]:
    return (*service_names("kafka-lag-adapter", _own_namespace() or "default"), "localhost", "127.0.0.1")


def _serve(prepared: Prepared, flags: Flags, telemetry: Telemetry, version: str, asked_to_end: threading.Event) -> bool:
    """Serves until a signal; returns whether a thread still waits for the history's location or the upstream, or makes
    a page or a large reply."""
    settings, client, tls, conditions = prepared.settings, prepared.client, prepared.tls, telemetry.conditions
    conditions.expect(LISTENING, AUTHENTICATION_SETTINGS, SERVING_CERTIFICATE)
    telemetry.certificate_end.labels("serving").set_function(tls.ends_at)
    identity = process_name()
    lease = _lease(prepared, identity, conditions, lambda: history is not None or writers.are_needed)
    history = _history(settings, telemetry, identity, lease, lambda: _seen(autoscalers, metrics))
    keep = None if history is None else history.append
    metrics = LiveMetrics(settings, telemetry, clock, keep, _exchange(flags.last_commits_config_map, client))
    recall, patterns = _recall(metrics, conditions), _patterns(metrics, conditions)
    autoscalers = autoscalers_for(metrics)
    hpas = Watch(client, followed.PATH, autoscalers, conditions, AUTOSCALERS, consequence=followed.CONSEQUENCE)
    shadows = shadows_of(autoscalers, metrics, telemetry)
    changes = SettingsWatch(flags.config, metrics, telemetry, clock, hpas.list_again) if flags.config else None
    authorization = partial(authorization_of, client)
    upstreams = (
        Upstreams((EXTERNAL,), UPSTREAM, lambda: metrics.settings.upstream, authorization, conditions),
        Upstreams(CUSTOM, CUSTOM_UPSTREAM, lambda: metrics.settings.custom_metrics.upstream, authorization, conditions),
    )
    series, pods = _series(metrics, conditions), PodWatches(client, lambda: autoscalers.namespaces_of_pods, conditions)
    page, reviews = StatusPage(metrics, autoscalers, conditions, identity, version, pods.of), ClusterReviews(client)
    callers, stopping = Callers(reviews), threading.Event()
    is_leader, objects = (lambda: True) if lease is None else lease.is_held, ClusterObjects(client)
    writers = writers_for(autoscalers, metrics, pods.of, is_leader, objects, identity, prepared.service, telemetry)
    of_both_ports = health.routes(conditions, stopping, telemetry.exposition, series.router)
    replies, kinds = Replies(clock.monotonic), ClusterKinds(client)
    api = ApiServer(
        [MetricReads(group, lambda: metrics.current, replies, pods.of, kinds.of) for group in API_GROUPS],
        callers,
        of_both_ports,
        count_read=telemetry.count_read,
        version=version,
        upstreams=upstreams,
        others=(explanations.routes(_explain(metrics, autoscalers, pods), replies), page.router),
    )
    authentication = _authentication(client, tls, callers, conditions)
    is_managing = prepared.service is not None and flags.tls_cert_file is None and flags.cert_dir is None
    registration = _registration(prepared, flags, metrics, telemetry, tls if is_managing else None)
    # Where the Secret is the source, the files hold only the bootstrap pair.
    reloading = None if is_managing else Repeated("serving-certificate", partial(tls.reload, conditions))
    beside = (authentication, hpas, pods, *upstreams, registration, reloading, *writers, recall, patterns, shadows)
    # The history includes the final cycle, and another replica continues it afterwards.
    collecting = (
        (changes, COLLECTOR_STOP_SECONDS),
        (metrics, COLLECTOR_STOP_SECONDS),
        (history, HISTORY_STOP_SECONDS),
        (lease, LEASE_STOP_SECONDS),
    )
    end_of_collecting = threading.Thread(target=_stop, args=collecting, name="stop-collectors")

    def on_started() -> None:
        places = f"serving on {_place(prepared.secure_socket)}, metrics on {_place(prepared.plain_socket)}"
        conditions.holds(LISTENING, details=places)
        _favour_readers()

    def on_stopping() -> None:
        logger.info("stopping: unready, serving for %g s more", flags.shutdown_delay_duration)
        stopping.set()

    _start(*beside, page, lease, history, metrics.memory)
    hpas.has_tried.wait(FIRST_LIST_SECONDS)
    _start(metrics, changes)
    serve(
        (
            Listener(prepared.secure_socket, api, tls.context),
            Listener(prepared.plain_socket, create_metrics_app(of_both_ports)),
        ),
        Stages(on_started, on_stopping, end_of_collecting.start, flags.shutdown_delay_duration, asked_to_end),
    )
    making = (page, replies.thread, series.thread)
    others = [part for part in (*beside, *making) if part is not None and part is not writers.events]
    stop_together(others, writers.events, PART_STOP_SECONDS)
    reviews.close()
    kinds.close()
    end_of_collecting.join()
    metrics.memory.stop(MEMORY_STOP_SECONDS)
    logger.info("stopped")
    return any(each is not None and each.is_hanging for each in (*upstreams, history, recall, patterns, *making))


class _Starting(Protocol):
    def start(self) -> None: ...


class _Stopping(Protocol):
    def stop(self, timeout_seconds: float) -> None: ...


def _start(*parts: _Starting | None) -> None:
    for part in parts:
        if part is not None:
            part.start()


def _stop(*parts: tuple[_Stopping | None, float]) -> None:
    """Stops one after the other, each within its seconds."""
    for part, seconds in parts:
        if part is not None:
            part.stop(seconds)


def stop_together(parts: Sequence[_Stopping], events: _Stopping, timeout_seconds: float) -> None:
    """Stops all at the same time, so that the end takes as long as that of the slowest; then what posts the Events that
    they have left. In threads, because some parts wait for several others of their own."""
    with ThreadPoolExecutor(len(parts), thread_name_prefix="stop") as threads:
        stopping = [threads.submit(part.stop, timeout_seconds) for part in parts]
    events.stop(timeout_seconds)
    for ended in stopping:
        ended.result()


def _exchange(config_map: str | None, client: Client) -> Exchange | None:
    """`config_map` is a name in the pod's own namespace, or NAMESPACE/NAME."""
    if config_map is None:
        return None
    namespace, _, name = config_map.rpartition("/")
    return partial(kept_text.exchange, client, namespace or _own_namespace() or "default", name)


def _registration(
    prepared: Prepared, flags: Flags, metrics: LiveMetrics, telemetry: Telemetry, managed: ServingTls | None
) -> Registration | None:
    """Returns None if there is no Service through which kube-apiserver could reach this process."""
    if prepared.service is None:
        return None
    return Registration(
        ClusterObjects(prepared.client),
        prepared.service,
        managed,
        telemetry,
        may_register=flags.register,
        groups=lambda: registered(custom_metrics=metrics.settings.custom_metrics.register_services),
    )


def _explain(metrics: LiveMetrics, autoscalers: Autoscalers, pods: PodWatches) -> explanations.Explain:
    return lambda group, namespace: explanations.explained(
        group, metrics.current, metrics.settings, clock, autoscalers.current, namespace, pods.of
    )


def _series(metrics: LiveMetrics, conditions: Conditions) -> GroupSeriesRoute:
    series = GroupSeries(lambda: metrics.current, lambda: metrics.settings.series, conditions)
    return GroupSeriesRoute(series.written, CONTENT_TYPE)


def _lease(prepared: Prepared, identity: str, conditions: Conditions, is_needed: Callable[[], bool]) -> Lease | None:
    """Returns None if there is only this process; each process is another holder."""
    service = prepared.service
    if service is None:
        return None
    objects = ClusterObjects(prepared.client)
    return Lease(objects, service.namespace, service.lease, identity, conditions, is_needed=is_needed)


def _seen(autoscalers: Autoscalers, metrics: LiveMetrics) -> Note | None:
    """Returns the HPAs that the history keeps; None before they were listed."""
    if not autoscalers.is_listed:
        return None
    current, clusters = metrics.current, (cluster.name for cluster in metrics.settings.clusters)
    return record_of(autoscalers.current, clusters, current, clock.time())


def _history(
    settings: Settings, telemetry: Telemetry, writer: str, lease: Lease | None, autoscalers: NoteNow
) -> "HistoryWriter | None":
    """pyarrow is loaded only here, because it is needed only with a history."""
    if settings.history.location is None:
        return None
    from adapter.history.files import files_at  # noqa: PLC0415 - see above
    from adapter.history.writer import HistoryWriter  # noqa: PLC0415 - see above

    files, own = files_at(settings.history.location), HistoryTelemetry(telemetry)
    return HistoryWriter(settings.history, files, own, clock, writer, lease, clock.boot_id(), autoscalers)


def _recall(metrics: LiveMetrics, conditions: Conditions) -> "Recall | None":
    if metrics.settings.history.location is None:
        return None
    from adapter.history.files import files_at  # noqa: PLC0415 - as for the writer
    from adapter.history.reading.recall import Recall  # noqa: PLC0415 - as for the writer

    files, interval = files_at(metrics.settings.history.location), metrics.settings.collection.interval
    return Recall(files, lambda: metrics.collectors, interval, conditions, clock, clock.boot_id())


def _patterns(metrics: LiveMetrics, conditions: Conditions) -> "Patterns | None":
    if metrics.settings.history.location is None:
        return None
    from adapter.history.files import files_at  # noqa: PLC0415 - as for the writer
    from adapter.history.reading.patterns import Patterns  # noqa: PLC0415 - as for the writer

    patterns = Patterns(files_at(metrics.settings.history.location), conditions, clock)
    metrics.follow_patterns(patterns.of)
    return patterns


def _favour_readers() -> None:
    """Keeps a cycle's garbage collection and thread switches from delaying reads in the same process."""
    # Existing objects live as long as the process and need no further collection.
    gc.collect()
    gc.freeze()
    gc.set_threshold(*GC_THRESHOLDS)
    # A read waits this long each time it must take the interpreter back.
    sys.setswitchinterval(SWITCH_SECONDS)


def _authentication(client: Client, tls: ServingTls, callers: Callers, conditions: Conditions) -> Watch:
    follower, one_object = AuthenticationFollower(partial(_trust, tls, callers)), (cluster_settings.ONE_NAME,)
    return Watch(client, cluster_settings.PATH, follower, conditions, AUTHENTICATION_SETTINGS, query=one_object)


def _trust(tls: ServingTls, callers: Callers, authentication: Authentication) -> None:
    tls.trust(authentication)
    callers.trust(authentication)


def _place(listening: socket.socket) -> str:
    return place_of(*listening.getsockname()[:2])
