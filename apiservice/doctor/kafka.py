"""Decides what is wrong between this process and the brokers."""

from collections.abc import Iterator, Sequence

from adapter.cluster.coordinators import Placement
from adapter.errors import some_of
from adapter.kafka.answers import FailureCause
from adapter.kafka.passport import Meeting, Met, Passport
from adapter.protocol.apis import LIST_OFFSETS, METADATA, OFFSET_FETCH
from adapter.settings.models import Cluster
from apiservice.doctor import codes
from apiservice.doctor.check import Check, Code, Outcome, chained, failed, judged, passed, skipped

_WAY = (codes.NAMES, codes.PORTS, codes.TLS, codes.LOGIN, codes.ANSWERS)
"""The order in which a connection passes them."""
_UNPROVEN = (codes.TLS, codes.LOGIN)
"""A server without a usable answer may have stopped before either."""
_OF_BROKERS = (codes.OFFERED, codes.ADVERTISED, codes.QUIRKS)
_BROKEN_AT = {
    FailureCause.DNS: codes.NAMES,
    FailureCause.REFUSED: codes.PORTS,
    FailureCause.TLS: codes.TLS,
    FailureCause.AUTHENTICATION: codes.LOGIN,
    FailureCause.CREDENTIALS: codes.LOGIN,
}
"""All else is no answer that this client understands."""


def checks_of(meeting: Meeting) -> Iterator[Check]:
    for server in meeting.servers:
        yield from _on_the_way(meeting.cluster, server)
    name = meeting.cluster.name
    if meeting.failure is not None:
        code = codes.OFFERED if meeting.failure.cause is FailureCause.VERSION else codes.ANSWERS
        yield failed(code, name, meeting.failure.text)
    elif not meeting.brokers:
        yield from (skipped(code, name, "no server has named the brokers") for code in _OF_BROKERS)
    for broker in meeting.brokers:
        yield from _of_broker(broker)


def placement_check(cluster: str, placement: Placement) -> Check:
    """Judges by what a few cycles have shown."""
    subject = f"placement of groups in {cluster}"
    text = "groups are not placed as in Apache Kafka, so a broker that is silent matters to every unknown group"
    if placement is Placement.UNKNOWN:
        return skipped(codes.QUIRKS, subject, "it is not known after so few cycles; `--after 75s` reads for longer")
    return judged(codes.QUIRKS, subject, text if placement is Placement.REFUTED else "", Outcome.WARNING)


def _on_the_way(cluster: Cluster, server: Met) -> Iterator[Check]:
    failure, protocol = server.failure, cluster.security.protocol
    broken = _broken_at(server)
    for check in chained(_WAY, server.address, broken, "" if failure is None else failure.text):
        is_unused = (check.code is codes.TLS and not protocol.encrypts) or (
            check.code is codes.LOGIN and not protocol.authenticates
        )
        is_in_use = not is_unused or bool(cluster.security.secret_folders) or check.outcome is Outcome.FAILED
        if not is_in_use:
            yield skipped(check.code, server.address, f"protocol {protocol} has none")
        elif check.code in _UNPROVEN and broken is codes.ANSWERS:
            yield skipped(check.code, server.address, f"{broken.name} failed")
        else:
            yield check


def _broken_at(server: Met) -> Code | None:
    if server.failure is None:
        return None
    return _BROKEN_AT.get(server.failure.cause, codes.ANSWERS) if server.accepts else codes.PORTS


def _of_broker(broker: Passport) -> Iterator[Check]:
    subject, failure = f"broker {broker.node} at {broker.met.address}", broker.met.failure
    if failure is not None:
        code = codes.OFFERED if failure.cause is FailureCause.VERSION else codes.ADVERTISED
        yield failed(code, subject, failure.text)
        yield from (skipped(each, subject, f"{code.name} failed") for each in _OF_BROKERS if each is not code)
        return
    versions = broker.versions
    lacks = [versions.lack(api) for api in (METADATA, LIST_OFFSETS, OFFSET_FETCH) if versions.of(api) is None]
    offered = ", ".join(f"{api.name} {versions.of(api)}" for api in (METADATA, LIST_OFFSETS, OFFSET_FETCH))
    yield failed(codes.OFFERED, subject, _joined(lacks)) if lacks else passed(codes.OFFERED, subject, offered)
    yield passed(codes.ADVERTISED, subject)
    yield judged(codes.QUIRKS, subject, _joined([*broker.quirks]), Outcome.WARNING)


def _joined(texts: Sequence[str]) -> str:
    return some_of(texts, most=10)
