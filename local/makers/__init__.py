"""Brokers on this machine that answer as those of other makers and of older releases do."""
