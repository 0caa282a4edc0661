"""One run at a time works on a location in a bucket, whatever machines they run on.

A run keeps an object that only a conditional write can create or replace, and renews it. Where that has not happened
for EXPIRY_SECONDS, by the store's own clock, another run may take it. The run itself stops publishing after half of
that time without a renewal.
"""

from __future__ import annotations

import contextlib
import uuid
from collections.abc import Callable, Iterator
from datetime import datetime
from functools import partial
from typing import TYPE_CHECKING

from obstore.exceptions import (
    AlreadyExistsError,
    BaseError,
    PermissionDeniedError,
    PreconditionError,
    UnauthenticatedError,
)

from adapter import clock
from adapter.repeating import Repeated
from spark.errors import Unavailable, Unusable

if TYPE_CHECKING:
    from obstore import ObjectMeta, PutMode, PutResult, UpdateVersion
    from obstore.store import ObjectStore

EXPIRY_SECONDS = 60.0
RENEWALS = 6
"""Within that time."""
NAME = ".compacting.lease"
CLOCK = ".compacting.clock"

Check = Callable[[], None]
"""Raises Unavailable where the reservation is lost."""


@contextlib.contextmanager
def leased(store: ObjectStore, shown: str) -> Iterator[Check]:
    """Raises Unusable where the store refuses or has no conditional writes, Unavailable where another run holds it and
    for other trouble."""
    lease = _Lease(store, shown)
    with _translated(shown):
        lease.acquire()
    renewals = Repeated("reservation", partial(_renew, lease))
    renewals.start()
    try:
        yield lease.check
    finally:
        renewals.stop(EXPIRY_SECONDS)
        lease.release()


@contextlib.contextmanager
def _translated(shown: str) -> Iterator[None]:
    try:
        yield
    except (PermissionDeniedError, UnauthenticatedError) as error:
        raise Unusable(f"{shown}: access is denied: {NAME} cannot be written") from error
    except (BaseError, OSError) as error:
        text = f"{shown}: {str(error).partition(chr(10))[0]}"
        raise (Unavailable if isinstance(error, BaseError) else Unusable)(text) from error


def _renew(lease: _Lease) -> float:
    with contextlib.suppress(BaseError, OSError):  # what is wrong shows in the time since the last renewal
        lease.renew()
    return EXPIRY_SECONDS / RENEWALS


class _Lease:
    """The object, and what is known of it."""

    def __init__(self, store: ObjectStore, shown: str) -> None:
        self._store, self._shown = store, shown
        self._owner = uuid.uuid4().bytes
        self._version: UpdateVersion = {}
        self._renewed_at = -float("inf")

    def acquire(self) -> None:
        try:
            self._write("create")
        except AlreadyExistsError:
            self._take_over()
        else:
            self._refuse_without_conditions()

    def renew(self) -> None:
        self._write(self._version)

    def check(self) -> None:
        if not self._is_held():
            raise Unavailable(f"{self._shown}: the reservation could not be renewed; another run may have taken over")

    def release(self) -> None:
        with contextlib.suppress(BaseError, OSError):  # it expires by itself
            if self._is_held():
                self._store.delete(NAME)

    def _is_held(self) -> bool:
        return clock.monotonic() - self._renewed_at < EXPIRY_SECONDS / 2

    def _write(self, mode: PutMode) -> None:
        """Raises AlreadyExistsError, PreconditionError."""
        began = clock.monotonic()
        try:
            result = self._store.put(NAME, self._content(), mode=mode)
        except (AlreadyExistsError, PreconditionError):
            own = self._own_version()
            if own is None:
                raise
            result = self._store.put(NAME, self._content(), mode=own)
        self._version = _version_of(result)
        self._renewed_at = began

    def _content(self) -> bytes:
        """No two are equal, so no two versions are."""
        return self._owner + uuid.uuid4().bytes

    def _own_version(self) -> UpdateVersion | None:
        """Of the object, where this run wrote it: a write may have succeeded though its answer was lost."""
        with contextlib.suppress(FileNotFoundError):
            stored = self._store.get(NAME)
            if bytes(stored.bytes()).startswith(self._owner):
                return _version_of(stored.meta)
        return None

    def _take_over(self) -> None:
        """Raises Unavailable where the other run renewed it not long ago, or a third one is faster."""
        try:
            stored = self._store.head(NAME)
            age = (self._now() - stored["last_modified"]).total_seconds()
            if age < EXPIRY_SECONDS:
                raise Unavailable(
                    f"another run compacts {self._shown}: it was alive {max(age, 0):.0f} s ago; "
                    f"one that was killed is forgotten after {EXPIRY_SECONDS:.0f} s"
                )
            self._write(_version_of(stored))
        except (FileNotFoundError, PreconditionError) as error:
            raise Unavailable(f"another run compacts {self._shown}") from error

    def _now(self) -> datetime:
        """By the store's clock, which also wrote the lease's time."""
        self._store.put(CLOCK, b"")
        try:
            return self._store.head(CLOCK)["last_modified"]
        finally:
            self._store.delete(CLOCK)

    def _refuse_without_conditions(self) -> None:
        """Some stores ignore a condition that they do not know."""
        try:
            self._store.put(NAME, b"", mode="create")
        except AlreadyExistsError:
            return
        raise Unusable(f"{self._shown}: the store has no conditional writes, which keep two runs apart")


def _version_of(stored: ObjectMeta | PutResult) -> UpdateVersion:
    """Some stores have an `e_tag`, some a `version`, some both."""
    version: UpdateVersion = {}
    if stored["e_tag"] is not None:
        version["e_tag"] = stored["e_tag"]
    if stored["version"] is not None:
        version["version"] = stored["version"]
    return version
