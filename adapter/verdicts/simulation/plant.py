"""A group of consumers as an autoscaler sees it, for many groups at once: replicas that start, join and leave, whole
partitions that are divided among them, and what waits in each partition."""

from collections.abc import Sequence

import numpy as np

from adapter.columns import Indexes
from adapter.records import records_of
from adapter.verdicts.recent import Counts
from adapter.verdicts.simulation.consumers import ROW_OF_NOBODY, Consumers, Messages, owner_rows
from adapter.verdicts.simulation.groups import Arrivals, Ends, Groups, LaneRecord, MemberRecord, PartitionRecord
from adapter.verdicts.simulation.reading import (
    begin_all,
    divide_again,
    divide_all,
    end_all,
    find_waiting,
    settle,
    step_all,
)


class Plant:
    """Moves all lanes from step to step."""

    def __init__(
        self,
        groups: Sequence[Consumers],
        waiting: Messages,
        members: Counts,
        weights: Messages | None = None,
        rooms: Sequence[int] | None = None,
    ) -> None:
        """`waiting`: messages in each partition (columns) of each group (rows) at the start, as wide as the widest.
        `weights`: how much the partitions get, compared with others of the group; the first one's has no meaning. None:
        all get the same. `rooms`: the most partitions that each group will have; None: as many as the widest."""
        lanes, width = waiting.shape
        self._lanes = it = records_of(LaneRecord, lanes)
        for name in ("capacity", "pause_seconds", "commit_seconds", "width"):
            it[name] = [getattr(group, name) for group in groups]
        it["working"] = it["capacity"]
        it["stops_all"] = [group.assignor is not None and group.assignor.stops_all for group in groups]
        it["is_shared"] = [group.assignor is None for group in groups]
        it["most"] = np.where(it["is_shared"], 1, it["width"])
        it["first_row"], self._tables = owner_rows(groups, width)
        it["given"], it["members"] = members, np.minimum(members, it["most"])
        numbers = np.where(it["is_shared"], 2, 1 + np.array([width] * lanes if rooms is None else rooms))
        it["first_member"] = np.cumsum(numbers) - numbers
        self._members = records_of(MemberRecord, int(numbers.sum()))
        self._partitions = records_of(PartitionRecord, lanes, width)
        exists = np.arange(width) < it["width"][:, np.newaxis]
        self._partitions["waiting"] = waiting
        self._partitions["weight"] = exists if weights is None else np.where(exists, weights, 0.0)
        self._partitions["weight"][:, 0] = 0.0
        self._partitions["owner"] = ROW_OF_NOBODY
        self._weigh(np.arange(lanes))
        self._state = self._lanes, self._members, self._partitions
        divide_all(*self._state, self._tables)
        self.grown = 0
        """How often a group got more partitions."""

    @property
    def lag(self) -> Messages:
        """Messages that nobody has read: a view, which the next step changes."""
        lag: Messages = self._lanes["lag"]
        return lag

    @property
    def uncommitted(self) -> Messages:
        """Messages that were read after the latest commit: a view, too."""
        uncommitted: Messages = self._lanes["uncommitted"]
        return uncommitted

    @property
    def groups(self) -> Groups:
        """What kernels work on."""
        return Groups(*self._state, self._tables)

    def begin(self, arriving: Arrivals, minute: int) -> None:
        """Lets all begin that happens in a minute."""
        begin_all(self.groups, arriving, minute)

    def grow(self, lane: int, group: Consumers, weights: Messages) -> None:
        """Adds partitions to a lane, so that it is such a group."""
        settle(*self._state, lane)
        it = self._lanes[lane]
        it.first_row = len(self._tables)
        self._tables = np.concatenate([self._tables, owner_rows([group], self._partitions.shape[1])[1]])
        it.most = it.most if it.is_shared else group.width
        it.width = group.width
        self._partitions["weight"][lane, 1 : group.width] = weights[1:]
        self._weigh(np.array([lane]))
        divide_again(*self._state, self._tables, lane)
        self.grown += 1

    def weights(self, lanes: Indexes) -> Messages:
        """Returns those of the partitions (columns), where the first one's has no meaning."""
        weights: Messages = self._partitions["weight"][lanes]
        return weights

    def widths(self, lanes: Indexes) -> Counts:
        """Returns how many partitions exist."""
        widths: Counts = self._lanes["width"][lanes]
        return widths

    def step(self, now: float, seconds: float, members: Counts) -> Messages:
        """Lets so many members of each group read for some seconds, until `now`. Returns what each group read."""
        read = np.empty(len(self._lanes))
        # For an int, numba would compile the kernel once more.
        step_all(self.groups, members, float(now), seconds, read)
        return read

    def end(self, replicas: Counts, ends: Ends, minute: int) -> None:
        """Writes what there is at the end of a minute, into its column of `ends`."""
        end_all(self.groups, replicas, ends, minute)

    def waiting(self, lanes: Indexes) -> Messages:
        """Returns what waits in each partition (columns) of some lanes (rows)."""
        waiting = np.zeros((len(lanes), self._partitions.shape[1]))
        find_waiting(*self._state, lanes, waiting)
        return waiting

    def _weigh(self, lanes: Indexes) -> None:
        self._lanes["weights"][lanes] = self._partitions["weight"][lanes].sum(axis=1)
