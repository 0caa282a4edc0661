"""The main promise where topics, groups and brokers change: a value was true at the time that it carries."""

import os

import pytest

from adapter.metrics.problems import NoMatch, ValueUnavailable
from tests.support.kafka.changing_world import GROUPS, World

WORLDS, CYCLES = int(os.environ.get("PROMISE_WORLDS", "4")), 60


@pytest.mark.parametrize("is_calm", [True, False], ids=["calm", "broken"])
@pytest.mark.parametrize("max_age", ["60s", "160s"])
@pytest.mark.parametrize("has_rules", [False, True], ids=["without rules", "with rules"])
def test_what_is_served_was_true_since_the_time_it_carries(*, has_rules: bool, max_age: str, is_calm: bool) -> None:
    served = 0
    for seed in range(WORLDS):
        world = World(seed, has_rules=has_rules, max_age=max_age, is_calm=is_calm)
        for cycle in range(CYCLES):
            world.move_on()
            world.break_something()
            world.rig.run()
            world.note_what_is_true()
            for group in GROUPS:
                try:
                    items = world.items(group)
                except (NoMatch, ValueUnavailable):
                    continue
                served += 1
                assert [item for item in items if not world.is_true(item)] == [], (seed, cycle, group)
                assert world.left_out(group, items) == [], (seed, cycle, group)

    assert served > WORLDS * CYCLES / 2, "too little was served for a proof"
