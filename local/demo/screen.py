"""The demo's screen: starts the rig, runs the scenario, prints changes, and says how to explore further."""

import argparse
import contextlib
import datetime
import importlib.metadata
import shlex
import shutil
import signal
import sys
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from types import FrameType

import urllib3
from kafka.errors import KafkaError
from rich.console import Console
from rich.status import Status

from local import downloads
from local.adapter import Adapter, adapter, installed
from local.demo import scenario
from local.demo.scenario import Names, Sight, Stage
from local.kafka.broker import kafka
from local.kafka.tools import create_topic
from local.kubernetes.control_plane import ControlPlane, control_plane
from local.kubernetes.node import node
from local.manifests.shipped import NAME
from local.processes import RigError, scratch, stop_all

MESSAGES = 10_000
PARTS = ("kafka", "control-plane")
STATE_NEEDS_BYTES = 500 * 1000**2
COLUMNS = "{:<9} {:<8} {:<19} {:<19} {:<8} {:<8} {:<9} {:>6}"
PROXY_PORT = 8001
LOG_LINES = 15
FAILURES = (RigError, KafkaError, urllib3.exceptions.HTTPError)
INTERRUPTED = 128 + signal.SIGINT


def main() -> int:
    """Returns the demo's exit status; prints each problem on stderr as one sentence."""
    try:
        with _ended_once():
            arguments = _arguments()
            missing = downloads.main(PARTS)
            if missing:
                return missing
            console = Console(highlight=False, markup=False, emoji=False, soft_wrap=True)
            _show(_Screen(console), arguments.messages, has_gate=not arguments.activator)
    except FAILURES as error:
        print(f"The demo failed: {error}", file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        return INTERRUPTED
    return 0


@dataclass(slots=True)
class _Screen:
    """Prints plain lines and, on a terminal, a last one that says what the demo is waiting for."""

    console: Console
    last: tuple[int, int | None] | None = None
    status: Status = field(init=False)

    def __post_init__(self) -> None:
        self.status = self.console.status("")

    def say(self, line: str = "") -> None:
        self.console.print(line)

    def step(self, what: str) -> None:
        """Prints a line, and a progress display below it."""
        self.say(f"{_now()}  {what}")
        self.status.update(what)

    def table(self) -> None:
        self.say()
        self.say(COLUMNS.format("TIME", "NAME", "REFERENCE", "TARGETS", "MINPODS", "MAXPODS", "REPLICAS", "LAG"))

    def sight(self, sight: Sight, least_replicas: int) -> None:
        """Prints a line whenever the replicas or the lag have changed."""
        if (sight.replicas, sight.lag) == self.last:
            return
        self.last = (sight.replicas, sight.lag)
        lag = "unknown" if sight.lag is None else f"{sight.lag}"
        name = Names().group
        limits = (f"{least_replicas}", f"{scenario.MOST_REPLICAS}", f"{sight.replicas}")
        self.say(COLUMNS.format(_now(), name, f"Deployment/{name}", sight.targets, *limits, lag))


def _show(screen: _Screen, messages: int, *, has_gate: bool) -> None:
    with contextlib.ExitStack() as running, screen.status:
        home = running.enter_context(scratch("demo"))
        running.callback(stop_all)  # what was interrupted in its start is in no context yet, and writes below `home`
        _require_room(home)
        screen.say(f"All on 127.0.0.1; settings, data and logs below {home} until the end.")
        try:
            stage, served = _start(screen, running, home, has_gate=has_gate)
            try:
                _play(screen, stage, messages)
            except FAILURES:
                _say_ends_of_logs(screen, home)
                raise
            _wait_for_the_reader(
                screen, looking_round(stage.plane, served, stage.names), browsing(stage.plane, stage.names)
            )
        finally:
            screen.step("Stopping everything")


def _start(screen: _Screen, running: contextlib.ExitStack, home: Path, *, has_gate: bool) -> tuple[Stage, Adapter]:
    names = Names()
    screen.step(f"Starting Kafka {downloads.KAFKA}: one broker")
    brokers = running.enter_context(kafka(home / "kafka"))
    create_topic(brokers, names.topic, scenario.PARTITIONS)
    screen.step(f"Starting Kubernetes {downloads.KUBERNETES}: etcd, kube-apiserver, kube-controller-manager")
    plane = running.enter_context(control_plane(home / "kubernetes", has_scale_to_zero=has_gate))
    running.enter_context(node(plane, home))
    screen.step(f"Starting {NAME} {importlib.metadata.version(NAME)}: with no more rights than manifests/ give it")
    settings, components = scenario.settings(brokers, names, has_gate=has_gate), () if has_gate else ("autoscalers",)
    served = running.enter_context(adapter(plane, home / NAME, settings, components=components))

    def show(sight: Sight) -> None:
        screen.sight(sight, stage.least_replicas)

    stage = Stage(brokers, plane, names, show, has_gate)
    return stage, served


def _play(screen: _Screen, stage: Stage, messages: int) -> None:
    names, rate = stage.names, scenario.MESSAGES_PER_SECOND
    screen.say()
    screen.say(
        f"Topic {names.topic}: {scenario.PARTITIONS} partitions. Deployment {names.group}: {rate} messages/s a pod."
    )
    least = stage.least_replicas
    screen.say(f"HPA {names.group}: {scenario.METRIC}, {scenario.LAG_PER_REPLICA} a replica, {least} to 3 replicas.")
    if not stage.has_gate:
        screen.say("HPAScaleToZero is off, as before Kubernetes 1.37: the adapter scales to 0 and from it.")
    screen.table()
    screen.status.update("nothing to do for the first pod: waiting for 0 replicas")
    scenario.fall_asleep(stage)
    screen.step(f"{messages} messages")
    first = scenario.scale_out(stage, messages)
    screen.step(f"First pod ready {first:.1f} s after the first message; all {scenario.MOST_REPLICAS} are at work")
    scenario.drain(stage)
    screen.step("Asleep again. One late message")
    late = scenario.wake(stage)
    screen.status.stop()
    screen.say()
    screen.say("Replicas went from 0 to 3, back to 0, and woke up again.")
    screen.say(f"From the first message to the first ready pod: {first:.1f} s, and {late:.1f} s for the late one.")


def _say_ends_of_logs(screen: _Screen, home: Path) -> None:
    """What the pods said is deleted with everything else."""
    for log in sorted(home.glob("pod-logs/*/*/*.log")):
        for line in log.read_text(errors="replace").splitlines()[-LOG_LINES:]:
            screen.say(f"  {log.parent.name}: {line}")


def looking_round(plane: ControlPlane, served: Adapter, names: Names) -> list[str]:
    """Returns commands for a shell on this machine, ready to run."""
    kubectl = ["kubectl", "--kubeconfig", str(plane.admin_kubeconfig)]
    pair = plane.issue("visitor", ["system:masters"])
    curl = ["curl", "--silent", "--show-error", "--cacert", str(plane.cluster_ca)]
    curl += ["--cert", str(pair.certificate), "--key", str(pair.key)]
    path = scenario.metric_path(names)
    commands = [
        [*kubectl, "get", "--raw", path],
        [*kubectl, "get", "--raw", scenario.explanation_path(names)],
        [*kubectl, "--namespace", names.namespace, "get", "hpa,deployments,pods"],
        [*kubectl, "--namespace", names.namespace, "describe", "hpa", names.group],
        [*curl, f"{plane.url}{path}"],
        [*curl, f"{plane.url}{scenario.page_path(names)}"],
        ["curl", "--silent", "--show-error", f"http://127.0.0.1:{served.metrics_port}/metrics"],
        [str(installed()), "top", "--config", str(served.settings)],
    ]
    return [shlex.join(command) for command in commands]


def browsing(plane: ControlPlane, names: Names) -> tuple[str, str]:
    """Returns a command that serves the status page to a browser of this machine until it is ended, and its address."""
    command = ["kubectl", "--kubeconfig", str(plane.admin_kubeconfig), "proxy", "--port", f"{PROXY_PORT}"]
    return shlex.join(command), f"http://127.0.0.1:{PROXY_PORT}{scenario.page_path(names)}"


def _wait_for_the_reader(screen: _Screen, commands: list[str], page: tuple[str, str]) -> None:
    """Waits for Ctrl-C or the end of standard input, which comes at once without a terminal."""
    screen.say()
    screen.say("To look around (the last four need no kubectl; the second of them returns the status page):")
    for command in commands:
        screen.say(f"  {command}")
    screen.say()
    proxy, address = page
    screen.say(f"The status page in a browser: {address} while this runs:")
    screen.say(f"    {proxy}")  # deeper than what can be run to its end
    screen.say()
    if sys.stdin is None:  # closed from the beginning
        return
    screen.say("Ctrl-C ends it.")
    with contextlib.suppress(KeyboardInterrupt):
        while sys.stdin.read(1024):
            pass


def _require_room(home: Path) -> None:
    free = shutil.disk_usage(home).free
    if free < STATE_NEEDS_BYTES:
        raise RigError(
            f"it needs {STATE_NEEDS_BYTES / 1e6:.0f} MB of disk while it runs, and {tempfile.gettempdir()} has "
            f"{free / 1e6:.0f} MB left; TMPDIR names another folder."
        )


@contextlib.contextmanager
def _ended_once() -> Iterator[None]:
    """Ctrl-C raises KeyboardInterrupt, SIGTERM and SIGHUP raise SystemExit; later signals do not disturb the end."""
    numbers = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)

    def end(number: int, _frame: FrameType | None) -> None:
        for each in numbers:
            signal.signal(each, signal.SIG_IGN)
        if number == signal.SIGINT:
            raise KeyboardInterrupt
        sys.exit(128 + number)

    previous = {number: signal.signal(number, end) for number in numbers}
    try:
        yield
    finally:
        for number, handler in previous.items():
            if signal.getsignal(number) is end:
                signal.signal(number, handler)


def _now() -> str:
    return datetime.datetime.now(datetime.UTC).astimezone().strftime("%H:%M:%S")


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m local.demo", description="Scale a Deployment on Kafka's lag.")
    parser.add_argument("--messages", type=int, default=MESSAGES, help="how many arrive (default: %(default)s)")
    parser.add_argument(
        "--activator", action="store_true", help="switch HPAScaleToZero off and let the adapter scale to zero"
    )
    return parser.parse_args()
