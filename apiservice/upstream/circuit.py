"""Whether a server that does not answer is asked again.

After some failures in a row, reads are refused at once, and one at a time is let through as a trial."""

from collections.abc import Callable

FAILURES = 3
PAUSE_SECONDS = 10.0
"""Between two trials, shorter than the 15 s between two reads of an HPA."""
FORGET_SECONDS = 60.0
"""A failure this long ago, with no read since, says nothing about the server now."""


class Circuit:
    """For one event loop; the properties can be read from any thread."""

    def __init__(self, monotonic: Callable[[], float]) -> None:
        self._monotonic = monotonic
        self.answers = 0
        """That were received so far."""
        self._failures = 0
        self._failed_at = self._trial_at = 0.0
        self.reason = ""
        """Why the latest failure failed."""

    @property
    def problem(self) -> str:
        """Returns why reads are refused; empty: they are not, or nothing is known."""
        is_open = self._failures >= FAILURES and self._monotonic() < self._failed_at + FORGET_SECONDS
        return self.reason if is_open else ""

    def admits(self) -> bool:
        """Returns whether this read may be sent; one that may should end with `succeed` or `fail`."""
        if self._failures < FAILURES:
            return True
        now = self._monotonic()
        is_trial = now >= self._trial_at
        if is_trial:
            self._trial_at = now + PAUSE_SECONDS
        return is_trial

    def succeed(self) -> None:
        self.answers += 1
        self._failures = 0

    def fail(self, reason: str, answers_before: int) -> None:
        """`answers_before` is `answers` when the read was sent: if others were answered since, only this one fails."""
        if self.answers != answers_before:
            return
        self._failures += 1
        self.reason = reason
        self._failed_at = self._monotonic()
        self._trial_at = self._failed_at + PAUSE_SECONDS
