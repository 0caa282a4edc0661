"""The benchmarks' arithmetic and reading of files; what they measure is measured on real parts by `make bench`."""

import json
from collections import Counter
from urllib.parse import parse_qs, urlsplit

import pytest

from apiservice.metrics_api.label_selector import parse
from benchmarks.brokers.request_log import LOG_STARTS, kinds_in
from benchmarks.cycles.cost import cost_rows
from benchmarks.cycles.timed import Cost
from benchmarks.measuring.heartbeat import beats_in, longest_stretch
from benchmarks.measuring.machine import processor
from benchmarks.measuring.samples import established_to, median_ratio, percentile
from benchmarks.measuring.tables import BEGIN, END, Table, Verdict, markdown, row, with_figures
from benchmarks.measuring.window import Window
from benchmarks.rig.cluster import read_path, selector_of
from benchmarks.rig.load import is_whole
from benchmarks.rig.paced_reads import Read


def logged(kind: str, client: str = "kafka-lag-adapter", timestamps: tuple[int, ...] = ()) -> str:
    """A line as a broker's request log has it."""
    partitions = [{"partitionIndex": index, "timestamp": timestamp} for index, timestamp in enumerate(timestamps)]
    content = {
        "requestHeader": {"requestApiKeyName": kind, "clientId": client},
        "request": {"topics": [{"name": "orders", "partitions": partitions}]},
    }
    return f"12:00:00.000 DEBUG logger - Completed request:{json.dumps(content)}"


def test_no_samples_have_no_percentile() -> None:
    with pytest.raises(ValueError, match="no samples"):
        percentile([], 50)


def test_a_percentile_lies_between_its_two_nearest_samples() -> None:
    assert percentile([4.0, 1.0, 2.0, 3.0], 50) == 2.5
    assert percentile([float(number) for number in range(101)], 99) == 99.0


def test_a_ratio_is_taken_round_by_round() -> None:
    """A machine that is ten times slower in one round changes no ratio."""
    assert median_ratio([2.0, 20.0, 3.0], [1.0, 10.0, 1.0]) == 2.0


def test_only_established_connections_to_the_ports_count() -> None:
    def line(remote_port: int, state: str, inode: str) -> str:
        return f"0: 0100007F:D431 0100007F:{remote_port:04X} {state} 0:0 00:0 0 0 0 {inode} 1"

    lines = [
        "  sl  local_address rem_address   st tx_queue rx_queue tr tm->when retrnsmt   uid  timeout inode",
        line(9092, "01", "11"),
        line(9092, "06", "12"),
        line(9093, "01", "13"),
        "",
    ]

    assert established_to(lines, {9092}) == {"11"}


@pytest.mark.parametrize(
    ("answer", "expected"),
    [
        (b"HTTP/1.1 200 OK\r\nContent-Le", False),
        (b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n{", False),
        (b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n{}", True),
        (b"HTTP/1.1 200 OK\r\ncontent-length: 0\r\nx: y\r\n\r\n", True),
        (b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n2\r\n{}\r\n", False),
        (b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n2\r\n{}\r\n0\r\n\r\n", True),
    ],
)
def test_an_answer_is_whole_when_its_last_byte_is_there(answer: bytes, *, expected: bool) -> None:
    assert is_whole(answer) is expected


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


def test_a_goal_is_met_up_to_its_limit() -> None:
    assert row("requests", 6.0, 6).verdict is Verdict.MET
    assert row("requests", 6.01, 6).verdict is Verdict.MISSED
    assert row("requests", 6.01).verdict is Verdict.NO_GOAL


def test_a_miss_is_as_visible_as_the_rest() -> None:
    text = markdown(Table("Requests", "Counted.", (row("per cycle", 7.0, 6, form=".1f"),)))

    assert text.splitlines()[-1] == "| per cycle | 7.0 | ≤ 6 | **missed** |"


def test_only_what_is_between_the_marks_of_a_page_is_replaced() -> None:
    page = f"# Page\n{BEGIN}\nold\n{END}\nrest\n"

    assert with_figures(page, "new\n") == f"# Page\n{BEGIN}\n\nnew\n\n{END}\nrest\n"
    with pytest.raises(ValueError, match="no lines"):
        with_figures("# Page\n", "new")


def test_the_url_of_a_read_asks_for_the_groups_own_labels() -> None:
    (selector,) = parse_qs(urlsplit(read_path("b-group-007")).query)["labelSelector"]

    assert {each.key: each.only for each in parse(selector)} == {
        key: frozenset({value}) for key, value in selector_of("b-group-007").items()
    }


def test_the_processor_is_named_where_the_system_names_it() -> None:
    assert processor("processor\t: 0\nmodel name\t: Some CPU\n") == "Some CPU"
    assert processor("processor\t: 0\n") != ""


def test_a_cycle_that_reads_metadata_has_a_row_and_a_verdict_of_its_own() -> None:
    cycles = [Cost(0.1, 0.1), Cost(0.1, 0.1), Cost(0.3, 0.4, is_looking=True)]
    rows = cost_rows("here", cycles, [Cost(1.0, 2.0)], 200)

    assert [(each.figure.split()[0], each.verdict) for each in rows[:2]] == [
        ("100", Verdict.MET),
        ("300", Verdict.MISSED),
    ]
    assert rows[-1].figure == "0.10x"


def test_a_late_beat_counts_where_it_reaches_into_the_time_that_is_looked_at() -> None:
    beats = beats_in(["1.0 0.5", "3.0 0.2", "4.0 0.1", "5"])

    assert longest_stretch(beats, 1.2, 3.5) == 0.5
    assert longest_stretch(beats, 1.6, 3.5) == 0.2
    assert longest_stretch(beats, 5.0, 6.0) == 0.0


def test_a_read_is_as_old_as_its_oldest_item() -> None:
    stamps = ("2026-11-21T11:48:20Z", "2026-11-21T11:48:29Z")
    body = json.dumps({"items": [{"timestamp": stamp} for stamp in stamps]}).encode()

    assert Read("/", 0.0, 0.001, 200, body, answered_at=1_795_261_710.5).age == 10.5
