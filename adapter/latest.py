"""Results that are computed again only when what they follow from changes."""

from collections.abc import Callable
from typing import Generic, TypeVar

Result = TypeVar("Result")


class Latest(Generic[Result]):
    """A function whose latest result is kept while its arguments are the same objects. Used by one thread."""

    def __init__(self, function: Callable[..., Result]) -> None:
        self._function = function
        self._latest: tuple[tuple[object, ...], Result] | None = None

    def __call__(self, *arguments: object) -> Result:
        latest = self._latest
        if latest is None or any(new is not old for new, old in zip(arguments, latest[0], strict=True)):
            latest = self._latest = (arguments, self._function(*arguments))
        return latest[1]
