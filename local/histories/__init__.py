"""Generated offset histories in the adapter's own format."""
