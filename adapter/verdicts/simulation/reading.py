"""What the members of many groups read of what waits, step by step: the arithmetic of `plant`, compiled.

Each group is a lane: a record of its own, records of its members beside one another, and a row of records of its
partitions. A member reads the same share of what waits in each of its partitions. So a step computes only how much
waits for each member. What waits in a partition follows from the share that is left, and is computed when rates change
or partitions move. In between, all rates are constant."""

from adapter.columns import Indexes
from adapter.records import Column
from adapter.verdicts.assignment import UNKNOWN
from adapter.verdicts.owners import Owners
from adapter.verdicts.recent import Counts
from adapter.verdicts.simulation.compiled import kernel, rule
from adapter.verdicts.simulation.consumers import ROW_OF_NOBODY, Messages
from adapter.verdicts.simulation.groups import Arrivals, Ends, Groups, LaneRecord, Lanes, Members, Partitions

_TINY = 1e-300
"""Messages: no member has less to read without having nothing."""


@kernel
def begin_all(groups: Groups, arriving: Arrivals, minute: int) -> None:
    """Lets all begin that happens to each lane in a minute."""
    for at in range(len(groups.lanes)):
        begin_minute(groups, at, arriving, minute)


@kernel
def step_all(groups: Groups, given: Counts, now: float, seconds: float, read: Messages) -> None:
    """Lets the `given` members of each lane read for some seconds, until `now`. Writes what each lane read."""
    for at in range(len(groups.lanes)):
        read[at] = advance(groups, at, given[at], seconds, now % groups.lanes[at].commit_seconds)


@kernel
def divide_all(lanes: Lanes, members: Members, partitions: Partitions, table: Owners) -> None:
    """Assigns the partitions of all lanes for the first time, and adds up what waits."""
    for at in range(len(lanes)):
        lane = lanes[at]
        for place in range(lane.width):
            partitions[at, place].owner = table[lane.first_row + lane.members, place]
        _divide(lane, members, partitions, at)
        lane.lag = 0.0
        for member in range(lane.members + 1):
            lane.lag += members[lane.first_member + member].load


@kernel
def settle(lanes: Lanes, members: Members, partitions: Partitions, at: int) -> None:
    """Computes what waits in each partition of a lane, before it gets others."""
    _settle(lanes[at], members, partitions, at)


@kernel
def divide_again(lanes: Lanes, members: Members, partitions: Partitions, table: Owners, at: int) -> None:
    """Divides the partitions of a lane by its new table of owners."""
    lane = lanes[at]
    _move(lane, members, partitions, at, table, min(lane.given, lane.most))


@kernel
def find_waiting(lanes: Lanes, members: Members, partitions: Partitions, chosen: Indexes, waiting: Messages) -> None:
    """Writes what waits in each partition (columns) of some lanes (rows)."""
    for row in range(len(chosen)):
        at = chosen[row]
        lane = lanes[at]
        find_waiting_of(lane, members, partitions, at, waiting[row])


@kernel
def end_all(groups: Groups, replicas: Counts, ends: Ends, minute: int) -> None:
    """Writes what there is of each lane at the end of a minute, into its column of `ends`."""
    for at in range(len(groups.lanes)):
        end_minute(groups, at, replicas[at], ends, minute)


@rule
def begin_minute(groups: Groups, at: int, arriving: Arrivals, minute: int) -> None:
    """Lets all begin that happens to one lane in a minute."""
    lane, members, owner = groups.lanes[at], groups.members, groups.partitions[at, 0].owner
    lane.working = lane.capacity * arriving.capacity[minute, at]
    _share(lane, members, owner)
    lane.busiest, lane.others = arriving.busiest[minute, at], arriving.others[minute, at]
    _find_growth(lane, members, owner)
    moved = 1.0 if lane.stops_all else 1 / max(lane.members, 1)
    lane.stopped_seconds += arriving.stopped_seconds[minute, at]
    lane.stopped_seconds += 2 * arriving.replaced[minute, at] * moved * lane.pause_seconds


@rule
def advance(groups: Groups, at: int, given: int, seconds: float, since: float) -> float:
    """Lets the `given` members of one lane read for some seconds. Returns what they read. `since`: seconds from the
    latest commit to the end of the step."""
    lanes, members, partitions, table = groups
    lane = lanes[at]
    if given != lane.given:
        _rebalance(lane, members, partitions, at, table, given)
    read = lane.lag + (lane.busiest + lane.others * lane.weights) * seconds
    _step(lane, members, seconds)
    read -= lane.lag
    _commit(lane, seconds, since, read)
    return read


@rule
def end_minute(groups: Groups, at: int, replicas: int, ends: Ends, minute: int) -> None:
    """Writes what there is of one lane (`end_all`)."""
    ends.lag[at, minute], ends.replicas[at, minute] = served_lag(groups.lanes[at]), replicas
    ends.busiest[at, minute], ends.others[at, minute] = _longest_of(groups, at)


@rule
def served_lag(lane: LaneRecord) -> float:
    """Returns what waits and what was read after the latest commit."""
    return lane.lag + lane.uncommitted


@rule
def _longest_of(groups: Groups, at: int) -> tuple[float, float]:
    """Returns what waits in the first partition of one lane, and in the other one in which most waits for its weight,
    divided by the weight."""
    lanes, members, partitions, _ = groups
    lane = lanes[at]
    _share(lane, members, partitions[at, 0].owner)
    longest = 0.0
    for place in range(lane.members + 1):
        member = members[lane.first_member + place]
        if member.weight > 0:
            longest = max(longest, member.longest * member.left + member.gathered)
    return _waiting(lane, members, partitions, at, 0), longest


