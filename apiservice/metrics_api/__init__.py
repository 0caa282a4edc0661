"""The API group external.metrics.k8s.io: values, discovery and selectors."""
