"""The cost of a collection cycle."""
