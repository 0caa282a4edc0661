"""What kube-apiserver answers to the questions of `doctor`. Nothing is changed: what would be written is a dry run."""

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from urllib.parse import quote

from adapter import clock
from adapter.errors import AdapterError
from adapter.verdicts.hpa import API_VERSION, KIND
from apiservice.api_group import EXTERNAL
from apiservice.auth.cluster_settings import PATH as CONFIG_MAPS
from apiservice.auth.cluster_settings import ClusterUnreachable
from apiservice.cluster_api.connection import Client, Json, connect, content, json_object, send
from apiservice.doctor.facts import LATE, Answer, ClusterFacts, HpaFacts, Right, text_of_selector
from apiservice.registration.api_service import Service, path_of

HPA_ACCOUNT = "system:serviceaccount:kube-system:horizontal-pod-autoscaler"
ALL_SECONDS = 60.0
HPAS = "/apis/autoscaling/v2"
REVIEWS = "authorization.k8s.io/v1"
DRY_RUN = "kafka-lag-adapter-doctor"
"""The name of the HPA that is never created."""


class Cluster:
    """Every answer comes within seconds, or says why there is none."""

    def __init__(self, kubeconfig: Path | None, seconds: float = ALL_SECONDS) -> None:
        """After so many seconds, nothing more is asked. Raises AdapterError."""
        self._client: Client = connect(kubeconfig)
        self._until = clock.monotonic() + seconds

    def facts(self, service: Service, *, installs: bool) -> ClusterFacts:
        """`installs`: whether the user's rights to install are asked for as well."""
        version = self._get("/version")
        if version.document is None:
            return ClusterFacts(service, version)
        group_names = ("", "system:serviceaccounts", "system:serviceaccounts:kube-system", "system:authenticated")
        reads = {"verb": "list", "group": EXTERNAL.name, "version": EXTERNAL.version, "resource": "*"}
        spec = {"user": HPA_ACCOUNT, "groups": [*group_names[1:]], "resourceAttributes": reads}
        return ClusterFacts(
            service,
            version,
            api_service=self._get(path_of(EXTERNAL)),
            authentication=self._get(f"{CONFIG_MAPS}/extension-apiserver-authentication"),
            discovery=self._get(EXTERNAL.path),
            review=self._review("SubjectAccessReview", spec),
            dry_run=self._asked("POST", _hpas("default"), [("dryRun", "All")], _scaling_to_zero()),
            rights=tuple(self._rights(service)) if installs else (),
        )

    def hpas(self, name: str | None, namespace: str | None) -> Answer:
        """Returns a list of one HPA, or of all in a namespace or in the cluster."""
        if name is None:
            return self._get(_hpas(namespace))
        answer = self._get(f"{_hpas(namespace)}/{quote(name)}")
        return answer if answer.document is None else Answer({"items": [answer.document]})

    def of_hpa(self, hpa: Json) -> HpaFacts:
        """Reads its metrics as the HPA controller does, and its target."""
        namespace, target = hpa["metadata"]["namespace"], hpa["spec"]["scaleTargetRef"]
        metrics = [each["external"]["metric"] for each in hpa["spec"].get("metrics") or () if each.get("external")]
        values = tuple((each["name"], self._value(namespace, each)) for each in metrics)
        if (target["kind"], target.get("apiVersion")) != ("Deployment", "apps/v1"):
            return HpaFacts(values, Answer(None, f"{target['kind']} {target['name']} is not a Deployment of apps/v1"))
        path = f"/apis/apps/v1/namespaces/{quote(namespace)}/deployments/{quote(target['name'])}"
        return HpaFacts(values, self._get(path))

    def _value(self, namespace: str, metric: Json) -> Answer:
        path = f"{EXTERNAL.path}/namespaces/{quote(namespace)}/{quote(metric['name'])}"
        selector = text_of_selector(metric.get("selector") or {})
        return self._asked("GET", path, [("labelSelector", selector)] if selector else [])

    def _rights(self, service: Service) -> Iterator[Right]:
        for group, resource, namespace in created(service):
            attributes = {"verb": "create", "group": group, "resource": resource, "namespace": namespace}
            yield Right(
                resource, namespace, self._review("SelfSubjectAccessReview", {"resourceAttributes": attributes})
            )

    def _review(self, kind: str, spec: Mapping[str, object]) -> Answer:
        body = {"apiVersion": REVIEWS, "kind": kind, "spec": spec}
        return self._asked("POST", f"/apis/{REVIEWS}/{kind.lower()}s", body=body)

    def _get(self, path: str) -> Answer:
        return self._asked("GET", path)

    def _asked(self, method: str, path: str, query: Sequence[tuple[str, str]] = (), body: object = None) -> Answer:
        if clock.monotonic() >= self._until:
            return LATE
        try:
            return Answer(json_object(content(send(self._client, method, path, query=query, body=body))))
        except ClusterUnreachable as error:
            return Answer(None, str(error), error.status)
        except AdapterError as error:
            return Answer(None, str(error))


def _hpas(namespace: str | None) -> str:
    place = f"/namespaces/{quote(namespace)}" if namespace else ""
    return f"{HPAS}{place}/horizontalpodautoscalers"


def _scaling_to_zero() -> Json:
    target = {"apiVersion": "apps/v1", "kind": "Deployment", "name": DRY_RUN}
    source = {"metric": {"name": "kafka_consumergroup_lag"}, "target": {"type": "AverageValue", "averageValue": "1k"}}
    metrics = [{"type": "External", "external": source}]
    spec = {"scaleTargetRef": target, "minReplicas": 0, "maxReplicas": 1, "metrics": metrics}
    return {"apiVersion": API_VERSION, "kind": KIND, "metadata": {"name": DRY_RUN}, "spec": spec}


def created(service: Service) -> Iterator[tuple[str, str, str]]:
    """Yields API group, resource and namespace of what the manifests create."""
    rights = "rbac.authorization.k8s.io"
    yield from (
        (rights, "clusterroles", ""),
        (rights, "clusterrolebindings", ""),
        (rights, "rolebindings", "kube-system"),
    )
    yield from (("", each, service.namespace) for each in ("serviceaccounts", "services", "secrets", "configmaps"))
    yield from ((rights, each, service.namespace) for each in ("roles", "rolebindings"))
    yield "apps", "deployments", service.namespace
    yield "coordination.k8s.io", "leases", service.namespace
    yield "networking.k8s.io", "networkpolicies", service.namespace
    yield "policy", "poddisruptionbudgets", service.namespace
