"""How a version of a request writes texts and lists.

In the compact encoding, lengths are unsigned varints of length + 1, 0 is null, and every structure ends with tagged
fields, which are empty (one 0 byte). Before it, texts have a length of two bytes and lists of four; -1 is null."""

from dataclasses import dataclass
from struct import Struct

_INT16, _INT32 = Struct(">h"), Struct(">i")


@dataclass(frozen=True, slots=True)
class Encoding:
    is_flexible: bool

    @property
    def no_tags(self) -> bytes:
        return b"\0" if self.is_flexible else b""

    @property
    def null_list(self) -> bytes:
        return b"\0" if self.is_flexible else _INT32.pack(-1)

    def length(self, count: int) -> bytes:
        """Of a list."""
        return varint(count + 1) if self.is_flexible else _INT32.pack(count)

    def text(self, text: str) -> bytes:
        encoded = text.encode("utf-8", "surrogateescape")
        return (varint(len(encoded) + 1) if self.is_flexible else _INT16.pack(len(encoded))) + encoded


def varint(value: int) -> bytes:
    parts = bytearray()
    while value > 0x7F:
        parts.append(value & 0x7F | 0x80)
        value >>= 7
    parts.append(value)
    return bytes(parts)
