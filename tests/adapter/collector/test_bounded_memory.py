"""Groups and topics that come and go for hours leave nothing behind."""

import gc
import sys
from collections.abc import Iterator
from types import BuiltinFunctionType, FunctionType, ModuleType

from tests.support import samples
from tests.support.kafka.fake_cluster import Kafka
from tests.support.kafka.rig import Rig

GROUPS_A_ROUND = 150
LONG = "x" * 1000
"""Names may be of any length; long ones show what is kept of them."""


def reachable(root: object) -> Iterator[object]:
    """Everything that hangs on an object, once; code apart."""
    seen, waiting = {id(root)}, [root]
    while waiting:
        one = waiting.pop()
        yield one
        # The collector leaves out keys that are text, as they lead no further.
        for other in (*gc.get_referents(one), *(one if isinstance(one, dict) else ())):
            if id(other) not in seen and not isinstance(other, type | ModuleType | FunctionType | BuiltinFunctionType):
                seen.add(id(other))
                waiting.append(other)


def held(rig: Rig) -> int:
    """Bytes that a cluster's cycle and its readers keep."""
    return sum(sys.getsizeof(one) for root in (rig.cycle, rig.store) for one in reachable(root))


def come_and_go(rig: Rig, number: int) -> None:
    """All groups and topics are new; a reader asks for one of the groups."""
    rig.kafka.topics = {"orders": [1, 2], f"topic-{number}-{LONG}": [1, 2, 3]}
    rig.kafka.commits = {
        f"{number}-{group}-{LONG}": {("orders", 0): 0, (f"topic-{number}-{LONG}", 1): 0}
        for group in range(GROUPS_A_ROUND)
    }
    rig.run()
    rig.read("lag", samples.wants(group=f"{number}-0-{LONG}"))


def test_groups_and_topics_that_come_and_go_leave_nothing_behind() -> None:
    settings = samples.settings(collection={"interval": "30s", "maxAge": "180s"}, rules=[{"groups": ".*"}])
    rig = Rig(Kafka(coordinators={}), settings)
    sizes = []
    for number in range(24):
        come_and_go(rig, number)
        if number in {11, 23}:
            sizes.append(held(rig))

    assert sizes[1] < sizes[0] * 1.1
    assert len(rig.view.layout.groups) <= 6 * GROUPS_A_ROUND
