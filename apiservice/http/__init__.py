"""The HTTP layer: listeners with limits, headers and queries, errors, replies and health."""
