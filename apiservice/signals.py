"""Signals that come before a process serves.

In a container, where the process has the number 1, the kernel drops signals that it does not handle. So a pod that is
deleted while its program is loaded, or while it waits for kube-apiserver, would be killed half a minute later."""

import signal
from threading import Event


def noted() -> Event:
    """Returns the event that SIGTERM sets from now on; a second one kills. SIGHUP, by which other servers read their
    settings again, is ignored."""
    asked = Event()

    def note(*_: object) -> None:
        # First, because a handler that interrupts itself would wait for itself in `set`.
        signal.signal(signal.SIGTERM, signal.SIG_DFL)
        asked.set()

    signal.signal(signal.SIGTERM, note)
    signal.signal(signal.SIGHUP, signal.SIG_IGN)
    return asked
