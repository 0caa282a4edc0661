"""Errors of the adapter; `apiservice.http.status` turns them into HTTP, `__main__` into exit statuses.

AdapterError
├── SettingsInvalid     the settings file or a flag cannot be used: ends the process at start, status 2
├── StateNotPersistable what is remembered may not be read or may not be written: it lasts until the process ends
├── MetricUnknown       no metric of that name is served
└── Refused             a read without a value (adapter.metrics.problems)
    ├── NoMatch             the metric exists, but no partition matches
    └── ValueUnavailable    the value exists, but is not known well enough"""

from base64 import b64encode
from collections.abc import Iterable, Iterator, Sequence
from difflib import get_close_matches

LONGEST_SHOWN = 80
LONGEST_WORDS = 4096
"""Characters of another server's words; 8 million of them would hold everything else up for 1.5 s."""


def some_of(texts: Sequence[str], most: int = 3, separator: str = "; ") -> str:
    """Joins the first few texts and the number of the others."""
    left_out = len(texts) - most
    return separator.join([*texts[:most], *([f"and {left_out:,} more"] if left_out > 0 else [])])


def did_you_mean(word: str, known: Iterable[str]) -> str:
    """Returns `; did you mean 'x'?` if a known word is near; otherwise nothing."""
    spelled = {each.lower(): each for each in known}
    near = get_close_matches(word.lower(), spelled, n=1)
    return f"; did you mean {spelled[near[0]]!r}?" if near else ""


def one_line(words: str) -> str:
    """Returns the printable characters on one line: others could forge lines or colours, or not be encodable."""
    return " ".join("".join(each if each.isprintable() else " " for each in words[:LONGEST_WORDS]).split())


def quoted_words(words: str, *secrets: str) -> str:
    """Returns another server's words on one line, but none that repeat one of these secrets, also in base64."""
    encoded = words.replace("-", "+").replace("_", "/")
    repeats = any(
        secret in words or any(part in encoded for part in _in_base64(secret)) for secret in filter(None, secrets)
    )
    return "words that repeat a secret" if repeats else one_line(words)


def _in_base64(secret: str) -> Iterator[str]:
    """Yields the characters that stand for the secret alone, whichever number of bytes come before it."""
    content = secret.encode()
    for before in range(3):
        encoded = b64encode(bytes(before) + content).decode()
        yield encoded[(4 * before + 2) // 3 : 4 * (before + len(content)) // 3]


def shown(value: object) -> str:
    """Returns a refused value as an error message shows it: an address without its credentials."""
    text = repr(value)
    login, _, rest = text.rpartition("@")
    text = f"…@{rest}" if ":" in login.rpartition("//")[2] else text
    return text if len(text) <= LONGEST_SHOWN else f"{text[:LONGEST_SHOWN]}…"


class AdapterError(Exception):
    """An error of this product; its text is meant for users."""


class SettingsInvalid(AdapterError):
    def __init__(self, problems: tuple[str, ...]) -> None:
        super().__init__("\n".join(problems))
        self.problems = problems


class StateNotPersistable(AdapterError):
    """A permission or an object is missing; the text says which."""


class MetricUnknown(AdapterError):
    """There is no metric of this name."""
