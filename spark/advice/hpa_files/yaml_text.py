"""Pure: texts with any characters as YAML: quoted, or as a comment."""

import textwrap

_WIDTH = 110


def quoted(text: str) -> str:
    """As a YAML string on one line, of printable ASCII alone."""
    return '"' + "".join(_escaped(character) for character in text) + '"'


def _escaped(character: str) -> str:
    code = ord(character)
    if character in '"\\':
        return "\\" + character
    if 0x20 <= code < 0x7F:
        return character
    return f"\\x{code:02x}" if code < 0x100 else f"\\u{code:04x}" if code < 0x10000 else f"\\U{code:08x}"


def comment(text: str, indent: str = "") -> list[str]:
    """Wrapped, and of printable characters alone: a name in it must not end the comment."""
    safe = "".join(
        character if character.isprintable() else " " if character == "\u202f" else _escaped(character)
        for character in text
    )
    start = f"{indent}# "
    return textwrap.wrap(
        safe, _WIDTH + 2, initial_indent=start, subsequent_indent=start, break_long_words=False, break_on_hyphens=False
    )
