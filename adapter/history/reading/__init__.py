"""Reads the samples of a history: by the adapter after a restart, and by the reports."""
