"""The API group that is served."""

GROUP = "external.metrics.k8s.io"
VERSION = "v1beta1"
