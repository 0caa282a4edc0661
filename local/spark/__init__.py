"""Spark's own standalone cluster on this machine, and what its executors need."""
