"""What the adapter shows of itself: metrics about collecting and serving, and its conditions."""

from functools import partial

from prometheus_client import (
    CollectorRegistry,
    Counter,
    Gauge,
    Histogram,
    ProcessCollector,
    disable_created_metrics,
    generate_latest,
)
from prometheus_client.exposition import CONTENT_TYPE_LATEST

from adapter.conditions import Conditions


class Telemetry:
    """One registry per object, so that tests and several servers do not collide."""

    def __init__(self) -> None:
        # Otherwise each counter has a second series that nothing reads.
        disable_created_metrics()  # type: ignore[no-untyped-call]  # the library leaves this one out
        self.registry = CollectorRegistry()
        counter = partial(Counter, registry=self.registry)
        gauge = partial(Gauge, registry=self.registry)
        histogram = partial(Histogram, registry=self.registry)
        self._cycles = counter(
            "kafka_lag_adapter_cycles",
            "Collection cycles by outcome: complete (every row read), partial (some), failed (none).",
            ["cluster", "outcome"],
        )
        self._duration = histogram(
            "kafka_lag_adapter_cycle_duration_seconds",
            "How long a collection cycle took, waiting for brokers included.",
            ["cluster"],
            buckets=(0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10),
        )
        self.gap = histogram(
            "kafka_lag_adapter_commit_to_end_seconds",
            "From receiving the commits of some groups to requesting their log ends; pairs beyond 0.5 s are not used.",
            ["cluster"],
            buckets=(0.001, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5),
        )
        self.age = gauge(
            "kafka_lag_adapter_age_seconds",
            "Age of the oldest row of group and partition, also if it is refused by now; NaN while there is none.",
            ["cluster"],
        )
        self.rows = gauge(
            "kafka_lag_adapter_partitions",
            "Rows of group and partition in the newest cycle, by state.",
            ["cluster", "state"],
        )
        self.errors = counter(
            "kafka_lag_adapter_broker_errors", "Requests to brokers that failed, by cause.", ["cluster", "cause"]
        )
        self.last_success = gauge(
            "kafka_lag_adapter_last_success_timestamp_seconds",
            "When a cycle last read every row (Unix time); 0 before the first time.",
            ["cluster"],
        )
        self._requests = counter(
            "kafka_lag_adapter_broker_requests",
            "Requests sent to brokers, by Kafka's name for them; the library's own are not counted.",
            ["cluster", "request"],
        )
        self._reads = counter(
            "kafka_lag_adapter_reads", "Reads of metrics, by metric and HTTP status.", ["metric", "code"]
        )
        self._events = counter("kafka_lag_adapter_hpa_events", "Events about HPAs, by their reason.", ["reason"])
        self.certificate_end = gauge(
            "kafka_lag_adapter_certificate_expiration_timestamp_seconds",
            "When the serving certificate, and the CA if the adapter manages it, expire (Unix time).",
            ["certificate"],
        )
        self.api_services = gauge(
            "kafka_lag_adapter_api_service",
            "Whether an APIService is ours, and whether it is available to kube-apiserver; NaN if it cannot be read.",
            ["api_service", "state"],
        )
        self._build = gauge("kafka_lag_adapter_build_info", "1, with the version as a label.", ["version"])
        self.settings_changes = counter(
            "kafka_lag_adapter_settings_changes",
            "Changes of the settings file, by outcome: taken_over or refused.",
            ["outcome"],
        )
        self.conditions = Conditions()
        self.registry.register(self.conditions)
        ProcessCollector(registry=self.registry)

    def show_build(self, version: str) -> None:
        self._build.labels(version).set(1)

    def count_cycle(self, cluster: str, outcome: str, seconds: float) -> None:
        self._cycles.labels(cluster, outcome).inc()
        self._duration.labels(cluster).observe(seconds)

    def count_request(self, cluster: str, request: str) -> None:
        self._requests.labels(cluster, request).inc()

    def count_read(self, metric: str, code: int) -> None:
        self._reads.labels(metric, code).inc()

    def count_event(self, reason: str) -> None:
        self._events.labels(reason).inc()

    def forget(self, cluster: str) -> None:
        """Removes the series of a cluster that is no longer read."""
        of_clusters = (self._cycles, self._duration, self.gap, self.age, self.rows, self.errors, self._requests)
        for metric in (*of_clusters, self.last_success):
            metric.remove_by_labels({"cluster": cluster})
        self.conditions.forget(cluster=cluster)

    def exposition(self) -> tuple[bytes, str]:
        return generate_latest(self.registry), CONTENT_TYPE_LATEST


class HistoryTelemetry:
    """Metrics about the history, which exist only if one is kept."""

    def __init__(self, telemetry: Telemetry) -> None:
        self.conditions = telemetry.conditions
        counter, gauge = partial(Counter, registry=telemetry.registry), partial(Gauge, registry=telemetry.registry)
        self._files = counter("kafka_lag_adapter_history_files", "Files of the history written.")
        self._rows = counter("kafka_lag_adapter_history_rows", "Rows of the history written.")
        self._bytes = counter("kafka_lag_adapter_history_bytes", "Bytes of the history written.")
        self.dropped = counter(
            "kafka_lag_adapter_history_dropped_rows",
            "Rows of the history lost: no room was left for them while they waited to be written.",
        )
        self.failures = counter(
            "kafka_lag_adapter_history_failures",
            "Writes to the history's location that failed, by cause; what could not be written is tried again.",
            ["cause"],
        )
        self.age = gauge(
            "kafka_lag_adapter_history_flush_age_seconds",
            "Seconds since everything that was due had been written; before the first time, since the start.",
        )
        self.is_writer = gauge(
            "kafka_lag_adapter_history_writer", "1 if this replica writes the history; 0 if another one does, or none."
        )
        self.buffered = gauge("kafka_lag_adapter_history_buffered_rows", "Rows of the history not written yet.")

    def count_file(self, rows: int, size: int) -> None:
        self._files.inc()
        self._rows.inc(rows)
        self._bytes.inc(size)
