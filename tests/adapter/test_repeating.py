"""Work that a thread repeats until it is stopped."""

import pytest

from adapter import repeating
from adapter.repeating import Repeating
from tests.adapter.collector.test_threads import wait_until


class Counting(Repeating):
    """Fails in its first turn."""

    def __init__(self) -> None:
        super().__init__("counting")
        self.turns = 0

    def turn(self) -> float:
        self.turns += 1
        if self.turns == 1:
            raise ZeroDivisionError("nobody thought of it")
        return 0.001


def test_an_unexpected_error_is_logged_and_the_next_turn_comes(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(repeating, "RETRY_SECONDS", 0.001)
    counting = Counting()
    counting.start()
    try:
        wait_until(lambda: counting.turns > 2)
    finally:
        counting.stop(60.0)
    turns = counting.turns

    assert "unexpected error in thread counting" in caplog.text
    assert "ZeroDivisionError" in caplog.text
    assert counting.turns == turns


def test_a_pause_that_no_thread_can_wait_for_ends_no_thread() -> None:
    class Patient(Counting):
        def turn(self) -> float:
            self.turns += 1
            return 1e300

    patient = Patient()
    patient.start()
    try:
        wait_until(lambda: patient.turns > 0)
        patient._thread.join(0.1)
        assert patient._thread.is_alive()
    finally:
        patient.stop(60.0)


def test_what_was_never_started_can_be_stopped() -> None:
    counting = Counting()

    counting.stop(60.0)

    assert counting.turns == 0
