"""What state the adapter is in: conditions in the style of Kubernetes, each defined once, here.

Components set them; the log (one line per change), `/readyz?verbose` and a gauge show them."""

import logging
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from enum import StrEnum
from threading import Lock

from prometheus_client.metrics_core import GaugeMetricFamily

from adapter import clock
from adapter.errors import one_line

logger = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Definition:
    """A condition, and its reason and message while it holds."""

    name: str
    reason: str
    message: str


LISTENING = Definition("listening", "Serving", "the ports accept requests")
AUTHENTICATION_SETTINGS = Definition("authentication-settings", "Read", "the CAs of callers are known")
SERVING_CERTIFICATE = Definition("serving-certificate", "Served", "the newest certificate is served")
VALUES = Definition("values", "Complete", "everything could be read")
CREDENTIALS = Definition("credentials", "Used", "the newest credentials are used")
TOPIC_IDS = Definition("topic-ids", "Reported", "a topic that is created again has another id")
SETTINGS = Definition("settings", "InForce", "the newest settings are in force")
MEMORY = Definition("memory", "Kept", "what is remembered of groups is kept over restarts")
FORECASTS = Definition("forecasts", "Read", "the weekly patterns of groups with a forecast have been read")
HISTORY_PAST = Definition("history-past", "Read", "what moved before the start has been read back")
HISTORY = Definition("history", "Written", "all rows that are due are written")
HISTORY_ROWS = Definition("history-rows", "Kept", "no row is dropped")
HISTORY_RETENTION = Definition("history-retention", "Deleted", "old days are deleted")
LEADER = Definition("leader", "Elected", "one replica does what only one may do")
FALLBACKS = Definition("fallbacks", "NotUsed", "every number of replicas follows from the lag")
DEMAND = Definition("demand", "ByReplicas", "replicas can keep the promises of all groups that are asked for")
AUTOSCALERS = Definition("autoscalers", "Read", "HPAs can be read")
AUTOSCALER_CHANGES = Definition("autoscaler-changes", "Written", "what annotations of HPAs ask for is done")
AUTOSCALER_EVENTS = Definition("autoscaler-events", "Posted", "Events about HPAs reach kube-apiserver")
PODS = Definition("pods", "Read", "pods of HPAs with Pods metrics can be read")
API_SERVICE = Definition("api-service", "Registered", "kube-apiserver reads metrics here")
SERIES = Definition("series", "Complete", "every group has its series")
UPSTREAM = Definition("upstream", "Available", "the other server answers")
CUSTOM_UPSTREAM = Definition("custom-metrics-upstream", "Available", "the other server of custom metrics answers")


class ConditionStatus(StrEnum):
    TRUE = "true"
    FALSE = "false"
    UNKNOWN = "unknown"


@dataclass(frozen=True, slots=True)
class Condition:
    name: str
    status: ConditionStatus
    reason: str
    """A word in CamelCase."""
    message: str
    """Anybody may read it, so it contains no messages of other servers and no value of the settings."""
    changed_at: float
    """When the status or the reason last changed, in seconds since the epoch."""
    cluster: str = ""
    """The Kafka cluster that it is about, if it is about one."""
    details: str = ""
    """For the log alone."""

    @property
    def subject(self) -> str:
        return f"{self.name} of cluster {self.cluster}" if self.cluster else self.name


class Conditions:
    """Any thread may call it; it is a collector of prometheus_client."""

    def __init__(self, time: Callable[[], float] = clock.time) -> None:
        self._time = time
        self._lock = Lock()
        self._reporting = Lock()
        """Held from the look at what was before until the change is visible, so that the log has changes in order."""
        self._current: dict[tuple[str, str], Condition] = {}
        self._required: set[str] = set()

    @property
    def current(self) -> tuple[Condition, ...]:
        with self._lock:
            return tuple(self._current.values())

    @property
    def checks(self) -> dict[str, bool]:
        """Returns what was expected, and whether it is known now."""
        unknown = {each.name for each in self.current if each.status is ConditionStatus.UNKNOWN}
        return {each.name: each.name not in unknown for each in self.current if each.name in self._required}

    def expect(self, *definitions: Definition, cluster: str = "") -> None:
        """Makes the process unready while one of these is unknown, which they are until they are set."""
        self._required |= {each.name for each in definitions}
        for name in (each.name for each in definitions):
            unknown = Condition(name, ConditionStatus.UNKNOWN, "NotKnownYet", "not known yet", self._time(), cluster)
            with self._lock:
                self._current[name, cluster] = unknown

    def holds(self, definition: Definition, message: str = "", *, details: str = "", cluster: str = "") -> None:
        name, reason, message = definition.name, definition.reason, message or definition.message
        self._set(Condition(name, ConditionStatus.TRUE, reason, message, self._time(), cluster, details))

    def fails(
        self,
        definition: Definition,
        reason: str,
        message: str,
        *,
        details: str = "",
        cluster: str = "",
        status: ConditionStatus = ConditionStatus.FALSE,
    ) -> bool:
        """Returns whether this is a change."""
        return self._set(Condition(definition.name, status, reason, message, self._time(), cluster, details))

    def forget(self, *, name: str | None = None, cluster: str | None = None) -> None:
        """Removes the conditions of this name, or of a cluster that is no longer read."""
        # Otherwise a change that is just being logged would bring one back.
        with self._reporting, self._lock:
            for key in [key for key in self._current if key[0] == name or key[1] == cluster]:
                del self._current[key]

    def collect(self) -> Iterator[GaugeMetricFamily]:
        name, labels = "kafka_lag_adapter_condition", ("condition", "cluster", "status")
        family = GaugeMetricFamily(name, "1 for the status that a condition has, 0 for the others.", labels=labels)
        for each in self.current:
            for status in ConditionStatus:
                family.add_metric((each.name, each.cluster, status), float(each.status is status))
        yield family

    def _set(self, condition: Condition) -> bool:
        # Details have messages of other servers, and a message may name those who wrote an APIService.
        condition = replace(condition, message=one_line(condition.message), details=one_line(condition.details))
        key = condition.name, condition.cluster
        with self._reporting:
            with self._lock:
                before = self._current.get(key)
            if before is not None and (before.status, before.reason) == (condition.status, condition.reason):
                condition = replace(condition, changed_at=before.changed_at)
            if condition == before:
                return False
            # Before others can see it: readiness says that the log has details.
            _log(condition)
            with self._lock:
                self._current[key] = condition
        return True


def _log(condition: Condition) -> None:
    level = logging.INFO if condition.status is ConditionStatus.TRUE else logging.WARNING
    details = f": {condition.details}" if condition.details else ""
    logger.log(level, "%s: %s: %s%s", one_line(condition.subject), condition.reason, condition.message, details)
