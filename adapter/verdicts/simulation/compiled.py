"""Functions of the simulator as machine code: the one place that knows numba.

What is compiled is plain Python on numbers, arrays and records (adapter.records), in loops over lanes. A kernel is
compiled when it is called first, and kept for the next process in a folder of the user's cache, or of the one that the
environment variable NUMBA_CACHE_DIR names."""

import hashlib
import os
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any, ParamSpec, TypeVar, cast

import numba
from numba.extending import register_jitable

from adapter.location import home

Parameters = ParamSpec("Parameters")
Result = TypeVar("Result")

_SOURCES = Path(__file__).parents[1]
"""Of all that kernels call; other rooms only give them records, whose types are part of a signature."""


_OPTIONS = {"_nrt": False}
"""Without numba's counting of references, which took more than half of the time: callers hold all arrays that kernels
get, and kernels make none. numba refuses to compile one that does."""


def kernel(function: Callable[Parameters, Result]) -> Callable[Parameters, Result]:
    """Compiles a function with its arguments' types at its first call."""
    compiled: Any = numba.njit(cache=IS_KEPT, **_OPTIONS)(function)
    return cast("Callable[Parameters, Result]", compiled)


def rule(function: Callable[Parameters, Result]) -> Callable[Parameters, Result]:
    """Lets kernels call a function, which stays plain Python for all other callers. Each call becomes a copy of its
    code, because an array is handed on as seven numbers, and those of all calls took longer than what is called."""
    registered: Any = register_jitable(forceinline=True, **_OPTIONS)(function)
    return cast("Callable[Parameters, Result]", registered)


def _folder() -> Path:
    """numba compiles a kernel again only if its own file has changed, but it calls functions of others."""
    contents = b"".join(file.read_bytes() for file in sorted(_SOURCES.rglob("*.py")))
    parent = numba.config.CACHE_DIR or Path(
        os.environ.get("XDG_CACHE_HOME") or home() / ".cache", "kafka-lag-adapter/kernels"
    )
    return Path(parent, hashlib.sha256(contents).hexdigest()[:16])


def _is_writable(folder: Path) -> bool:
    try:
        folder.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryFile(dir=folder):
            return True
    except OSError:
        return False


_FOLDER = _folder()
IS_KEPT: bool = _SOURCES.is_dir() and _FOLDER.is_absolute() and _is_writable(_FOLDER)
"""Otherwise each process compiles kernels anew: as in a container in which no file can be written, or where the modules
come out of a zip file."""
if IS_KEPT:
    numba.config.CACHE_DIR = str(_FOLDER)
