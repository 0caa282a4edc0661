"""Signals that come before a process serves."""

import signal
import subprocess
import sys

PROGRAM = """
import signal
from apiservice import signals
asked = signals.noted()
signal.raise_signal(signal.SIGHUP)
print(asked.is_set())
signal.raise_signal(signal.SIGTERM)
print(asked.is_set(), flush=True)
signal.raise_signal(signal.SIGTERM)
print("alive")
"""


def test_the_first_sigterm_is_noted_the_second_one_kills_and_sighup_is_ignored() -> None:
    ended = subprocess.run((sys.executable, "-c", PROGRAM), capture_output=True, text=True, timeout=60, check=False)

    assert (ended.returncode, ended.stdout.split()) == (-signal.SIGTERM, ["False", "True"])
