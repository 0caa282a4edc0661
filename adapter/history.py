"""The writer of the offset history."""
