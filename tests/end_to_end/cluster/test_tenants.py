"""Which groups a namespace reads through kube-apiserver, by `namespaces` and `tenancy` of the settings in force."""

import contextlib
import json
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest
import yaml

from local.adapter import Adapter
from local.kafka.broker import Kafka
from local.kubernetes.control_plane import ControlPlane
from local.processes import wait_until
from tests.end_to_end.cluster.test_callers import (
    binding_to_shipped_role,
    new_reader,
    refused,
    through_kube_apiserver,
)
from tests.support.real import groups_to_read
from tests.support.real.groups_to_read import LAG, UNLABELLED_GROUP, UNLABELLED_METRIC, path

WAIT_SECONDS = 120.0
PAYMENTS, SHIPPING = "tenant-payments", "tenant-shipping-eu"
LAG_MAX = "kafka_consumergroup_records_lag_max"
RULES = [
    {"group": "ledger", "namespaces": [PAYMENTS]},
    {"groups": "mai.", "namespaces": ["tenant-shipping-.*"]},
]

Tokens = Mapping[str, str]
"""By namespace."""


@pytest.fixture
def tokens(control_plane: ControlPlane) -> Iterator[Tokens]:
    """Two namespaces, each with a ServiceAccount that may read metrics there and nowhere else."""
    names = (PAYMENTS, SHIPPING)
    documents = [{"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}} for name in names]
    control_plane.apply(documents)
    found = {name: new_reader(control_plane, name) for name in names}
    control_plane.apply([binding_to_shipped_role(name) for name in names])
    yield found
    control_plane.delete(documents)


def test_a_namespace_reads_its_own_groups_and_no_others(
    control_plane: ControlPlane, one_broker: Kafka, adapter: Adapter, tokens: Tokens
) -> None:
    reader = Reader(control_plane, tokens)
    # Groups of other tests may be in a state in which no collector can read them.
    collection = {"interval": "1s", "maxAge": "60s", "groups": {"include": ["ledger", "mail"]}}
    settings = {**groups_to_read.settings(one_broker), "collection": collection, "rules": RULES}
    with changed_settings(control_plane, adapter, settings) as change:
        wait_until(
            lambda: reader.status(PAYMENTS, LAG, "group=mail") == 404, "the settings to take effect", WAIT_SECONDS
        )
        assert reader.groups(PAYMENTS) == {"ledger", UNLABELLED_GROUP}
        assert reader.groups(SHIPPING) == {"mail", UNLABELLED_GROUP}
        assert reader.status(PAYMENTS, LAG, "group=ledger") == reader.status(SHIPPING, LAG, "group=mail") == 200
        # 15,000 - 1 messages of ledger, and 100 of the group without a rule.
        assert reader.value(PAYMENTS, LAG_MAX, "topic=read-invoices") == "14999"
        assert reader.value(SHIPPING, LAG_MAX, "topic=read-invoices") == "100"
        assert reader.value(SHIPPING, UNLABELLED_METRIC) == "100"
        for selector in ("group={}", "group={},topic=read-orders", "group={},partition=0"):
            theirs = reader.refusal(PAYMENTS, LAG, selector.format("mail"))
            assert theirs == reader.refusal(PAYMENTS, LAG, selector.format("nobody")).replace("nobody", "mail")
        refused(reader.read(PAYMENTS, LAG, "group=mail", within=SHIPPING))

        change({**settings, "tenancy": "closed"})
        wait_until(lambda: reader.status(SHIPPING, UNLABELLED_METRIC) == 404, "the closed tenancy", WAIT_SECONDS)
        assert reader.groups(PAYMENTS) == {"ledger"}
        assert reader.groups(SHIPPING) == {"mail"}
        assert reader.refusal(SHIPPING, LAG, "topic=read-invoices") == (
            "no topic 'read-invoices' is known; known topics are read-orders"
        )
        assert control_plane.raw(path("default", LAG))[0] == 404, "a namespace that no rule names"


class Reader:
    """Reads through kube-apiserver as the ServiceAccount of a namespace."""

    def __init__(self, plane: ControlPlane, tokens: Tokens) -> None:
        self._plane = plane
        self._tokens = tokens

    def read(self, whose: str, metric: str, selector: str = "", within: str | None = None) -> tuple[int, bytes]:
        where = path(within or whose, metric, selector.replace("=", "%3D"))
        return through_kube_apiserver(self._plane, where, {"Authorization": f"Bearer {self._tokens[whose]}"})

    def status(self, namespace: str, metric: str, selector: str = "") -> int:
        return self.read(namespace, metric, selector)[0]

    def items(self, namespace: str, metric: str, selector: str = "") -> list[dict[str, Any]]:
        status, body = self.read(namespace, metric, selector)
        assert status == 200, body
        found: list[dict[str, Any]] = json.loads(body)["items"]
        return found

    def value(self, namespace: str, metric: str, selector: str = "") -> str:
        (item,) = self.items(namespace, metric, selector)
        return str(item["value"])

    def groups(self, namespace: str) -> set[str]:
        return {item["metricLabels"]["group"] for item in self.items(namespace, LAG)}

    def refusal(self, namespace: str, metric: str, selector: str) -> str:
        status, body = self.read(namespace, metric, selector)
        assert status == 404
        return str(json.loads(body)["message"])


class Change:
    def __init__(self, file: Path) -> None:
        self._file = file
        self.written = 0

    def __call__(self, settings: Mapping[str, Any]) -> None:
        self.write(yaml.safe_dump(dict(settings)))

    def write(self, text: str) -> None:
        new = self._file.with_suffix(".new")
        new.write_text(text)
        new.replace(self._file)
        self.written += 1


@contextlib.contextmanager
def changed_settings(plane: ControlPlane, adapter: Adapter, settings: Mapping[str, Any]) -> Iterator[Change]:
    """The shared adapter's; afterwards the former ones are in force again, and all of its groups have been read."""
    before, change, taken_over = adapter.settings.read_text(), Change(adapter.settings), _taken_over(adapter)
    change(settings)
    try:
        yield change
    finally:
        change.write(before)
        # A change is counted a moment after it has taken effect, so the last one may not have been counted yet.
        wait_until(lambda: _taken_over(adapter) == taken_over + change.written, "the former settings", WAIT_SECONDS)
        groups_to_read.wait_until_read(plane)


def _taken_over(adapter: Adapter) -> float:
    name = 'kafka_lag_adapter_settings_changes_total{outcome="taken_over"} '
    lines = adapter.get_plain("/metrics")[1].decode().splitlines()
    return sum(float(line.removeprefix(name)) for line in lines if line.startswith(name))
