"""Who holds the APIService of each API group, and whether we may write it: one rule for all groups.

It is ours if it leads to our Service. Its `caBundle` is ours if nobody has written it since we did. Of a group with
several versions, HPAs read the preferred one, so none is created while others hold another one."""

import base64
import binascii
import re
from collections.abc import Mapping
from dataclasses import dataclass, replace
from datetime import datetime

from cryptography import x509

from adapter.conditions import API_SERVICE
from adapter.errors import SettingsInvalid
from adapter.settings.types import DNS_LABEL
from apiservice.api_group import ApiGroup
from apiservice.auth.cluster_settings import certificates_of
from apiservice.cluster_api.connection import Json
from apiservice.cluster_api.objects import MANAGER
from apiservice.tls.issuing import PRODUCT, SERVICE_PORT, api_service

SERVICE = re.compile(
    f"(?:(?P<namespace>{DNS_LABEL.pattern})/)?(?P<name>{DNS_LABEL.pattern})(?::(?P<port>[0-9]{{1,5}}))?"
)
SERVERS = {"keda": "KEDA", "datadog": "Datadog", "prometheus": "prometheus-adapter", "azure": "Azure"}
"""Known servers of external metrics, by a part of their Service's name or namespace."""


@dataclass(frozen=True, slots=True)
class Service:
    """The Service through which kube-apiserver reaches the adapter."""

    namespace: str
    name: str
    port: int

    @property
    def place(self) -> str:
        """What distinguishes this adapter from others in the cluster."""
        return f"{self.namespace}/{self.name}"

    @property
    def owner(self) -> str:
        """The ClusterRole with which the APIService is deleted."""
        return f"{self.name}-registration"

    @property
    def secret(self) -> str:
        return f"{self.name}-serving"

    @property
    def lease(self) -> str:
        """Of the replica that does what only one may do."""
        return f"{self.name}-leader"


def service_of(text: str | None, namespace: str | None) -> Service | None:
    """Returns the Service that `[NAMESPACE/]NAME[:PORT]` names; None if the flag is absent outside a pod.

    `namespace` is the pod's. Raises SettingsInvalid."""
    if text is None and namespace is None:
        return None
    match = SERVICE.fullmatch(PRODUCT if text is None else text)
    if match is None:
        raise SettingsInvalid((f"--service: {text!r} is not [NAMESPACE/]NAME[:PORT]",))
    place = match["namespace"] or namespace
    if place is None:
        raise SettingsInvalid((f"--service: outside a pod, {text!r} must name the namespace too: NAMESPACE/{text}",))
    return Service(place, match["name"], int(match["port"] or SERVICE_PORT))


@dataclass(frozen=True, slots=True)
class ApiServiceState:
    """What the APIService is now. `text` is for the log and for `/readyz?verbose`, `details` for the log alone."""

    text: str
    details: str = ""
    is_registered: bool = False
    is_writable: bool = False
    """It must be created, or changed to our CAs, and nobody else has a claim on it."""
    is_lost: bool = False
    """Others hold it, but uninstalling this adapter would delete it."""
    others: str = ""
    """Who holds it, if it leads elsewhere."""
    is_absent: bool = False
    is_known: bool = True
    """Whether it could be read."""

    @property
    def is_ours(self) -> bool:
        """Whether it leads to this adapter."""
        return self.is_known and not self.is_absent and not self.others


def path_of(group: ApiGroup) -> str:
    return f"/apis/apiregistration.k8s.io/v1/apiservices/{group.api_service}"


def state_of(
    group: ApiGroup, found: Json | None, service: Service, authorities: tuple[x509.Certificate, ...] | None
) -> ApiServiceState:
    """`authorities`: the CAs that `caBundle` must have; None if somebody else writes it."""
    if found is None:
        text = f"there is no APIService, so kube-apiserver serves no {group.title}"
        return ApiServiceState(text, is_writable=True, is_absent=True)
    if not is_ours(found, service):
        holder = _holder(found)
        is_owned, is_managing = _is_owned(found, service), authorities is not None
        warning = f". Deleting the ClusterRole {service.owner} deletes it: first remove its ownerReferences"
        text = f"{_held(group, holder, service)}{warning if is_owned and not is_managing else ''}"
        return ApiServiceState(text, is_lost=is_owned and is_managing, others=holder)
    if authorities is None:
        return _registered(found)
    return _bundle_state(group, found, authorities, is_adopted=_is_owned(found, service))


def unread(group: ApiGroup, details: str) -> ApiServiceState:
    """Returns the state of an APIService that could not be read."""
    return ApiServiceState(f"{group.api_service} cannot be checked", details, is_known=False)


def among(states: Mapping[ApiGroup, ApiServiceState]) -> Mapping[ApiGroup, ApiServiceState]:
    """Returns the state of each version as it is beside the others of its group."""
    return {group: _beside(group, state, states) for group, state in states.items()}


def _beside(group: ApiGroup, state: ApiServiceState, states: Mapping[ApiGroup, ApiServiceState]) -> ApiServiceState:
    versions = {other: each for other, each in states.items() if other.name == group.name and other != group}
    held = [other for other, each in versions.items() if each.others or not each.is_known]
    if state.is_absent and held:
        why = "while others hold" if versions[held[0]].others else "until it is known who holds"
        text = f"{group.api_service} is not created {why} {held[0].api_service}"
        return replace(state, text=text, is_writable=False)
    preferred = [other for other, each in versions.items() if each.is_ours and other.priority > group.priority]
    if state.others and preferred:
        return replace(state, text=_passed_over(group, state.others, preferred[0]))
    return state


