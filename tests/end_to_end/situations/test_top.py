"""`top` on a real broker: the same numbers in every form, and a live table on a terminal."""

import csv
import fcntl
import io
import json
import os
import pty
import signal
import struct
import subprocess
import termios
import time
from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from local.adapter import installed
from local.kafka.broker import Kafka
from local.kafka.tools import commit, create_topic, produce

GROUP, OTHER = "top-billing", "top-mail"
SECONDS = 180.0


@pytest.fixture(scope="module")
def groups(one_broker: Kafka) -> Kafka:
    create_topic(one_broker, "top-orders", 2)
    produce(one_broker, "top-orders", 1200, 0)
    commit(one_broker, GROUP, {("top-orders", 0): 200, ("top-orders", 1): 0})
    commit(one_broker, OTHER, {("top-orders", 0): 1200})
    return one_broker


def top(cluster: Kafka, *flags: str) -> "subprocess.CompletedProcess[str]":
    command = [str(installed()), "top", "--bootstrap-servers", cluster.bootstrap_servers, *flags]
    return subprocess.run(command, capture_output=True, text=True, timeout=SECONDS, check=False)


def test_json_has_the_lag_of_every_group(groups: Kafka) -> None:
    ended = top(groups, "--once", "--output", "json")

    assert (ended.returncode, ended.stderr) == (0, "")
    shown = {each["group"]: each for each in json.loads(ended.stdout)["groups"]}
    assert (shown[GROUP]["lag"], shown[GROUP]["partitions"], shown[GROUP]["state"]) == (1000, 2, "empty")
    assert (shown[GROUP]["members"], shown[GROUP]["attention"]) == (0, "no members")
    assert shown[OTHER]["lag"] == 0


def test_csv_has_one_row_for_each_group(groups: Kafka) -> None:
    rows = list(csv.DictReader(io.StringIO(top(groups, "--once", "--output", "csv").stdout)))

    assert {row["group"]: row["lag"] for row in rows}.items() >= {GROUP: "1000", OTHER: "0"}.items()


def test_without_a_terminal_there_are_plain_lines_until_it_is_ended(groups: Kafka) -> None:
    command = [str(installed()), "top", "--bootstrap-servers", groups.bootstrap_servers, "--interval", "1s"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        looks = 0
        for line in process.stdout:
            looks += line.startswith("GROUP")
            if looks == 2:
                break
        process.send_signal(signal.SIGINT)
        _, errors = process.communicate(timeout=SECONDS)

    assert (process.returncode, errors) == (0, "")


def test_a_reader_that_ends_early_ends_it_without_an_error(groups: Kafka) -> None:
    command = f"{installed()} top --bootstrap-servers {groups.bootstrap_servers} --interval 1s | head -1"
    ended = subprocess.run(["bash", "-o", "pipefail", "-c", command], capture_output=True, timeout=SECONDS, check=False)

    assert (ended.returncode, ended.stderr) == (0, b"")
    assert ended.stdout.startswith(b"GROUP")


@contextmanager
def on_a_terminal(cluster: Kafka) -> Iterator[tuple["subprocess.Popen[bytes]", int]]:
    ours, its = pty.openpty()
    fcntl.ioctl(its, termios.TIOCSWINSZ, struct.pack("HHHH", 40, 120, 0, 0))
    command = [str(installed()), "top", "--bootstrap-servers", cluster.bootstrap_servers, "--interval", "1s"]
    environment = {**os.environ, "TERM": "xterm", "PYTHONIOENCODING": "utf-8"}
    with subprocess.Popen(command, stdin=its, stdout=its, stderr=its, env=environment) as process:
        os.close(its)
        try:
            yield process, ours
        finally:
            process.kill()
            os.close(ours)


def read_until(terminal: int, text: bytes) -> None:
    ends, seen = time.monotonic() + SECONDS, b""
    while text not in seen:
        assert time.monotonic() < ends, seen[-2000:]
        seen += os.read(terminal, 65536)


def test_on_a_terminal_the_table_is_live_and_keys_filter_and_end_it(groups: Kafka) -> None:
    with on_a_terminal(groups) as (process, terminal):
        read_until(terminal, GROUP.encode())
        os.write(terminal, b"/mail\r")
        read_until(terminal, b"filter: mail ")
        os.write(terminal, b"q")

        assert process.wait(SECONDS) == 0
