"""By which clocks a file's samples were taken, so that a process that reads them later knows when that was."""

from pydantic import BaseModel, ValidationError

TOLERANCE_SECONDS = 5.0
"""The two clocks are read one after the other, and a busy machine may pause in between."""


class ClockMark(BaseModel, frozen=True, allow_inf_nan=False):
    boot_id: str | None
    """Of the kernel; None if it has none."""
    to_epoch: float
    """Seconds since the epoch, minus those of that kernel's monotonic clock."""


def mark_in(content: bytes | None) -> ClockMark | None:
    try:
        return None if content is None else ClockMark.model_validate_json(content)
    except ValidationError:
        return None


def to_epoch_of(file: ClockMark | None, own: ClockMark, *, is_contradicted: bool) -> float | None:
    """Returns what to subtract from the times of a file's samples to have this machine's monotonic clock; None if that
    cannot be known.

    Under the same kernel it is the same clock, unless the wall clock was set since. Of another machine the wall clock
    is taken, unless the names of its files show that it was wrong (`is_contradicted`)."""
    if file is None:
        return None
    if file.boot_id is not None and file.boot_id == own.boot_id:
        is_same = abs(file.to_epoch - own.to_epoch) <= TOLERANCE_SECONDS
        return file.to_epoch if is_same else None
    return None if is_contradicted else own.to_epoch
