"""The replacement of a running adapter's settings when their file changes."""
