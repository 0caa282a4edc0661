"""Errors of the adapter; `apiservice.http.status` turns them into HTTP, `__main__` into exit statuses.

AdapterError
├── SettingsInvalid     the settings file or a flag cannot be used: ends the process at start, status 2
├── StateNotPersistable what is remembered may not be read or may not be written: it lasts until the process ends
├── MetricUnknown       no metric of that name is served
└── Refused             a read without a value (adapter.metrics.problems)
    ├── NoMatch             the metric exists, but no partition matches
    └── ValueUnavailable    the value exists, but is not known well enough"""

from collections.abc import Iterable, Sequence
from difflib import get_close_matches


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
    return " ".join("".join(each if each.isprintable() else " " for each in words).split())


def quoted_words(words: str, *secrets: str) -> str:
    """Returns another server's words on one line, but none that repeat one of these secrets."""
    is_shown = any(secret and secret in words for secret in secrets)
    return "words that repeat a secret" if is_shown else one_line(words)


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
