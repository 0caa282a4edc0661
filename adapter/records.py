"""Records beside one another in memory, as numpy's structured arrays have them, with the types of their fields.

A record's fields are read and written by name, in Python as in compiled code, where no other value of several fields is
as cheap."""

from typing import Any, Protocol, TypeVar, cast, get_type_hints, overload

import numpy as np
from numpy.typing import NDArray

Of = TypeVar("Of")
Of_co = TypeVar("Of_co", covariant=True)


class Column(Protocol[Of]):
    """Values by their places: a list in Python, which reads single ones several times as fast as those of an array, and
    an array in compiled code."""

    def __len__(self) -> int: ...

    def __getitem__(self, place: int, /) -> Of: ...

    def __setitem__(self, place: int, value: Of, /) -> None: ...


class Records(Protocol[Of_co]):
    """An array of records, by one index or two."""

    def __len__(self) -> int: ...

    @property
    def shape(self) -> tuple[int, ...]: ...

    @overload
    def __getitem__(self, at: int | tuple[int, int]) -> Of_co:
        """Returns a record whose fields can be written."""

    @overload
    def __getitem__(self, at: str) -> NDArray[Any]:
        """Returns the field of that name of all records."""

    def __setitem__(self, at: str, values: object) -> None: ...


_TYPES = {float: np.float64, int: np.int64, bool: np.bool_}


def records_of(kind: type[Of_co], *shape: int) -> Records[Of_co]:
    """Returns records with the fields that a class declares (float, int or bool), all 0. Raises ValueError for a name
    that numpy's own records have, such as `size`: Python would read that instead of the field."""
    hints = get_type_hints(kind)
    if taken := [name for name in hints if hasattr(np.record, name)]:
        raise ValueError(f"{kind.__name__} has fields with names of numpy's records: {', '.join(taken)}")
    fields = np.dtype([(name, _TYPES[of]) for name, of in hints.items()], align=True)
    return cast("Records[Of_co]", np.zeros(shape, np.dtype((np.record, fields))))
