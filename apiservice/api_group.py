"""The API groups that are served. A new group whose reads and lists have the form of external metrics is one more
definition; custom.metrics.k8s.io as the HPA reads it would need paths and items of its own."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class ApiGroup:
    name: str
    version: str
    list_kind: str
    """The kind of the list of values that a read returns."""
    title: str
    """For people, as in "kube-apiserver serves no external metrics"."""

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
API_GROUPS = (EXTERNAL,)
