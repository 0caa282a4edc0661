"""A thread that keeps the Secret with our certificates and the APIService as they must be.

Every replica does the same; the API server lets one write succeed, and the others read its result."""

import logging
import random
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path

from cryptography import x509

from adapter.conditions import API_SERVICE, SERVING_CERTIFICATE
from adapter.errors import AdapterError
from adapter.repeating import Repeating
from adapter.telemetry import Telemetry
from apiservice.api_group import API_GROUPS, EXTERNAL, ApiGroup
from apiservice.cluster_api.connection import Json
from apiservice.cluster_api.objects import ClusterObjects
from apiservice.registration import api_service
from apiservice.registration.api_service import ApiServiceState, Service
from apiservice.tls.certificates import PairFiles, ServingTls
from apiservice.tls.issuing import authority_name, service_names
from apiservice.tls.managed import Managed, managed_of, renewed

logger = logging.getLogger(__name__)

ROUND_SECONDS = 10.0
NAN = float("nan")
FIRST_SECONDS = 1.0  # until there is a certificate to serve


@dataclass(frozen=True, slots=True)
class _Seen:
    """What is known of one APIService."""

    document: Json | None
    state: ApiServiceState


class Registration(Repeating):
    """`tls`: serves the certificates of the Secret; None if the certificate and the APIService are others' work.

    `may_register`: APIServices are created where there are none. `groups` returns those that are ours to hold."""

    def __init__(
        self,
        objects: ClusterObjects,
        service: Service,
        tls: ServingTls | None,
        telemetry: Telemetry,
        *,
        may_register: bool,
        groups: Callable[[], tuple[ApiGroup, ...]] = lambda: (EXTERNAL,),
    ) -> None:
        super().__init__("registration")
        self._objects = objects
        self._service = service
        self._tls = tls
        self._may_register, self._groups = may_register, groups
        self._telemetry = telemetry
        self._conditions = telemetry.conditions
        self._has_certificate = tls is None
        self._spread: x509.Certificate | None = None
        """The newest CA, once kube-apiserver has it."""

    def look(self) -> None:
        """One round: the Secret, then the APIServices of all groups. Raises AdapterError."""
        managed = None if self._tls is None else self._certificates(self._tls)
        seen = _among({group: self._seen(group, managed) for group in self._groups()})
        seen = _among({group: self._written(group, each, managed) for group, each in seen.items()})
        if managed and all(self._may_serve_from(managed.authorities[0], each) for each in seen.values()):
            self._spread = managed.authorities[0]
        self._show(seen)
        states = [each.state for each in seen.values()]
        unregistered = [state for state in states if not state.is_registered]
        text = "; ".join(dict.fromkeys(state.text for state in unregistered or states))
        if unregistered:
            details = "; ".join(state.details for state in unregistered if state.details)
            reason = "NotRegistered" if all(each.state.is_known for each in seen.values()) else "NotChecked"
            self._conditions.fails(API_SERVICE, reason, text, details=details)
        else:
            self._conditions.holds(API_SERVICE, text)

    def _show(self, seen: Mapping[ApiGroup, _Seen]) -> None:
        gauge = self._telemetry.api_services
        for group in API_GROUPS:
            one = seen.get(group)
            if one is None:
                gauge.remove_by_labels({"api_service": group.api_service})
                continue
            for name, holds in (("ours", one.state.is_ours), ("available", api_service.is_available(one.document))):
                gauge.labels(group.api_service, name).set(holds if one.state.is_known else NAN)

    def _seen(self, group: ApiGroup, managed: Managed | None) -> _Seen:
        try:
            found = self._objects.read(api_service.path_of(group))
        except AdapterError as error:
            return _Seen(None, api_service.unread(group, str(error)))
        authorities = managed.authorities if managed else None
        return _Seen(found, api_service.state_of(group, found, self._service, authorities))

    def _written(self, group: ApiGroup, seen: _Seen, managed: Managed | None) -> _Seen:
        """Returns what is there once the APIService is as it must be."""
        is_written = self._write(group, seen.document, seen.state, managed)
        return self._seen(group, managed) if is_written else seen

    def _may_serve_from(self, authority: x509.Certificate, seen: _Seen) -> bool:
        return seen.state.is_known and api_service.may_serve_from(authority, seen.document, self._service)

    def _certificates(self, tls: ServingTls) -> Managed:
        name, namespace = self._service.secret, self._service.namespace
        path = f"/api/v1/namespaces/{namespace}/secrets/{name}"
        secret = self._objects.read(path)
        if secret is None:
            raise AdapterError(f"there is no Secret {namespace}/{name}; the shipped manifests contain it")
        current = managed_of(secret.get("data") or {})
        names = service_names(self._service.name, namespace)
        # Replicas whose clocks differ would renew each other's certificates.
        now = self._objects.answered_at
        is_spread = current is not None and current.authorities[0] == self._spread
        wanted = renewed(current, authority_name(self._service.name), names, now, is_spread=is_spread)
        if wanted is not current:
            if not self._objects.replace(path, {**secret, "data": wanted.data()}):
                return self._certificates(tls)  # another replica was faster
            logger.info("certificates in Secret %s/%s renewed: %s", namespace, name, _difference(current, wanted))
        place = Path(f"Secret {namespace}/{name}")
        tls.serve(wanted.serving, PairFiles(place / "tls.crt", place / "tls.key"))
        self._has_certificate = True
        self._conditions.holds(SERVING_CERTIFICATE, details=tls.served)
        self._telemetry.certificate_end.labels("authority").set(wanted.authorities[0].not_valid_after_utc.timestamp())
        return wanted

    def _write(self, group: ApiGroup, found: Json | None, state: ApiServiceState, managed: Managed | None) -> bool:
        """Returns whether the APIService has been changed."""
        if found is not None and state.is_lost:
            return self._objects.merge(api_service.path_of(group), api_service.without_owner(found, self._service))
        if managed is None or not state.is_writable or (found is None and not self._may_register):
            return False
        owner = self._objects.read(f"/apis/rbac.authorization.k8s.io/v1/clusterroles/{self._service.owner}")
        if owner is None:
            raise AdapterError(f"there is no ClusterRole {self._service.owner}; the shipped manifests contain it")
        document = api_service.manifest(group, found, self._service, managed.bundle, owner)
        # Without force, an object that another program creates at the same moment stays as it is.
        return self._objects.apply(api_service.path_of(group), document, force=found is not None)

    def turn(self) -> float:
        try:
            self.look()
        except AdapterError as error:
            self._conditions.fails(API_SERVICE, "NotChecked", "it cannot be checked", details=str(error))
        pause = ROUND_SECONDS if self._has_certificate else FIRST_SECONDS
        return pause * random.uniform(0.8, 1.2)  # noqa: S311 - jitter, no secret


def _among(seen: Mapping[ApiGroup, _Seen]) -> Mapping[ApiGroup, _Seen]:
    states = api_service.among({group: each.state for group, each in seen.items()})
    return {group: replace(each, state=states[group]) for group, each in seen.items()}


def _difference(before: Managed | None, after: Managed) -> str:
    if before is None:
        return "new CA and serving certificate"
    return "new serving certificate" if before.authorities == after.authorities else "new CA beside the old one"
