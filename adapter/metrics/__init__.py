"""The newest view of every cluster, and how a query becomes metric values."""
