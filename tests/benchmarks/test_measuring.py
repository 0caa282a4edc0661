"""The benchmarks' arithmetic and reading of files; what they measure is measured on real parts by `make bench`."""

import json
from collections import Counter

from benchmarks.brokers.request_log import LOG_STARTS, kinds_in
from benchmarks.measuring.samples import median_ratio, percentile
from benchmarks.measuring.window import Window


def logged(kind: str, client: str = "kafka-lag-adapter", timestamps: tuple[int, ...] = ()) -> str:
    """A line as a broker's request log has it."""
    partitions = [{"partitionIndex": index, "timestamp": timestamp} for index, timestamp in enumerate(timestamps)]
    content = {
        "requestHeader": {"requestApiKeyName": kind, "clientId": client},
        "request": {"topics": [{"name": "orders", "partitions": partitions}]},
    }
    return f"12:00:00.000 DEBUG logger - Completed request:{json.dumps(content)}"


def test_a_percentile_lies_between_its_two_nearest_samples() -> None:
    assert percentile([4.0, 1.0, 2.0, 3.0], 50) == 2.5
    assert percentile([float(number) for number in range(101)], 99) == 99.0


def test_a_ratio_is_taken_round_by_round() -> None:
    """A machine that is ten times slower in one round changes no ratio."""
    assert median_ratio([2.0, 20.0, 3.0], [1.0, 10.0, 1.0]) == 2.0


def test_requests_are_counted_by_kind_for_the_adapter_alone() -> None:
    lines = [
        "12:00:00.000 INFO  KafkaRaftServer - started",
        logged("METADATA"),
        logged("FETCH", client="broker-2-fetcher-0"),
        logged("LIST_OFFSETS", timestamps=(-1, -1)),
        logged("LIST_OFFSETS", timestamps=(-2, -2)),
        logged("LIST_OFFSETS", timestamps=(-2, -1)),
    ]

    assert kinds_in(lines) == Counter({"METADATA": 1, "LIST_OFFSETS": 2, LOG_STARTS: 1})


def test_a_window_distinguishes_offset_requests_from_all_others() -> None:
    requests = Counter({"OFFSET_FETCH": 36, "LIST_OFFSETS": 36, LOG_STARTS: 6, "METADATA": 2})
    window = Window(cycles=12, seconds=120.0, requests=requests, connections=3, cpu_seconds=1.0, reads=800)

    assert window.offset_requests_per_cycle == 6.0
    assert window.others_per_minute == {LOG_STARTS: 3.0, "METADATA": 1.0}
    assert window.requests_per_minute == 40.0
