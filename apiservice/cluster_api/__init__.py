"""The client of the Kubernetes API server; only this package imports kubernetes."""
