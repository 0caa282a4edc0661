"""Collects the offsets of one cluster in cycles: rows, commits and log ends."""
