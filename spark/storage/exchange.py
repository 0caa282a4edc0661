"""One system call that swaps two folders, so that no reader ever finds either name missing."""

import ctypes
import errno
import os
from pathlib import Path

CALL = "renameat2"
"""Only Linux has it."""
AT_FDCWD = -100
RENAME_EXCHANGE = 2
NOT_SUPPORTED = {errno.EINVAL, errno.ENOSYS, errno.ENOTSUP}
"""What kernels and file systems answer that cannot exchange: NFS, SMB and most of FUSE among them."""


def exchanged(one: Path, other: Path) -> bool:
    """Returns False where this system or file system cannot do it; then nothing has changed. Raises OSError."""
    system = ctypes.CDLL(None, use_errno=True)
    call = getattr(system, CALL, None)
    if call is None:
        return False
    if not call(AT_FDCWD, os.fsencode(one), AT_FDCWD, os.fsencode(other), RENAME_EXCHANGE):
        return True
    number = ctypes.get_errno()
    if number in NOT_SUPPORTED:
        return False
    raise OSError(number, os.strerror(number), str(one), None, str(other))
