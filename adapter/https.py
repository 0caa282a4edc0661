"""What clients of HTTPS servers share: a reply's body, limited in time and size, and a failure in few words."""

import json
import re
from contextlib import closing
from typing import Any

from urllib3 import BaseHTTPResponse, exceptions

from adapter import clock

_PLACE_IN_PYTHON = re.compile(r"_ssl\.c:[0-9]+: | \(_ssl\.c:[0-9]+\)")
"""Where in Python's own sources an error of TLS was raised."""


def body_within(reply: BaseHTTPResponse, most_bytes: int, begun: float, seconds: float) -> bytes:
    """Returns the body, or its first `most_bytes` + 1 bytes, and closes the reply; raises urllib3's TimeoutError.

    The timeout of a request is that of each read, so one byte every few seconds would hold the thread."""
    body = b""
    with closing(reply):  # after a whole body, its connection is back in the pool already
        while part := reply.read1(most_bytes + 1 - len(body), decode_content=False):
            body += part
            if clock.monotonic() > begun + seconds:
                raise exceptions.TimeoutError(f"no whole reply within {seconds:.0f} s")
    return body


def object_in(body: bytes) -> dict[str, Any]:
    """Returns an empty one if the body is no JSON object."""
    try:
        content = json.loads(body)
    except (ValueError, RecursionError):
        return {}
    return content if isinstance(content, dict) else {}


def reason_of(error: object) -> str:
    """Returns what an error says; of one of urllib3, what it was raised for, in the system's words."""
    return _PLACE_IN_PYTHON.sub("", _words_of(error))


def _words_of(error: object) -> str:
    if not isinstance(error, exceptions.HTTPError):
        return str(error) or type(error).__name__
    cause = next((each for each in error.args if isinstance(each, Exception)), error.__cause__ or error)
    words = getattr(cause, "verify_message", None) or getattr(cause, "strerror", None) or str(cause)
    return words or type(cause).__name__
