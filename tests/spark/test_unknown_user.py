"""The command as a user id that passwd does not know, without a home and capabilities, as in a pod."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.support.history.written_history import read, sample, write

pytestmark = [
    pytest.mark.spark,
    pytest.mark.skipif(os.geteuid() != 0, reason="only root may become another user"),
]
UNKNOWN = "65532"
# The right to read remains, because this tree may lie in a home that is closed to others.
RIGHTS = "-all,+dac_read_search"
AS_NOBODY = ("setpriv", f"--reuid={UNKNOWN}", f"--regid={UNKNOWN}", "--clear-groups", "--no-new-privs")
WITHOUT_RIGHTS = (f"--inh-caps={RIGHTS}", f"--ambient-caps={RIGHTS}", f"--bounding-set={RIGHTS}")


@pytest.fixture
def history(tmp_path: Path) -> Path:
    """Which belongs to that user."""
    root = tmp_path / "history"
    write(root, [sample(seconds, seconds, seconds + 3) for seconds in range(0, 3600, 10)])
    for path in (root, *root.rglob("*")):
        os.chown(path, int(UNKNOWN), int(UNKNOWN))
    return root


def test_a_user_without_name_and_home_compacts(history: Path, tmp_path: Path) -> None:
    temporary = tmp_path / "tmp"
    temporary.mkdir()
    temporary.chmod(0o1777)
    kept = {name: value for name, value in os.environ.items() if name not in {"HOME", "XDG_CACHE_HOME"}}
    environment = {**kept, "TMPDIR": str(temporary)}
    command = [*AS_NOBODY, *WITHOUT_RIGHTS, sys.executable, "-m", "spark", "compact", "--history", str(history)]
    ended = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)

    assert ended.returncode == 0, ended.stderr
    assert len(read(history, "hourly")) == 1
