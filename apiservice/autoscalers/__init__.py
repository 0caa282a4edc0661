"""The HPAs of the cluster that use our metrics, and what they ask for."""
