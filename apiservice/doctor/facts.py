"""What was gathered of the Kubernetes cluster, as kube-apiserver answered."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from apiservice.registration.api_service import Service

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
class ClusterFacts:
    service: Service
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


@dataclass(frozen=True, slots=True)
class HpaFacts:
    values: tuple[tuple[str, Answer], ...] = ()
    """Each External metric, with its values through kube-apiserver."""
    target: Answer = NOT_ASKED
    """The Deployment that it scales, if it is one."""


def text_of_selector(selector: Mapping[str, Any]) -> str:
    """Returns a LabelSelector as the HPA controller sends it."""
    words = {
        "In": "{key} in ({values})",
        "NotIn": "{key} notin ({values})",
        "Exists": "{key}",
        "DoesNotExist": "!{key}",
    }
    labels = [f"{key}={value}" for key, value in (selector.get("matchLabels") or {}).items()]
    expressions = [
        words[each["operator"]].format(key=each["key"], values=",".join(each.get("values") or ()))
        for each in selector.get("matchExpressions") or ()
        if each["operator"] in words
    ]
    return ",".join([*labels, *expressions])
