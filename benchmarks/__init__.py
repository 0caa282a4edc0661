"""Benchmarks of cycles, reads, brokers and the history."""
