"""Watches the pods of each namespace in which an HPA has a Pods metric, with a thread for each.

What the watches report is one condition: the pods of all these namespaces can be read."""

from collections.abc import Callable, Collection
from threading import Lock
from typing import NamedTuple

from adapter import clock
from adapter.conditions import PODS, Conditions, ConditionStatus, Definition
from adapter.repeating import Repeating
from apiservice.cluster_api.connection import Client
from apiservice.cluster_api.watch import Watch
from apiservice.pods.followed import FollowedPods
from apiservice.pods.pod import Pod

LOOK_SECONDS = 0.5
MOST_NAMESPACES = 100
"""Each takes a thread and a connection to kube-apiserver."""
CONSEQUENCE = "Pods metrics of their namespaces are refused"


class PodWatches(Repeating):
    """`wanted` returns the namespaces whose pods are asked for."""

    def __init__(self, client: Client, wanted: Callable[[], Collection[str]], conditions: Conditions) -> None:
        super().__init__("pod-watches", is_nice=True)
        self._client = client
        self._wanted = wanted
        self._report = _Report(conditions)
        self._running: dict[str, tuple[Watch, FollowedPods]] = {}

    def of(self, namespace: str) -> tuple[Pod, ...] | None:
        """Returns all pods of the namespace; None if they are not known. Any thread may call it."""
        running = self._running.get(namespace)
        return None if running is None else running[1].current

    def turn(self) -> float:
        wanted = set(self._wanted())
        for namespace in self._running.keys() - wanted:
            self._end(namespace, 0.0)
        # Those that are watched come first, so that a new HPA takes no pods from the HPAs of others.
        for namespace in sorted(wanted - self._running.keys())[: MOST_NAMESPACES - len(self._running)]:
            self._begin(namespace)
        return LOOK_SECONDS

    def stop(self, timeout_seconds: float) -> None:
        ends_at = clock.monotonic() + timeout_seconds
        super().stop(timeout_seconds)
        for watch, _ in self._running.values():
            watch.stop(0.0)  # all at the same time; then each is waited for
        for namespace in list(self._running):
            self._end(namespace, max(ends_at - clock.monotonic(), 0.0))

    def _begin(self, namespace: str) -> None:
        pods = FollowedPods()
        watch = Watch(
            self._client, path_of(namespace), pods, _OfNamespace(self._report, namespace), PODS, consequence=CONSEQUENCE
        )
        self._running = {**self._running, namespace: (watch, pods)}
        self._report.begin(namespace)
        watch.start()

    def _end(self, namespace: str, timeout_seconds: float) -> None:
        running = dict(self._running)
        watch, _ = running.pop(namespace)
        self._running = running
        watch.stop(timeout_seconds)
        self._report.forget(namespace)


class _Failure(NamedTuple):
    reason: str
    message: str
    details: str
    status: ConditionStatus


class _Report:
    """Makes one condition of those of all namespaces: of those that fail, the one that is watched longest counts."""

    def __init__(self, conditions: Conditions) -> None:
        self._conditions = conditions
        self._lock = Lock()
        self._watched: set[str] = set()
        self._failures: dict[str, _Failure | None] = {}
        """Namespace -> why its pods cannot be read; None: they can be."""

    def begin(self, namespace: str) -> None:
        with self._lock:
            self._watched.add(namespace)

    def note(self, namespace: str, failure: _Failure | None) -> bool:
        """Returns whether this is a change. A watch that was ended may still have something to report."""
        with self._lock:
            if namespace not in self._watched:
                return False
            self._failures[namespace] = failure
            return self._set()

    def forget(self, namespace: str) -> None:
        with self._lock:
            self._watched.discard(namespace)
            self._failures.pop(namespace, None)
            self._set()

    def _set(self) -> bool:
        failure = next((each for each in self._failures.values() if each is not None), None)
        if failure is not None:
            reason, message, details, status = failure
            return self._conditions.fails(PODS, reason, message, details=details, status=status)
        if self._failures:
            self._conditions.holds(PODS)
        else:
            self._conditions.forget(name=PODS.name)
        return False


class _OfNamespace:
    """What the watch of one namespace reports to, in place of the conditions."""

    def __init__(self, report: _Report, namespace: str) -> None:
        self._report, self._namespace = report, namespace

    def holds(self, _definition: Definition) -> None:
        self._report.note(self._namespace, None)

    def fails(
        self, _definition: Definition, reason: str, message: str, *, details: str = "", status: ConditionStatus
    ) -> bool:
        return self._report.note(self._namespace, _Failure(reason, message, details, status))


def path_of(namespace: str) -> str:
    """Returns that of the namespace's pods."""
    return f"/api/v1/namespaces/{namespace}/pods"
