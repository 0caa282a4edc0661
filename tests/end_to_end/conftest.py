"""One real control plane with one node for all these tests, real brokers beside it, and one adapter between them.

Each test works in a namespace of its own, and with topics and groups of names of its own. The parts are fixtures of
this package, not of the session: they end before the tests of other folders begin, because even idle parts take CPU.
"""

import contextlib
import itertools
import sys
from collections.abc import Generator, Iterator
from pathlib import Path

import pytest

from apiservice.api_group import API_GROUPS
from local.adapter import Adapter
from local.adapter import adapter as running_adapter
from local.browser import Browser, NoBrowser, browser
from local.certificates import Pair
from local.kafka.broker import Kafka, kafka
from local.kafka.security import Login
from local.kubernetes.control_plane import ControlPlane
from local.kubernetes.control_plane import control_plane as running_control_plane
from local.kubernetes.node import Node
from local.kubernetes.node import node as running_node
from local.processes import logs, scratch
from tests.support.real import groups_to_read
from tests.support.real.guarded import guarded_kafka, run_commands_of_the_page
from tests.support.real.programs import MAIN, PATIENT_CALLS

OFTEN = {
    "log.initial.task.delay.ms": "1000",
    "log.retention.check.interval.ms": "1000",
    "log.cleaner.backoff.ms": "1000",
    "offsets.retention.check.interval.ms": "1000",
}
"""By default a broker looks every 5 minutes for what retention lets it delete, every 15 s for what it can compact, and
every 10 minutes for commits that have expired."""

LOG_LINES = 40

_numbers = itertools.count(1)


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(
    call: pytest.CallInfo[None],
) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    """Add the end of every log that was written during a failed test: often nothing but the report is left of a run."""
    report = yield
    if report.failed:
        report.sections += [
            (
                f"end of {log.parent.name}/{log.name}",
                "\n".join(log.read_text(errors="replace").splitlines()[-LOG_LINES:]),
            )
            for log in logs()
            if log.exists() and log.stat().st_mtime >= call.start
        ]
    return report


@pytest.fixture(scope="package")
def rig_home() -> Iterator[Path]:
    """Where the parts keep their state and their logs."""
    with scratch("tests") as home:
        yield home


@pytest.fixture(scope="package")
def control_plane(rig_home: Path) -> Iterator[ControlPlane]:
    with running_control_plane(rig_home / "control-plane") as plane:
        yield plane


@pytest.fixture(scope="package")
def node(control_plane: ControlPlane, rig_home: Path) -> Iterator[Node]:
    with running_node(control_plane, rig_home) as stand_in:
        yield stand_in


@pytest.fixture(scope="package")
def one_broker(rig_home: Path) -> Iterator[Kafka]:
    """One broker, with secure listeners beside the open one. Whoever freezes or stops it brings it back."""
    with kafka(rig_home / "one-broker", security=Login("alice", "wonderland"), properties=OFTEN) as cluster:
        yield cluster


@pytest.fixture(scope="package")
def three_brokers(rig_home: Path) -> Iterator[Kafka]:
    with kafka(rig_home / "three-brokers", brokers=3) as cluster:
        yield cluster


@pytest.fixture(scope="package")
def guarded(rig_home: Path) -> Iterator[Kafka]:
    """A broker with an authorizer; `guarded_kafka` says who may do what."""
    with guarded_kafka(rig_home / "guarded-broker") as cluster:
        yield cluster


@pytest.fixture(scope="package")
def documented(guarded: Kafka, rig_home: Path) -> Kafka:
    """The same broker, with the users and the least ACLs of docs/kafka-security.md."""
    run_commands_of_the_page(guarded, rig_home / "guarded-broker")
    return guarded


@pytest.fixture(scope="package")
def adapter(control_plane: ControlPlane, one_broker: Kafka, rig_home: Path) -> Iterator[Adapter]:
    """An adapter that kube-apiserver serves from, on one broker whose groups it has all read."""
    groups_to_read.prepare(one_broker)
    settings = groups_to_read.settings(one_broker)
    program = (sys.executable, "-c", PATIENT_CALLS + MAIN)
    with running_adapter(control_plane, rig_home / "adapter", settings, API_GROUPS, program=program) as running:
        groups_to_read.wait_until_read(control_plane)
        yield running


@pytest.fixture(scope="package")
def chromium(rig_home: Path) -> Iterator[Browser]:
    """A headless browser that reaches nothing but this machine."""
    with contextlib.ExitStack() as stack:
        try:
            running = stack.enter_context(browser(rig_home / "chromium"))
        except NoBrowser as error:
            pytest.skip(str(error))
        yield running


@pytest.fixture(scope="package")
def administrator(control_plane: ControlPlane) -> Pair:
    """A client certificate that may do everything, with and without kube-apiserver in between."""
    return control_plane.issue("test-administrator", ["system:masters"])


@pytest.fixture
def namespace(control_plane: ControlPlane) -> Iterator[str]:
    """A new namespace, deleted with all that is in it."""
    name = f"test-{next(_numbers)}"
    document = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}}
    control_plane.apply([document])
    yield name
    control_plane.delete([document])
