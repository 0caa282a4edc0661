"""What was gathered of the Kubernetes cluster, as kube-apiserver answered."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from apiservice.api_group import CUSTOM, EXTERNAL, ApiGroup
from apiservice.registration.api_service import ApiServiceState, Service, among, is_ours, state_of, unread
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
class Way:
    """How kube-apiserver gets to the metrics of one API group."""

    api_service: Answer = NOT_ASKED
    discovery: Answer = NOT_ASKED
    """Its list of metrics, through kube-apiserver."""


def verb_of(group: ApiGroup) -> str:
    """Returns the RBAC verb that the HPA controller needs. It reads an object's metric by the object's name, or `*`."""
    return "get" if group.describes_objects else "list"


@dataclass(frozen=True, slots=True)
class ClusterFacts:
    given: Service
    """That of the flag `--service`, or its default."""
    version: Answer
    ways: Mapping[ApiGroup, Way] = field(default_factory=dict)
    """Of external metrics, and of others that the settings register."""
    authentication: Answer = NOT_ASKED
    """The ConfigMap with kube-apiserver's settings for extension API servers."""
    reviews: Mapping[ApiGroup, Answer] = field(default_factory=dict)
    """Whether the account of the HPA controller may read, for one version of each group."""
    dry_run: Answer = NOT_ASKED
    """Of an HPA that scales to zero."""
    rights: tuple[Right, ...] = ()
    replicas: tuple[Replica, ...] | str = NOT_ASKED.problem
    """The pods of the Service; a text: why they are not known."""

    @property
    def external(self) -> Way:
        return self.ways.get(EXTERNAL, Way())

    @property
    def has_custom_metrics(self) -> bool:
        """Whether the settings register custom metrics, for which external ones may stay with another server."""
        return any(group in self.ways for group in CUSTOM)

    @property
    def service(self) -> Service:
        """The adapter's: a release of the chart has a name of its own, which contains the product's."""
        for way in self.ways.values():
            holder = ((way.api_service.document or {}).get("spec") or {}).get("service") or {}
            if PRODUCT in holder.get("name", "") and self.given.name == PRODUCT:
                return Service(holder["namespace"], holder["name"], holder.get("port", 443))
        return self.given

    @property
    def states(self) -> Mapping[ApiGroup, ApiServiceState]:
        """What the APIServices say of themselves."""
        return among({group: self._state(group, way.api_service) for group, way in self.ways.items()})

    def _state(self, group: ApiGroup, answer: Answer) -> ApiServiceState:
        if answer.document is None and not answer.is_absent:
            return unread(group, answer.problem)
        return state_of(group, answer.document, self.service, None)

    @property
    def served(self) -> tuple[str, ...]:
        """The metrics that the running adapter lists; empty: it was not reached."""
        discovery = self.external.discovery.document
        is_reached = discovery is not None and is_ours(self.external.api_service.document, self.service)
        resources = (discovery or {}).get("resources") if is_reached else ()
        return tuple(each["name"] for each in resources or ())


@dataclass(frozen=True, slots=True)
class HpaFacts:
    values: tuple[tuple[str, Answer], ...] = ()
    """Each External metric, with its values through kube-apiserver."""
    target: Answer = NOT_ASKED
    """The Deployment that it scales, if it is one."""
