"""What kube-apiserver answers to the questions of `doctor`. Nothing is changed: what would be written is a dry run."""

from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from functools import partial
from pathlib import Path
from urllib.parse import quote

from adapter import clock
from adapter.errors import AdapterError
from adapter.https import body_within
from adapter.metrics.requirement import written
from adapter.verdicts.hpa import API_VERSION, KIND
from apiservice.api_group import EXTERNAL, ApiGroup
from apiservice.auth.cluster_settings import PATH as CONFIG_MAPS
from apiservice.auth.cluster_settings import ClusterUnreachable
from apiservice.autoscalers.autoscaler import selector_of
from apiservice.cluster_api.connection import Client, Json, calling, connect, content, json_object, refusal, send
from apiservice.doctor.facts import LATE, Answer, ClusterFacts, HpaFacts, Replica, Right, Way, verb_of
from apiservice.registration.api_service import Service, path_of

HPA_ACCOUNT = "system:serviceaccount:kube-system:horizontal-pod-autoscaler"
HPA_GROUPS = ("system:serviceaccounts", "system:serviceaccounts:kube-system", "system:authenticated")
ALL_SECONDS = 60.0
HPAS = "/apis/autoscaling/v2"
READYZ = b"\nreadyz check "
"""In every answer of `/readyz?verbose`."""
REVIEWS = "authorization.k8s.io/v1"
MOST_PODS = 10
"""All are asked at once, so that several that hang cost no more time than one."""
MOST_BYTES = 1 << 20
ANSWER_SECONDS = 10.0
"""Both of one pod's answer."""
ENDED = {"Succeeded", "Failed"}
"""The phases of pods that do not run again, such as evicted ones, which Services leave out."""
DRY_RUN = "kafka-lag-adapter-doctor"
"""The name of the HPA that is never created."""


class Cluster:
    """Every answer comes within seconds, or says why there is none."""

    def __init__(self, kubeconfig: Path | None, seconds: float = ALL_SECONDS) -> None:
        """After so many seconds, nothing more is asked. Raises AdapterError."""
        self._client: Client = connect(kubeconfig)
        self._until = clock.monotonic() + seconds

    def facts(self, service: Service, groups: Sequence[ApiGroup], *, installs: bool) -> ClusterFacts:
        """`groups`: those that the adapter registers. `installs`: whether the user's rights to install are asked for,
        and not the adapter's pods."""
        version = self._get("/version")
        if version.document is None:
            return ClusterFacts(service, version)
        facts = ClusterFacts(
            service,
            version,
            ways={group: Way(self._get(path_of(group)), self._get(group.path)) for group in groups},
            authentication=self._get(f"{CONFIG_MAPS}/extension-apiserver-authentication"),
            reviews={group: self._may_read(group) for group in _preferred(groups)},
            dry_run=self._asked("POST", _hpas("default"), [("dryRun", "All")], _scaling_to_zero()),
            rights=tuple(self._rights(service)) if installs else (),
        )
        return facts if installs else replace(facts, replicas=self._replicas(facts.service))

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
        selector = selector_of(metric.get("selector") or {})
        if selector is None:
            return Answer(None, "the selector has an operator that does not exist")
        return self._asked("GET", path, [("labelSelector", written(selector))] if selector else [])

    def _replicas(self, service: Service) -> tuple[Replica, ...] | str:
        core = f"/api/v1/namespaces/{quote(service.namespace)}"
        found = self._get(f"{core}/services/{quote(service.name)}")
        if found.document is None:
            return found.problem
        selector = selector_of({"matchLabels": found.document["spec"].get("selector")})
        if not selector:
            return f"the Service {service.place} selects no pods by their labels"
        pods = self._asked("GET", f"{core}/pods", [("labelSelector", written(selector)), ("limit", str(MOST_PODS))])
        if pods.document is None:
            return pods.problem
        with ThreadPoolExecutor(MOST_PODS, thread_name_prefix="pods") as threads:
            return tuple(threads.map(partial(self._replica, core), filter(_lasts, pods.document["items"])))

    def _replica(self, core: str, pod: Json) -> Replica:
        """Asks the pod what kubelet asks it."""
        name, conditions = pod["metadata"]["name"], (pod.get("status") or {}).get("conditions") or ()
        is_ready = any((each["type"], each["status"]) == ("Ready", "True") for each in conditions)
        if (probe := _probe_of(pod)) is None:
            return Replica(name, is_ready, problem="the pod has no readiness probe by HTTP")
        scheme, port, path = probe
        try:
            says = self._said(f"{core}/pods/{scheme}:{quote(name)}:{port}/proxy{path}")
        except AdapterError as error:
            return Replica(name, is_ready, problem=str(error))
        return Replica(name, is_ready, says)

    def _said(self, path: str) -> str:
        """Returns what `/readyz?verbose` says, whatever the status that it says it with. Raises AdapterError."""
        if clock.monotonic() >= self._until:
            raise AdapterError(LATE.problem)
        begun = clock.monotonic()
        response = send(self._client, "GET", path, query=[("verbose", "true")])
        # Others can have pods there, and kube-apiserver passes on what they say without a limit.
        body = calling(lambda: body_within(response, MOST_BYTES, begun, ANSWER_SECONDS))
        if READYZ not in body:
            raise refusal(response, body)
        return body.decode(errors="replace")

    def _rights(self, service: Service) -> Iterator[Right]:
        for group, resource, namespace in created(service):
            attributes = {"verb": "create", "group": group, "resource": resource, "namespace": namespace}
            yield Right(
                resource, namespace, self._review("SelfSubjectAccessReview", {"resourceAttributes": attributes})
            )

    def _may_read(self, group: ApiGroup) -> Answer:
        reads = {"verb": verb_of(group), "group": group.name, "version": group.version, "resource": "*"}
        return self._review(
            "SubjectAccessReview", {"user": HPA_ACCOUNT, "groups": HPA_GROUPS, "resourceAttributes": reads}
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


def _lasts(pod: Json) -> bool:
    return "deletionTimestamp" not in pod["metadata"] and (pod.get("status") or {}).get("phase") not in ENDED


def _probe_of(pod: Json) -> tuple[str, int, str] | None:
    """Returns scheme, port and path of the readiness probe of a pod's first container that has one by HTTP."""
    for container in pod["spec"]["containers"]:
        probe = (container.get("readinessProbe") or {}).get("httpGet")
        if probe is not None:
            ports = {each.get("name"): each["containerPort"] for each in container.get("ports") or ()}
            # Dots as they are could lead to any other path of kube-apiserver.
            path = probe["path"].replace("..", "%2E%2E")
            return probe.get("scheme", "HTTP").lower(), ports.get(probe["port"], probe["port"]), path
    return None


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


def _preferred(groups: Sequence[ApiGroup]) -> tuple[ApiGroup, ...]:
    """Returns the first version of each group, which is the one that HPAs read."""
    first: dict[str, ApiGroup] = {}
    for group in groups:
        first.setdefault(group.name, group)
    return tuple(first.values())
