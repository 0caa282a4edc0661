"""A second control plane, on which nothing is installed."""

import datetime
from collections.abc import Iterator
from functools import partial

import pytest

from local.adapter import API_SERVICE
from local.kubernetes.control_plane import ControlPlane, Manifest
from local.kubernetes.control_plane import control_plane as running_control_plane
from local.processes import scratch, wait_until
from tests.support.kubernetes.authorities import SERVER, Authority

VALID, EXPIRED = "valid.example", "expired.example"
"""Names for which kube-apiserver has certificates of a CA without key identifiers."""

OPTIONAL_KINDS = {
    "cert-manager.io/v1": ("Certificate", "Issuer"),
    "monitoring.coreos.com/v1": ("ServiceMonitor", "PrometheusRule"),
}
SCALED = ("scaled.example/v1", "Scaled")


@pytest.fixture(scope="package")
def old_authority() -> Authority:
    return Authority("kubernetes", has_key_identifiers=False)


@pytest.fixture(scope="package")
def plane(old_authority: Authority) -> Iterator[ControlPlane]:
    """The other one has an adapter in the namespace that docs/install.md names. It has a folder of its own: `rig_home`
    stays when a process leaves this package, and may come back to it."""
    hour = datetime.timedelta(hours=1)
    issued = {
        name: old_authority.issue(name, usages=(SERVER,), valid_for=hours * hour, dns_names=(name,))
        for name, hours in {VALID: 24, EXPIRED: -1}.items()
    }
    with scratch("install") as home:
        more_serving = [pair.write(home, name) for name, pair in issued.items()]
        with running_control_plane(home / "plane", more_serving=more_serving) as running:
            definitions = [definition(version, kind) for version, kinds in OPTIONAL_KINDS.items() for kind in kinds]
            running.apply([*definitions, scaled_definition()])
            for version, kinds in {**OPTIONAL_KINDS, SCALED[0]: SCALED[1:]}.items():
                wait_until(partial(serves, running, version, kinds), f"the kinds of {version}", 180)
            yield running


@pytest.fixture
def somebody_elses(plane: ControlPlane) -> Iterator[Manifest]:
    """The APIService as if KEDA had it, without a CA as prometheus-adapter and Datadog have it."""
    service = {"name": "keda-operator-metrics-apiserver", "namespace": "keda", "port": 443}
    spec = {"group": "external.metrics.k8s.io", "version": "v1beta1", "service": service, "insecureSkipTLSVerify": True}
    theirs = {
        "apiVersion": "apiregistration.k8s.io/v1",
        "kind": "APIService",
        "metadata": {"name": "v1beta1.external.metrics.k8s.io"},
        "spec": {**spec, "groupPriorityMinimum": 100, "versionPriority": 100},
    }
    plane.apply([theirs])
    yield plane.get(API_SERVICE)["spec"]
    plane.delete([theirs])


def definition(version: str, kind: str) -> Manifest:
    """A kind of an operator that is not there, without its schema: kube-apiserver keeps any fields."""
    group, name = version.split("/")
    plural = f"{kind.lower()}s"
    schema = {"openAPIV3Schema": {"type": "object", "x-kubernetes-preserve-unknown-fields": True}}
    return {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": f"{plural}.{group}"},
        "spec": {
            "group": group,
            "names": {"kind": kind, "plural": plural, "singular": kind.lower(), "listKind": f"{kind}List"},
            "scope": "Namespaced",
            "versions": [{"name": name, "served": True, "storage": True, "schema": schema}],
        },
    }


def scaled_definition() -> Manifest:
    """The kind `Scaled`, which can be scaled and has no controller: it has as many replicas as a test says. The HPA
    controller sees a kind that is new up to 30 s later."""
    scaled = definition(*SCALED)
    paths = {"specReplicasPath": ".spec.replicas", "statusReplicasPath": ".status.replicas"}
    subresources = {"status": {}, "scale": {**paths, "labelSelectorPath": ".status.selector"}}
    versions = [{**version, "subresources": subresources} for version in scaled["spec"]["versions"]]
    return {**scaled, "spec": {**scaled["spec"], "versions": versions}}


def serves(plane: ControlPlane, version: str, kinds: tuple[str, ...]) -> bool:
    status, body = plane.raw(f"/apis/{version}")
    return status == 200 and all(f'"{kind}"'.encode() in body for kind in kinds)
