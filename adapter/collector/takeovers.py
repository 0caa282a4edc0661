"""Which groups have a new coordinator: for a moment it reports old commits, or none, without an error.

A broker that becomes the leader of a partition of `__consumer_offsets` reads all of it, but reports only what it knows
to be replicated. Until its followers have asked it once, about 0.3 s, that is what it knew as a follower.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

import numpy as np

from adapter.cluster.groups import NOBODY
from adapter.columns import NEVER, Codes, Flags

TAKEOVER_SECONDS = 30.0
"""Kafka's default for replica.lag.time.max.ms: a follower that does not ask leaves the set of replicas after that."""
LOST = -2
"""No node has this number."""


class Takeovers:
    """The coordinators of one cluster's groups, as they answered. Used by one thread."""

    def __init__(self) -> None:
        self._groups: tuple[str, ...] = ()
        self._codes: Mapping[str, int] = {}
        self._node = np.empty(0, dtype=np.int32)
        """Of each group: who answered last; NOBODY: nobody ever has; LOST: that one has refused it since."""
        self._since = np.empty(0)
        """Of each group: when its newest coordinator first answered; NEVER if it is the first one."""

    def follow(self, groups: tuple[str, ...], codes: Mapping[str, int]) -> None:
        """`groups` is the same object while nothing changes."""
        if groups is self._groups:
            return
        node, since = np.full(len(groups), NOBODY, dtype=np.int32), np.full(len(groups), NEVER)
        both = [group for group in groups if group in self._codes]
        new, old = [codes[group] for group in both], [self._codes[group] for group in both]
        node[new], since[new] = self._node[old], self._since[old]
        self._groups, self._codes, self._node, self._since = groups, codes, node, since

    def note_answer(self, codes: Codes, node: int, received: float) -> Flags:
        """Returns whether the node has taken over each of these groups a moment ago."""
        is_new = (self._node[codes] != node) & (self._node[codes] != NOBODY)
        self._since[codes[is_new]] = received
        self._node[codes] = node
        is_recent: Flags = received - self._since[codes] < TAKEOVER_SECONDS
        return is_recent

    def note_lost(self, groups: Iterable[str]) -> None:
        """Their coordinator refused them, or ended: the next answer is of a new one, be it the same node."""
        codes = np.array([self._codes[group] for group in groups], dtype=np.intp)
        self._node[codes] = np.where(self._node[codes] == NOBODY, NOBODY, LOST)
