"""Peers that never answer, names that resolve slowly, clocks that jump; the brokers are a fake."""

import contextlib
import socket
import threading
import time
from collections.abc import Iterator
from typing import Any

import pytest

from tests.support.kafka.spoilt_cluster import CALL_SECONDS, LONG, fake, nothing_unforeseen, one_of, reading, settings
from tests.support.kafka.wire_fake import WireFake
from tests.support.kubernetes.served import LAG, Served, ShiftedClock, Watcher, served
from tests.support.samples import wants

__all__ = ["fake", "nothing_unforeseen"]

SLOW = "slow.invalid"


@contextlib.contextmanager
def black_hole() -> Iterator[int]:
    """A port whose queue of connections is full: whoever connects hears nothing at all."""
    with contextlib.ExitStack() as stack:
        listener = stack.enter_context(socket.socket())
        listener.bind(("127.0.0.1", 0))
        listener.listen(0)
        for _ in range(4):
            waiting = stack.enter_context(socket.socket())
            waiting.setblocking(False)
            waiting.connect_ex(listener.getsockname())
        yield listener.getsockname()[1]


def at(name: str, address: str, **security: object) -> dict[str, object]:
    return {"name": name, "bootstrapServers": [address], "security": security}


def main_is_read_all_along(running: Served, fake: WireFake, other: str, words: str) -> None:
    """While the other cluster is refused for this reason."""
    running.wait_for_lag(19, "mail", cluster="main")
    running.wait_for_refusal(words, "mail", cluster=other)
    running.wait_for_cycles(10, "main")
    fake.kafka.ends["letters", 0] += 1
    running.wait_for_lag(20, "mail", cluster="main")


def test_a_tls_peer_that_accepts_and_never_answers_delays_no_other_broker(fake: WireFake) -> None:
    with socket.create_server(("127.0.0.1", 0)) as silent:
        clusters = (fake.cluster(), at("tls", f"127.0.0.1:{silent.getsockname()[1]}", protocol="SSL"))
        with served(settings(*clusters), call_seconds=CALL_SECONDS) as running:
            main_is_read_all_along(running, fake, "tls", "does not answer")


def test_a_black_holed_address_delays_no_other_broker(fake: WireFake) -> None:
    with black_hole() as port:
        clusters = (fake.cluster(), at("hole", f"127.0.0.1:{port}"))
        with served(settings(*clusters), call_seconds=CALL_SECONDS) as running:
            main_is_read_all_along(running, fake, "hole", "does not answer")


def test_a_name_that_resolves_slowly_holds_up_its_cluster_alone(
    fake: WireFake, monkeypatch: pytest.MonkeyPatch
) -> None:
    freed, resolve = threading.Event(), socket.getaddrinfo

    def slowly(host: Any, *others: Any) -> Any:  # noqa: ANN401 - as the standard library has it
        if host == SLOW:
            freed.wait(600)
            return resolve("127.0.0.1", *others)
        return resolve(host, *others)

    monkeypatch.setattr(socket, "getaddrinfo", slowly)
    clusters = (fake.cluster(), at("slow", f"{SLOW}:{fake.ports[1]}"))
    with served(settings(*clusters), call_seconds=CALL_SECONDS) as running:
        try:
            main_is_read_all_along(running, fake, "slow", "does not answer")
        finally:
            freed.set()
        running.wait_for_lag(20, "mail", cluster="slow")


@pytest.mark.parametrize("hours", [1, -1])
def test_a_wall_clock_that_jumps_moves_timestamps_and_no_age(fake: WireFake, hours: int) -> None:
    clock = ShiftedClock()
    with reading(fake, clock=clock) as running, Watcher(running, ["mail"], one_of(mail=[19])) as watcher:
        clock.ahead = 3600.0 * hours
        running.wait_for_cycles(5)
        (item,) = running.metrics.read(LAG, wants(group="mail")).values
        assert abs(item.measured_at - clock.time()) < LONG
    watcher.check()
    assert watcher.refusals["mail"] == []


def test_values_from_before_a_suspension_are_refused_until_they_are_fresh_again(
    fake: WireFake, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Only the clock that counts the time in which a machine slept jumps."""
    read, ahead = time.clock_gettime, [0.0]
    monkeypatch.setattr(time, "clock_gettime", lambda which: read(which) + ahead[0] * (which == time.CLOCK_BOOTTIME))
    with reading(fake, max_age=10.0) as running:
        fake.kafka.silent |= {1, 2, 3}
        running.wait_for(lambda: bool(running.causes("mail")))
        ahead[0] = 3600.0
        answer = running.answer("mail")
        assert isinstance(answer, str)
        assert "limit 10 s" in answer
        fake.kafka.silent.clear()
        running.wait_for_lag(19, "mail")
        running.wait_for_lag(13, "billing")


def test_a_broker_replaced_by_another_at_its_address_is_followed(fake: WireFake) -> None:
    """Another node id at the same port; it leads and coordinates what the other did."""
    with reading(fake) as running, Watcher(running, ["billing"], one_of(billing=[13, 15])) as watcher:
        fake.ports[7] = fake.ports[2]
        fake.identities[2] = 7
        fake.kafka.topics["orders"] = [1, 7, 3]
        fake.kafka.coordinators["billing"] = 7
        fake.kafka.nodes = (1, 7, 3)
        fake.cut_all()
        fake.kafka.ends["orders", 1] += 2
        running.wait_for_lag(15, "billing")
        running.wait_for(lambda: not running.causes("billing"))
    watcher.check()
