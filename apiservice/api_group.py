"""The API group that is served."""

GROUP = "external.metrics.k8s.io"
VERSION = "v1beta1"
API_SERVICE = f"{VERSION}.{GROUP}"
"""The name of the APIService. A cluster can have only one of this name."""
