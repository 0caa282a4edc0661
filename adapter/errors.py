"""What can go wrong, in our own words; `apiservice.http.status` turns it into HTTP, `__main__` into exit statuses.

AdapterError
├── SettingsInvalid     the settings file or a flag cannot be used: ends the process at start, status 2
├── MetricUnknown       no metric of that name is served
├── NothingChosen       the metric exists, but no partition is what was asked for
└── ValueUnavailable    there is something to say, but it is not known well enough to be said
"""

from __future__ import annotations

from collections.abc import Sequence


def some_of(texts: Sequence[str], most: int = 3, separator: str = "; ") -> str:
    """The first few texts, and how many more there are: nobody reads ten thousand."""
    left_out = len(texts) - most
    return separator.join([*texts[:most], *([f"and {left_out:,} more"] if left_out > 0 else [])])


class AdapterError(Exception):
    """Anything that this product says went wrong; its text is meant for the user."""


class SettingsInvalid(AdapterError):
    """All problems of the settings at once, each with its place."""

    def __init__(self, problems: tuple[str, ...]) -> None:
        super().__init__("\n".join(problems))
        self.problems = problems


class MetricUnknown(AdapterError):
    """No metric of that name is served."""


class NothingChosen(AdapterError):
    """No partition, group or topic is what was asked for."""


class ValueUnavailable(AdapterError):
    """The value exists, but a part of it is unknown, too old or in doubt: never served as if it were whole."""
