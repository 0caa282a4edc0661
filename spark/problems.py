"""What ends a run with a sentence instead of tables."""

from __future__ import annotations


class Unusable(Exception):
    """The location or a flag cannot be used: status 2; the text is meant for the user."""


class Interrupted(Exception):
    """SIGTERM or SIGINT came: status 143, and what was begun is begun again by the next run."""
