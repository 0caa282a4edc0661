"""What was gathered of the Kubernetes cluster, as kube-apiserver answered."""

from dataclasses import dataclass
from typing import Any

from apiservice.api_group import EXTERNAL
from apiservice.registration.api_service import ApiServiceState, Service, is_ours, state_of
from apiservice.tls.issuing import PRODUCT

Json = dict[str, Any]


@dataclass(frozen=True, slots=True)
class Answer:
    """An object, or why there is none."""

    document: Json | None = None
    problem: str = ""
    status: int | None = None
    """HTTP's, if there is a problem."""

    @property
    def is_absent(self) -> bool:
        return self.status == 404

    @property
    def is_forbidden(self) -> bool:
        """Whether it is only the user of this command who may not have it."""
        return self.status == 403

    @property
    def is_allowed(self) -> bool | None:
        """What a review of rights says; None: there was no answer."""
        return None if self.document is None else bool((self.document.get("status") or {}).get("allowed"))


@dataclass(frozen=True, slots=True)
class Right:
    """Whether the user may create such objects."""

    resource: str
    namespace: str
    """Empty: of the whole cluster."""
    review: Answer


NOT_ASKED = Answer(None, "it was not asked")
LATE = Answer(None, "there was no time left to ask")


@dataclass(frozen=True, slots=True)
class Replica:
    """A pod of the adapter."""

    name: str
    is_ready: bool
    """As kubelet found it."""
    says: str = ""
    """Its `/readyz?verbose`, through kube-apiserver; empty: it was not read."""
    problem: str = ""
    """Why it was not read."""


@dataclass(frozen=True, slots=True)
class ClusterFacts:
    given: Service
    """That of the flag `--service`, or its default."""
    version: Answer
    api_service: Answer = NOT_ASKED
    authentication: Answer = NOT_ASKED
    """The ConfigMap with kube-apiserver's settings for extension API servers."""
    discovery: Answer = NOT_ASKED
    """Of external metrics, through kube-apiserver."""
    review: Answer = NOT_ASKED
    """Whether the account of the HPA controller may read."""
    dry_run: Answer = NOT_ASKED
    """Of an HPA that scales to zero."""
    rights: tuple[Right, ...] = ()
    replicas: tuple[Replica, ...] | str = NOT_ASKED.problem
    """The pods of the Service; a text: why they are not known."""

    @property
    def service(self) -> Service:
        """The adapter's: a release of the chart has a name of its own, which contains the product's."""
        holder = ((self.api_service.document or {}).get("spec") or {}).get("service") or {}
        if PRODUCT in holder.get("name", "") and self.given.name == PRODUCT:
            return Service(holder["namespace"], holder["name"], holder.get("port", 443))
        return self.given

    @property
    def state(self) -> ApiServiceState:
        """What the APIService of external metrics says of itself."""
        return state_of(EXTERNAL, self.api_service.document, self.service, None)

    @property
    def served(self) -> tuple[str, ...]:
        """The metrics that the running adapter lists; empty: it was not reached."""
        is_reached = self.discovery.document is not None and is_ours(self.api_service.document, self.service)
        resources = (self.discovery.document or {}).get("resources") if is_reached else ()
        return tuple(each["name"] for each in resources or ())


@dataclass(frozen=True, slots=True)
class HpaFacts:
    values: tuple[tuple[str, Answer], ...] = ()
    """Each External metric, with its values through kube-apiserver."""
    target: Answer = NOT_ASKED
    """The Deployment that it scales, if it is one."""
