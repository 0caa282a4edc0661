"""The latest view of every cluster, and queries that return metric values."""
