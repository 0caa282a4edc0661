"""What `top` refuses, in one sentence and with status 2."""

import contextlib
import signal
import subprocess
import sys

import pytest

from apiservice.commands.top import ended_by_the_user

NOWHERE = ("--bootstrap-servers", "127.0.0.1:1")


@pytest.mark.parametrize(
    ("flags", "sentence"),
    [
        ((), "--config FILE or --bootstrap-servers HOST:PORT is required"),
        ((*NOWHERE, "--config", "x"), "--config and --bootstrap-servers cannot be used together"),
        ((*NOWHERE, "--interval", "1ms"), "--interval: must be at least 500ms"),
        ((*NOWHERE, "--output", "xml"), "--output: 'xml' is not one of 'table', 'json', 'csv'"),
        (
            (*NOWHERE, "--once"),
            "cluster main cannot be read: bootstrap server 127.0.0.1:1 refuses the connection",
        ),
    ],
)
def test_what_cannot_be_shown_is_one_sentence(flags: tuple[str, ...], sentence: str) -> None:
    command = [sys.executable, "-m", "apiservice", "top", *flags]
    ended = subprocess.run(command, capture_output=True, text=True, timeout=180, check=False)

    assert (ended.returncode, ended.stdout) == (2, "")
    assert ended.stderr == f"kafka-lag-adapter: {sentence}\n"


def test_an_interruption_that_a_library_took_for_its_own_ends_it_at_the_next_look() -> None:
    steps, before = list[str](), signal.getsignal(signal.SIGINT)

    with ended_by_the_user() as end_if_asked:
        end_if_asked()
        with contextlib.suppress(KeyboardInterrupt):
            signal.raise_signal(signal.SIGINT)
        steps.append("lost")
        end_if_asked()
        steps.append("shown")

    assert steps == ["lost"]
    assert signal.getsignal(signal.SIGINT) is before
