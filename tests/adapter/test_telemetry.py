"""The adapter's own metrics, as Prometheus scrapes them."""

import re

import pytest
from prometheus_client.parser import text_string_to_metric_families

from adapter.telemetry import Telemetry


def samples_of(telemetry: Telemetry) -> dict[tuple[str, frozenset[str]], float]:
    """(name, values of its labels) -> value, without the times at which counters were made."""
    text, _ = telemetry.exposition()
    return {
        (sample.name, frozenset(sample.labels.values())): sample.value
        for family in text_string_to_metric_families(text.decode())
        for sample in family.samples
        if not sample.name.endswith("_created")
    }


def test_cycles_are_counted_by_outcome_and_timed() -> None:
    telemetry = Telemetry()
    telemetry.count_cycle("main", "complete", 0.02)
    telemetry.count_cycle("main", "complete", 3.0)
    telemetry.count_cycle("main", "failed", 3.0)
    shown = samples_of(telemetry)

    assert shown["kafka_lag_adapter_cycles_total", frozenset({"main", "complete"})] == 2
    assert shown["kafka_lag_adapter_cycles_total", frozenset({"main", "failed"})] == 1
    assert shown["kafka_lag_adapter_cycle_duration_seconds_sum", frozenset({"main"})] == pytest.approx(6.02)
    assert shown["kafka_lag_adapter_cycle_duration_seconds_bucket", frozenset({"main", "0.025"})] == 1


def test_errors_requests_and_reads_are_counted_by_their_kind() -> None:
    telemetry = Telemetry()
    telemetry.errors.labels("main", "timed_out").inc()
    for _ in range(3):
        telemetry.count_request("main", "OffsetFetch")
    telemetry.count_read("kafka_consumergroup_lag", 503)
    shown = samples_of(telemetry)

    assert shown["kafka_lag_adapter_broker_errors_total", frozenset({"main", "timed_out"})] == 1
    assert shown["kafka_lag_adapter_broker_requests_total", frozenset({"main", "OffsetFetch"})] == 3
    assert shown["kafka_lag_adapter_reads_total", frozenset({"kafka_consumergroup_lag", "503"})] == 1


def test_rows_are_those_of_the_newest_cycle() -> None:
    telemetry = Telemetry()
    for rows in (5, 6):
        telemetry.rows.labels("main", "ok").set(rows)

    assert samples_of(telemetry)["kafka_lag_adapter_partitions", frozenset({"main", "ok"})] == 6


def test_age_is_asked_for_when_it_is_scraped() -> None:
    telemetry = Telemetry()
    ages = iter([4.0, 14.0])
    telemetry.age.labels("main").set_function(lambda: next(ages))

    assert samples_of(telemetry)["kafka_lag_adapter_age_seconds", frozenset({"main"})] == 4
    assert samples_of(telemetry)["kafka_lag_adapter_age_seconds", frozenset({"main"})] == 14


def test_the_exposition_is_prometheus_text_and_each_telemetry_has_its_own() -> None:
    one, other = Telemetry(), Telemetry()
    one.count_read("x", 200)
    _, content_type = one.exposition()

    assert re.match(r"text/plain; version=", content_type)
    assert ("kafka_lag_adapter_reads_total", frozenset({"x", "200"})) in samples_of(one)
    assert not any(name.startswith("kafka_lag_adapter_reads") for name, _ in samples_of(other))


def test_the_version_and_the_process_are_shown() -> None:
    telemetry = Telemetry()
    telemetry.show_build("0.1.0")
    shown = samples_of(telemetry)

    assert shown["kafka_lag_adapter_build_info", frozenset({"0.1.0"})] == 1
    assert shown["process_resident_memory_bytes", frozenset()] > 1e6
