"""Offset histories that are made up, in the adapter's own format."""
