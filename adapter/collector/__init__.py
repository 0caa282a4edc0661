"""Collects one cluster's offsets in cycles: which rows there are, their commits and their log ends."""