@rule
def find_waiting_of(
    lane: LaneRecord, members: Members, partitions: Partitions, at: int, waiting: Column[float]
) -> None:
    """Writes what waits in each partition of one lane."""
    _share(lane, members, partitions[at, 0].owner)
    for place in range(lane.width):
        waiting[place] = _waiting(lane, members, partitions, at, place)


@rule
def members_there(lane: LaneRecord) -> int:
    """Returns how many members have partitions, or share all of them; UNKNOWN: the group rebalances."""
    if lane.stopped_seconds > 0:
        return UNKNOWN
    return lane.given if lane.is_shared else lane.members


@rule
def find_owners_of(lane: LaneRecord, partitions: Partitions, at: int, owners: Column[int]) -> None:
    """Writes the member that has each partition of one lane, from 0; negative: nobody."""
    for place in range(lane.width):
        owners[place] = partitions[at, place].owner - ROW_OF_NOBODY - 1


@rule
def _step(lane: LaneRecord, members: Members, seconds: float) -> None:
    lost = 0.0
    if lane.stopped_seconds > 0:
        stopped = min(lane.stopped_seconds, seconds)
        lost = stopped * _work(lane)
        lane.stopped_seconds -= stopped
    lag = 0.0
    for place in range(lane.members + 1):
        member = members[lane.first_member + place]
        load = member.load + member.growth * seconds
        if place > ROW_OF_NOBODY:
            load += lost
        member.load = max(load, 0.0)
        lag += member.load
    lane.lag = lag
    lane.seconds += seconds


@rule
def _commit(lane: LaneRecord, seconds: float, since: float, read: float) -> None:
    """The latest commit within the step has all that was read until then."""
    lane.uncommitted = read * since / seconds if since < seconds else lane.uncommitted + read


@rule
def _rebalance(lane: LaneRecord, members: Members, partitions: Partitions, at: int, table: Owners, given: int) -> None:
    """In a share group, only the work changes."""
    lane.given = given
    there = min(given, lane.most)
    if there != lane.members:
        _move(lane, members, partitions, at, table, there)
    elif lane.is_shared:
        _find_growth(lane, members, partitions[at, 0].owner)


@rule
def _move(lane: LaneRecord, members: Members, partitions: Partitions, at: int, table: Owners, there: int) -> None:
    _settle(lane, members, partitions, at)
    moved = 0
    for place in range(lane.width):
        partition, owner = partitions[at, place], table[lane.first_row + there, place]
        moved += partition.owner != owner
        partition.owner = owner
    lane.stopped_seconds += (1.0 if lane.stops_all else moved / lane.width) * lane.pause_seconds
    lane.members = there
    _divide(lane, members, partitions, at)


@rule
def _settle(lane: LaneRecord, members: Members, partitions: Partitions, at: int) -> None:
    _share(lane, members, partitions[at, 0].owner)
    for place in range(lane.width):
        partitions[at, place].waiting = _waiting(lane, members, partitions, at, place)
    for place in range(lane.members + 1):
        member = members[lane.first_member + place]
        member.left, member.gathered = 1.0, 0.0
    lane.busiest_gathered = 0.0


@rule
def _divide(lane: LaneRecord, members: Members, partitions: Partitions, at: int) -> None:
    """Lets members begin with their partitions, once it is known what waits in each."""
    for place in range(lane.members + 1):
        member = members[lane.first_member + place]
        member.load = member.weight = member.longest = member.gathered = 0.0
        member.left = 1.0
    for place in range(lane.width):
        partition = partitions[at, place]
        member = members[lane.first_member + partition.owner]
        member.load += partition.waiting
        member.weight += partition.weight
        if partition.weight > 0:
            member.longest = max(member.longest, partition.waiting * (1 / partition.weight))
    for place in range(lane.members + 1):
        member = members[lane.first_member + place]
        member.before = member.load
    _find_growth(lane, members, partitions[at, 0].owner)
    lane.busiest_gathered = lane.seconds = 0.0
    lane.moves += 1


@rule
def _share(lane: LaneRecord, members: Members, owner: int) -> None:
    """Computes what is left of each message that waited, or has arrived since this was done last. `owner`: of the first
    partition."""
    if lane.seconds == 0:
        return
    busiest, others = lane.busiest * lane.seconds, lane.others * lane.seconds
    for place in range(lane.members + 1):
        member = members[lane.first_member + place]
        total = member.weight * others + member.before
        if place == owner:
            total += busiest
        left = 1.0 if place == ROW_OF_NOBODY else member.load / max(total, _TINY)
        if place == owner:
            lane.busiest_gathered = (lane.busiest_gathered + busiest) * left
        member.left *= left
        member.gathered = (member.gathered + others) * left
        member.before = member.load
    lane.seconds = 0.0


@rule
def _waiting(lane: LaneRecord, members: Members, partitions: Partitions, at: int, place: int) -> float:
    """Returns what waits in one partition, after `_share`."""
    partition = partitions[at, place]
    member = members[lane.first_member + partition.owner]
    waiting = partition.waiting * member.left + partition.weight * member.gathered
    return waiting + lane.busiest_gathered if place == 0 else waiting


@rule
def _find_growth(lane: LaneRecord, members: Members, owner: int) -> None:
    """`owner`: of the first partition."""
    work = _work(lane)
    for place in range(lane.members + 1):
        member = members[lane.first_member + place]
        growth = member.weight * lane.others
        if place == owner:
            growth += lane.busiest
        member.growth = growth if place == ROW_OF_NOBODY else growth - work


@rule
def _work(lane: LaneRecord) -> float:
    """Returns what one member reads in a second. In a share group, all are one."""
    return lane.working * lane.given if lane.is_shared else lane.working
