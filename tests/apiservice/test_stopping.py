"""How the parts of a serving process end."""

from threading import Barrier

import pytest

from apiservice.serving import stop_together

PATIENCE_SECONDS = 30.0


class FakePart:
    """Ends once so many parts are being stopped."""

    def __init__(self, together: Barrier) -> None:
        self._together = together
        self.timeouts: list[float] = []

    def stop(self, timeout_seconds: float) -> None:
        self.timeouts.append(timeout_seconds)
        self._together.wait(PATIENCE_SECONDS)


class BrokenPart:
    def stop(self, timeout_seconds: float) -> None:
        raise AssertionError(f"not within {timeout_seconds} s")


def test_all_parts_are_stopped_at_the_same_time() -> None:
    together = Barrier(16)
    parts = [FakePart(together) for _ in range(together.parties)]

    stop_together(parts, 1.0)

    assert [part.timeouts for part in parts] == [[1.0]] * together.parties


def test_an_error_of_one_part_keeps_no_other_from_its_end() -> None:
    last = FakePart(Barrier(1))

    with pytest.raises(AssertionError, match="not within"):
        stop_together([BrokenPart(), last], 1.0)

    assert last.timeouts == [1.0]
