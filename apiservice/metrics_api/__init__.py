"""The API group external.metrics.k8s.io: its values, its discovery, its selectors."""
