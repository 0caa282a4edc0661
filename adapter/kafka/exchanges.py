"""One request to one broker, and its response, within a deadline; run by the library's thread."""

from collections.abc import Callable, Sequence
from typing import Any

from kafka import errors as kafka_errors

from adapter import clock
from adapter.kafka.answers import Answered
from adapter.kafka.connections import connected, library_seconds, quota_wait
from adapter.kafka.versions import Versions, VersionsChanged
from adapter.protocol import offset_requests
from adapter.protocol.apis import METADATA
from adapter.protocol.offset_responses import Columns
from adapter.protocol.prepared_requests import CommitQuestion, OffsetQuestion

Make = Callable[[Versions], object]
"""Returns the request for a broker of these versions; raises NotOffered."""
Asked = tuple[int, Make, Callable[[Any], Answered]]
"""Node, request, and decoder of the response."""


async def exchanged(
    manager: Any,  # noqa: ANN401 - the library has no types
    node: int,
    make: Make,
    call_seconds: float,
    note_sent: Callable[[], None],
    count: Callable[[], None],
) -> Any:  # noqa: ANN401
    """Returns the response; `note_sent` is called before anything that the connection may wait for."""
    note_sent()
    ends = clock.monotonic() + call_seconds
    await quota_wait(manager, node, call_seconds)
    connection = await connected(manager, node, 1000 * (ends - clock.monotonic()))
    left = 1000 * (ends - clock.monotonic())
    latest = library_seconds() + left / 1000
    request = make(connection.versions)
    count()
    try:
        return await manager.wait_for(connection.send_request(request, request_timeout_ms=left), left + 100)
    except (kafka_errors.KafkaTimeoutError, kafka_errors.RequestTimedOutError):
        if connection.has_throttled_until(latest):
            raise kafka_errors.ThrottlingQuotaExceededError from None
        raise


def asked_by(question: CommitQuestion | OffsetQuestion) -> Asked[Columns]:
    def make(versions: Versions) -> object:
        version = versions.required(question.api)
        if version < question.oldest:
            raise VersionsChanged
        return question.request(version)

    return question.node, make, lambda response: question.columns(response.body, response.version)


def metadata_request(topics: Sequence[str] | None) -> Make:
    return lambda versions: offset_requests.metadata(topics, versions.required(METADATA))
