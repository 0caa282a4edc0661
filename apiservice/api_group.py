"""The API groups that are served. A new group whose reads and lists have the form of external metrics is one more
definition."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class ApiGroup:
    """One version of a group."""

    name: str
    version: str
    list_kind: str
    """The kind of the list of values that a read returns."""
    title: str
    """For people, as in "kube-apiserver serves no external metrics"."""
    priority: int = 100
    """The version with the highest one is preferred."""
    describes_objects: bool = False
    """Whether a read names an object and the metric as its subresource, and each value describes an object."""
    has_metric_field: bool = False
    """Whether a value of an object has the metric's name and selector in the field `metric`."""

    @property
    def group_version(self) -> str:
        return f"{self.name}/{self.version}"

    @property
    def path(self) -> str:
        return f"/apis/{self.group_version}"

    @property
    def api_service(self) -> str:
        """The name of the APIService. A cluster can have only one of this name."""
        return f"{self.version}.{self.name}"


EXTERNAL = ApiGroup("external.metrics.k8s.io", "v1beta1", "ExternalMetricValueList", "external metrics")
CUSTOM_V1BETA1 = ApiGroup(
    "custom.metrics.k8s.io", "v1beta1", "MetricValueList", "custom metrics", describes_objects=True
)
CUSTOM_V1BETA2 = ApiGroup(
    "custom.metrics.k8s.io",
    "v1beta2",
    "MetricValueList",
    "custom metrics",
    priority=200,
    describes_objects=True,
    has_metric_field=True,
)
CUSTOM = (CUSTOM_V1BETA2, CUSTOM_V1BETA1)
API_GROUPS = (EXTERNAL, *CUSTOM)
"""Of one name, the preferred version first."""


def registered(*, custom_metrics: bool) -> tuple[ApiGroup, ...]:
    """Returns those whose APIServices are to lead to the adapter."""
    return API_GROUPS if custom_metrics else (EXTERNAL,)