def _passed_over(group: ApiGroup, holder: str, preferred: ApiGroup) -> str:
    return (
        f"{group.api_service} belongs to {holder}, but {preferred.api_service}, which HPAs prefer, leads to this "
        f"adapter, so HPAs that need {group.title} of the other server do not find them. Let both lead to the same "
        "server (docs/install.md, Beside KEDA or Datadog: Object metrics)"
    )


def _bundle_state(
    group: ApiGroup, found: Json, authorities: tuple[x509.Certificate, ...], *, is_adopted: bool
) -> ApiServiceState:
    present = _certificates(found["spec"].get("caBundle") or "")
    if present == authorities and is_adopted:
        return _registered(found)
    writers = _writers_of_bundle(found)
    is_known = present is not None and set(present) <= set(authorities)
    if MANAGER in writers or present == () or (is_known and not is_adopted):
        return ApiServiceState("the APIService lacks a CA of this adapter", is_writable=True)
    others = " and ".join(sorted(writers)) or "an unknown writer"
    if present is not None and set(authorities) <= set(present):
        return _registered(found, f"; the APIService's caBundle was written by {others}")
    return ApiServiceState(
        f"{group.api_service} leads to this adapter, but {others} has written a caBundle with which kube-apiserver "
        "cannot verify it; this adapter does not write it again. Stop that writer, then remove spec.caBundle"
    )


def may_serve_from(authority: x509.Certificate, found: Json | None, service: Service) -> bool:
    """Returns whether kube-apiserver can verify certificates of this CA, or asks somebody else."""
    if found is None or not is_ours(found, service):
        return True
    return authority in (_certificates(found["spec"].get("caBundle") or "") or ())


def manifest(group: ApiGroup, found: Json | None, service: Service, bundle: bytes, owner: Json) -> Json:
    """Returns what to apply. Deleting the owner, a ClusterRole of ours, makes Kubernetes delete the APIService."""
    labels = {**owner["metadata"].get("labels", {}), "app.kubernetes.io/managed-by": MANAGER}
    reference = {
        "apiVersion": "rbac.authorization.k8s.io/v1",
        "kind": "ClusterRole",
        "name": owner["metadata"]["name"],
        "uid": owner["metadata"]["uid"],
    }
    metadata: Json = {"labels": labels, "ownerReferences": [reference]}
    if found is not None:
        metadata["resourceVersion"] = found["metadata"]["resourceVersion"]
    place = {"namespace": service.namespace, "name": service.name, "port": service.port}
    return api_service(group, metadata, place, bundle)


def bundle_fault(found: Json, now: datetime) -> str:
    """Returns why no certificate can be verified by `caBundle`; empty: one can, or nothing is verified."""
    bundle = found["spec"].get("caBundle") or ""
    certificates = _certificates(bundle)
    if certificates is None:
        return "its caBundle cannot be read"
    if certificates and all(each.not_valid_after_utc < now for each in certificates):
        return "every CA in its caBundle has expired"
    return ""


def _holder(found: Json) -> str:
    holder = found["spec"].get("service")
    if not holder:
        return "kube-apiserver itself"
    place = f"{holder.get('namespace')}/{holder.get('name')}"
    server = next((name for part, name in SERVERS.items() if part in place), None)
    return f"{server} (Service {place})" if server else f"the Service {place}"


def _held(group: ApiGroup, holder: str, service: Service) -> str:
    key = "customMetrics.upstream" if group.describes_objects else "upstream"
    return (
        f"{group.api_service} belongs to {holder}: HPAs read {group.title} there, not here, and this adapter leaves it "
        f"as it is. To move HPAs to this adapter, one at a time with `{key}` in the settings, point the APIService to "
        f"{service.place} (docs/install.md, Taking over)"
    )


def _registered(found: Json, remark: str = "") -> ApiServiceState:
    available = _available(found)
    if available.get("status") == "False":
        return ApiServiceState(f"kube-apiserver does not reach this adapter{remark}", str(available.get("message")))
    return ApiServiceState(f"{API_SERVICE.message}{remark}", is_registered=True)


def is_ours(found: Json | None, service: Service) -> bool:
    """Returns whether it leads to our Service."""
    place = (found["spec"].get("service") or {}) if found else {}
    return (place.get("namespace"), place.get("name")) == (service.namespace, service.name)


def is_available(found: Json | None) -> bool:
    """Returns whether kube-apiserver reaches the server."""
    return found is not None and _available(found).get("status") == "True"


def _available(found: Json) -> Json:
    conditions = (found.get("status") or {}).get("conditions") or []
    condition: Json = next((each for each in conditions if each.get("type") == "Available"), {})
    return condition


def without_owner(found: Json, service: Service) -> Json:
    """Returns the change after which others' APIService survives the end of this adapter."""
    references = [each for each in _references(found) if each.get("name") != service.owner]
    return {"metadata": {"ownerReferences": references, "resourceVersion": found["metadata"]["resourceVersion"]}}


def _is_owned(found: Json, service: Service) -> bool:
    return any(each.get("name") == service.owner for each in _references(found))


def _references(found: Json) -> list[Json]:
    return found["metadata"].get("ownerReferences") or []


def _writers_of_bundle(found: Json) -> set[str]:
    """Returns the field managers that the API server has recorded."""
    fields: list[Json] = found["metadata"].get("managedFields") or []
    return {each["manager"] for each in fields if "f:caBundle" in (each.get("fieldsV1") or {}).get("f:spec", {})}


def _certificates(bundle: str) -> tuple[x509.Certificate, ...] | None:
    """Returns the bundle's certificates, or None if they cannot be read."""
    try:
        return tuple(certificates_of(base64.b64decode(bundle, validate=True).decode()))
    except (ValueError, binascii.Error):
        return None
