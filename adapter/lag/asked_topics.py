"""What the selectors of HPAs ask for."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class AskedTopics:
    """Topics of a group that the selector of one HPA names."""

    namespace: str
    """Of the HPA: rules and tenancy decide what it may read."""
    cluster: str | None
    """None: every cluster."""
    group: str
    topics: frozenset[str]
