"""Steps up that did not help: members that read no more than fewer did are taken back, and only for a while."""

import math
from dataclasses import replace

import numpy as np

from adapter.verdicts.courses import Course
from adapter.verdicts.required import Basis, Required, required
from tests.support.demands import PROMISE, demand


def stepped_up(read_after: float, read_before: float = 200.0) -> Required:
    """From 2 members that read so much together to 4."""
    course: Course | None = None
    for now in range(0, 400, 10):
        members, read = (2, read_before) if now < 60 else (4, read_after)
        known = demand([90.0] * 4, [9000.0] * 4, members=members, expected_members=members, read=read)
        found, course = required(float(now), known, PROMISE, course)
    return found


def test_members_that_read_no_more_than_fewer_are_taken_back_and_the_limit_is_named() -> None:
    """What they write to or read from limits them."""
    assert stepped_up(read_after=205.0)[:2] == (2, Basis.DOWNSTREAM)


def test_members_that_read_more_stay() -> None:
    assert stepped_up(read_after=390.0).members == 4


def test_a_step_is_not_judged_if_nobody_knows_what_was_read_before_it() -> None:
    assert stepped_up(read_after=300.0, read_before=math.nan).members == 4


def test_members_that_read_all_that_arrives_are_not_limited_when_less_arrives() -> None:
    """From 2 members that read 200 together to 4, and then only 120 arrive: they read no more than that."""
    course: Course | None = None
    for now in range(0, 400, 10):
        members, read, rate = (2, 200.0, 90.0) if now < 60 else (4, 120.0, 30.0)
        known = demand([rate] * 4, [9000.0] * 4, members=members, expected_members=members, read=read)
        found, course = required(float(now), known, PROMISE, course)

    assert found.basis is not Basis.DOWNSTREAM


def test_members_that_read_all_that_arrives_are_not_limited_before_a_load_that_is_expected() -> None:
    """4 members read the 220 that arrive; 360 are expected when the next member would read."""
    before = Course(4, seen=4, step_members=2, step_read=210.0)
    known = demand([90.0] * 4, [9000.0] * 4, members=4, expected_members=4, read=220.0)

    assert required(300.0, replace(known, measured=np.full(4, 55.0)), PROMISE, before)[0].basis is not Basis.DOWNSTREAM
    assert required(300.0, known, PROMISE, before)[0].basis is Basis.DOWNSTREAM


def test_a_step_that_did_not_help_is_tried_again_later() -> None:
    limited = Course(2, limit=2, limited_until=1000.0, seen=2)
    known = demand([90.0] * 4, [9000.0] * 4, members=2, expected_members=2, read=200.0)

    assert required(990.0, known, PROMISE, limited)[0].members == 2
    assert required(1010.0, known, PROMISE, limited)[0].members == 4


def test_a_step_that_did_not_help_is_tried_again_when_more_arrives() -> None:
    limited = Course(2, limit=2, limited_until=1000.0, limited_rate=360.0, seen=2)

    def members(rate: float) -> int:
        known = demand([rate] * 4, [9000.0] * 4, members=2, expected_members=2, read=200.0)
        return required(10.0, known, PROMISE, limited)[0].members

    assert [members(rate) for rate in (90.0, 98.0, 100.0)] == [2, 2, 4]
