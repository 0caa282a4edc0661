import contextlib
import gc
import time
from dataclasses import replace
from pathlib import Path

import pytest

from apiservice.http.protocol import CONNECTION_BYTES
from local.processes import wait_until
from tests.support.kubernetes.listeners import (
    PATIENT,
    PROXY,
    REQUEST,
    SECONDS,
    Running,
    connected,
    get,
    is_closed,
    raw,
    serving,
    wait_for_end,
)

ROOM_FOR_THREE = 4 * CONNECTION_BYTES - 1  # and for what they send


def test_the_stranger_that_came_first_goes_for_one_too_many(tmp_path: Path) -> None:
    with serving(tmp_path, replace(PATIENT, strangers=ROOM_FOR_THREE)) as running, contextlib.ExitStack() as stack:
        idle = [stack.enter_context(connected(running.plain)) for _ in range(5)]

        assert all(is_closed(connection) for connection in idle[:2])
        idle[4].sendall(REQUEST)
        assert idle[4].recv(12) == b"HTTP/1.1 200"


def test_an_answer_that_a_stranger_does_not_read_counts_as_its_memory(tmp_path: Path) -> None:
    with serving(tmp_path, replace(PATIENT, strangers=ROOM_FOR_THREE)) as running, contextlib.ExitStack() as stack:
        first = stack.enter_context(connected(running.plain))
        stack.enter_context(connected(running.plain, REQUEST.replace(b"/ ", b"/large ")))

        assert is_closed(first)


def test_connections_without_a_handshake_count_too(tmp_path: Path) -> None:
    with serving(tmp_path, replace(PATIENT, strangers=ROOM_FOR_THREE)) as running, contextlib.ExitStack() as stack:
        silent = [stack.enter_context(connected(running.secure)) for _ in range(5)]

        assert all(is_closed(connection) for connection in silent[:2])
        assert get(running.connect(PROXY))[0] == 200


def test_strangers_close_no_connection_of_a_known_caller(tmp_path: Path) -> None:
    with serving(tmp_path, replace(PATIENT, strangers=ROOM_FOR_THREE)) as running, contextlib.ExitStack() as stack:
        known = running.connect(PROXY)
        assert get(known, "/known")[0] == 200
        kept = known.sock
        strangers = [stack.enter_context(connected(running.secure)) for _ in range(10)]
        assert is_closed(strangers[0])

        assert get(known)[0] == 200
        assert known.sock is kept


def test_known_callers_beyond_the_bound_are_answered_and_not_kept(tmp_path: Path) -> None:
    with serving(tmp_path, replace(PATIENT, known=1)) as running:
        first, second = running.connect(PROXY), running.connect(PROXY)
        assert get(first, "/known")[0] == 200
        second.request("GET", "/known")
        answer = second.getresponse()

        assert (answer.status, answer.headers["connection"]) == (200, "close")
        assert get(first, "/known")[0] == 200
        first.close()
        assert is_kept_at_last(running)


def is_kept_at_last(running: Running, seconds: float = SECONDS) -> bool:
    """Whether a new caller's connection is kept once the server has seen that another one is gone."""
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        connection = running.connect(PROXY)
        connection.request("GET", "/known")
        answer = connection.getresponse()
        if answer.read() and answer.headers["connection"] is None:
            return True
    return False


def test_closed_connections_are_freed_at_once(running: Running) -> None:
    """Strangers could otherwise make garbage faster than it is collected."""
    requests = (
        REQUEST.replace(b"\r\n\r\n", b"\r\nConnection: close\r\n\r\n"),
        b"GET / HTTP/1.1\r\n" + b"a:b\r\n" * 1000,
        b"no HTTP at all\r\n\r\n",
    )
    gc.collect()
    gc.disable()
    try:
        for request in requests:
            assert raw(running.plain, request).startswith(b"HTTP/1.1 ")
        with connected(running.secure, REQUEST) as without_tls:
            assert is_closed(without_tls)
        wait_until(
            lambda: not any(type(each).__name__ == "PeerProtocol" for each in gc.get_objects()),
            "closed connections to leave memory",
            SECONDS,
        )
    finally:
        gc.enable()


def test_a_request_ends_with_its_connection(running: Running, caplog: pytest.LogCaptureFixture) -> None:
    with connected(running.plain, REQUEST.replace(b"/", b"/slow", 1)):
        assert running.application.begun.wait(SECONDS)

    assert running.application.ended.wait(SECONDS)
    assert raw(running.plain, REQUEST.replace(b"\r\n\r\n", b"\r\nConnection: close\r\n\r\n")).endswith(b"[]")
    assert not caplog.records


def test_a_handshake_under_way_does_not_hold_up_the_end(tmp_path: Path) -> None:
    with serving(tmp_path, PATIENT) as running, connected(running.secure):
        assert get(running.connect_plain())[0] == 200
        running.stop()

        assert wait_for_end(running)
