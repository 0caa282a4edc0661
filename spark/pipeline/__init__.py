"""Compaction: which hours need it, and how their tables are made and published."""
