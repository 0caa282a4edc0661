"""Reads the bytes of a response safely.

See `encoding` for Kafka's two encodings."""

import struct
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from struct import Struct

import numpy as np
from numpy.typing import NDArray

from adapter.protocol.codes import MalformedResponse

Places = NDArray[np.integer]
"""Byte positions in a response."""

_INT16, _INT32 = Struct(">h"), Struct(">i")


def values_at(body: bytes, places: Places, form: str) -> NDArray[np.generic]:
    """Returns the numbers of this type at these positions, in one gather."""
    count = max(len(body) - np.dtype(form).itemsize + 1, 0)
    at_every_byte: NDArray[np.generic] = np.ndarray((count,), dtype=form, buffer=body, strides=(1,))
    return at_every_byte[places].astype(np.dtype(form).newbyteorder("="))


@contextmanager
def malformed_as_ours() -> Iterator[None]:
    """Turns every parsing error into MalformedResponse: also that a decoded response lacks a list or a name."""
    try:
        yield
    except MalformedResponse:
        raise
    except (struct.error, IndexError, TypeError, AttributeError, ValueError, OverflowError) as error:
        raise MalformedResponse(str(error)) from error


@dataclass(slots=True)
class Reader:
    """A position in a response in the compact encoding. Every step is checked against the end, so no length can request
    more than there is."""

    body: bytes
    position: int

    def int16(self) -> int:
        value: int = _INT16.unpack_from(self.body, self.position)[0]
        self.position += _INT16.size
        return value

    def int32(self) -> int:
        value: int = _INT32.unpack_from(self.body, self.position)[0]
        self.position += _INT32.size
        return value

    def varint(self) -> int:
        value = shift = 0
        while shift <= 28:
            byte = self.body[self.position]
            self.position += 1
            value |= (byte & 0x7F) << shift
            if byte < 0x80:
                return value
            shift += 7
        raise MalformedResponse("a length of more than five bytes")

    def text_length(self) -> int:
        """Returns -1 for null, as `list_length`."""
        return self.varint() - 1

    def list_length(self) -> int:
        return self.varint() - 1

    def count(self, least_bytes: int) -> int:
        """Reads the number of elements and checks that the response has room for them; `least_bytes` is per element."""
        count = self.list_length()
        if count < 0:
            raise MalformedResponse("null instead of a list")
        if count * least_bytes > len(self.body) - self.position:
            raise MalformedResponse(f"{count} elements in {len(self.body) - self.position} bytes")
        return count

    def text(self, errors: str = "surrogateescape") -> str:
        length = self.text_length()
        begin, self.position = self.position, self.position + length
        if length < 0 or self.position > len(self.body):
            raise MalformedResponse("a name that is missing or longer than the response")
        # A group id may be any bytes; escaped ones match nothing that people write.
        return self.body[begin : self.position].decode("utf-8", errors)

    def skip_text(self) -> None:
        self.skip(max(self.text_length(), 0))

    def skip_tags(self) -> None:
        for _ in range(self.varint()):
            self.varint()
            self.skip(self.varint())

    def skip(self, size: int) -> None:
        if size > len(self.body) - self.position:
            raise MalformedResponse("a field that is longer than the response")
        self.position += size


class PlainReader(Reader):
    """The same for a response before the compact encoding."""

    __slots__ = ()

    def text_length(self) -> int:
        return self.int16()

    def list_length(self) -> int:
        return self.int32()

    def skip_tags(self) -> None:
        """There are none."""


def reader_of(body: bytes, position: int, *, is_flexible: bool) -> Reader:
    return (Reader if is_flexible else PlainReader)(body, position)
