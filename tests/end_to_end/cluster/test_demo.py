"""The demo as a person runs it: its own Kafka, its own control plane, shortened to fewer messages."""

import os
import re
import shlex
import shutil
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from local.downloads import control_plane_binary, kafka_jars
from local.processes import RigError, wait_until

WAITING = "Ctrl-C ends it."
LAST_LINES = 60
"""Of a demo that failed: pytest prints an error's message twice, and nobody reads 300 lines."""
CHILD_MARK = "kafka-lag-adapter-demo-"


class Demo:
    """A running demo with its output in a file; standard input stays open until `hang_up`."""

    def __init__(self, output: Path, *arguments: str) -> None:
        self.output = output
        with output.open("w") as file:
            self.process = subprocess.Popen(
                [sys.executable, "-m", "local.demo.__main__", *arguments],
                stdin=subprocess.PIPE,
                stdout=file,
                stderr=subprocess.STDOUT,
                start_new_session=True,
            )

    @property
    def printed(self) -> str:
        return self.output.read_text()

    @property
    def last_lines(self) -> str:
        return "\n".join(self.printed.splitlines()[-LAST_LINES:])

    def wait_for(self, text: str, seconds: float) -> None:
        def is_there() -> bool:
            if self.process.poll() is not None and text not in self.printed:
                raise RigError(f"the demo ended with status {self.process.returncode}:\n{self.last_lines}")
            return text in self.printed

        wait_until(is_there, f"the demo to say {text!r}", seconds)

    def hang_up(self) -> int:
        assert self.process.stdin is not None
        self.process.stdin.close()
        return self.process.wait(180)

    def left_running(self) -> list[str]:
        """Command lines of processes whose files are below this demo's folder."""
        found = re.search(rf"\S*/{CHILD_MARK}\S+", self.printed)
        assert found, self.printed
        lines = subprocess.run(["ps", "-Aww", "-o", "args="], capture_output=True, text=True, check=True).stdout
        return [line for line in lines.splitlines() if found[0] in line]


@pytest.fixture
def output(tmp_path: Path) -> Path:
    return tmp_path / "output"


@pytest.fixture
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """With the two parts that a demo needs."""
    parts = (kafka_jars(), control_plane_binary())
    folder = tmp_path / "cache"
    folder.mkdir()
    for part in parts:
        (folder / part.name).symlink_to(part)
    monkeypatch.setenv("KAFKA_LAG_ADAPTER_CACHE", str(folder))
    return folder


@pytest.fixture
def demos(output: Path) -> Iterator[list[Demo]]:
    """Whatever a test put in is ended."""
    started: list[Demo] = []
    yield started
    for demo in started:
        demo.process.kill()
        demo.process.wait()
        assert demo.process.stdin is not None
        demo.process.stdin.close()
    assert output.exists()


@pytest.mark.parametrize("arguments", [(), ("--activator",)], ids=["by the HPA", "by the adapter"])
def test_the_replicas_go_from_0_to_3_to_0_and_wake_again_and_no_further_part_is_brought(
    output: Path, cache: Path, demos: list[Demo], arguments: tuple[str, ...]
) -> None:
    needed = set(cache.iterdir())
    demo = Demo(output, "--messages", "6000", *arguments)
    demos.append(demo)
    demo.wait_for(WAITING, 600)

    assert replicas(demo.printed)[0] == 1
    assert one_after_another(replicas(demo.printed), [1, 0, 3, 0, 1]), demo.printed
    for command in printed_commands(demo.printed):
        if shutil.which(shlex.split(command)[0]):
            answer = subprocess.run(command, shell=True, capture_output=True, text=True, check=False)  # noqa: S602 - as printed
            assert answer.returncode == 0, (command, answer.stderr)
            assert "kafka" in answer.stdout or "billing" in answer.stdout, (command, answer.stdout)
    assert "The status page in a browser: http://127.0.0.1:8001/apis/external.metrics.k8s.io/" in demo.printed
    assert demo.hang_up() == 0, demo.printed
    wait_until(lambda: demo.left_running() == [], "all of them to be gone", 180)
    assert set(cache.iterdir()) == needed


@pytest.mark.parametrize(
    ("number", "status"),
    [(signal.SIGINT, 130), (signal.SIGTERM, 143), (signal.SIGKILL, -signal.SIGKILL)],
)
def test_whatever_ends_the_demo_nothing_of_it_is_left(
    number: signal.Signals, status: int, output: Path, demos: list[Demo]
) -> None:
    demo = Demo(output)
    demos.append(demo)
    demo.wait_for("Starting Kubernetes", 300)
    assert demo.left_running() != []  # the broker

    os.kill(demo.process.pid, number)

    assert demo.process.wait(180) == status, demo.printed
    wait_until(lambda: demo.left_running() == [], "all of them to be gone", 180)
    assert "Traceback" not in demo.printed


def replicas(printed: str) -> list[int]:
    """The column of that name, row by row."""
    return [int(found) for found in re.findall(r"\(avg\) +[01] +3 +(\d+) +\S+$", printed, re.MULTILINE)]


def one_after_another(values: list[int], wanted: list[int]) -> bool:
    """Whether the wanted ones come in this order, whatever is between them."""
    rest = iter(values)
    return all(value in rest for value in wanted)


def printed_commands(printed: str) -> list[str]:
    commands = re.findall(r"^  ((?:kubectl|curl) .*)$", printed, re.MULTILINE)
    assert {command.split()[0] for command in commands} == {"kubectl", "curl"}
    return commands
