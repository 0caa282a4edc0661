"""How the parts of a serving process end."""

from collections.abc import Sequence
from threading import Barrier

import pytest

from apiservice.serving import stop_together

PATIENCE_SECONDS = 30.0


class FakePart:
    """Ends once so many parts are being stopped."""

    def __init__(self, together: Barrier) -> None:
        self._together = together
        self.timeouts: list[float] = []
        self.has_ended = False

    def stop(self, timeout_seconds: float) -> None:
        self.timeouts.append(timeout_seconds)
        self._together.wait(PATIENCE_SECONDS)
        self.has_ended = True


class BrokenPart:
    def stop(self, timeout_seconds: float) -> None:
        raise AssertionError(f"not within {timeout_seconds} s")


class FakeEvents:
    def __init__(self, parts: Sequence[FakePart]) -> None:
        self._parts = parts
        self.ended_before = -1
        """Parts that had ended when this was stopped."""

    def stop(self, timeout_seconds: float) -> None:
        assert timeout_seconds > 0
        self.ended_before = sum(part.has_ended for part in self._parts)


def test_all_parts_are_stopped_at_the_same_time_and_then_what_posts_their_last_events() -> None:
    together = Barrier(16)
    parts = [FakePart(together) for _ in range(together.parties)]
    events = FakeEvents(parts)

    stop_together(parts, events, 1.0)

    assert [part.timeouts for part in parts] == [[1.0]] * together.parties
    assert events.ended_before == together.parties


def test_an_error_of_one_part_keeps_no_other_from_its_end() -> None:
    last = FakePart(Barrier(1))
    events = FakeEvents([last])

    with pytest.raises(AssertionError, match="not within"):
        stop_together([BrokenPart(), last], events, 1.0)

    assert last.timeouts == [1.0]
    assert events.ended_before == 1
