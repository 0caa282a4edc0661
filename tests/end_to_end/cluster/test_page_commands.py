"""The commands of the pages beside docs/install.md run as they stand and print what the page shows."""

import re
import shutil
import subprocess
import sys
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import TypeAlias

import pytest

from local.adapter import Adapter
from local.downloads import command_line_tools
from local.kubernetes.control_plane import ControlPlane
from local.manifests.check import MANIFESTS
from local.processes import wait_until
from tests.end_to_end.cluster.test_install import DOCS, commands

PAGES = (
    MANIFESTS.parent / "README.md",
    *(DOCS / f"{name}.md" for name in ("migration", "status", "troubleshooting", "upgrading", "versions")),
)
WAIT_SECONDS = 120.0
REFUSED = "error: 403"
"""As curl says it."""
Ended: TypeAlias = "subprocess.CompletedProcess[str]"


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_every_command_prints_what_the_page_shows(
    control_plane: ControlPlane, adapter: Adapter, tmp_path: Path, page: Path
) -> None:
    shutil.copy(DOCS / "settings.yaml", tmp_path)
    environment = {
        "PATH": f"{command_line_tools()}:{Path(sys.executable).parent}:/usr/bin:/bin",
        "KUBECONFIG": str(control_plane.admin_kubeconfig),
        "HOME": str(tmp_path),
    }

    found = commands(page)
    assert found
    for line, shown in found:
        shell = ["bash", "-o", "pipefail", "-c", ours(line, adapter)]
        run = partial(subprocess.run, shell, cwd=tmp_path, env=environment, capture_output=True, text=True, check=False)
        ended = once_allowed(run) if line.startswith("curl ") else run()
        assert ended.returncode == 0, ended.stderr
        assert timeless(ours(shown, adapter)) in timeless(ended.stdout), line


def once_allowed(run: Callable[[], Ended]) -> Ended:
    """What a command printed that reads with a right which an earlier one has granted. A right counts a moment later,
    and the adapter keeps a refusal for 10 s."""
    ended: list[Ended] = []

    def is_allowed() -> bool:
        ended.append(run())
        return REFUSED not in ended[-1].stderr

    wait_until(is_allowed, "the right to count", WAIT_SECONDS)
    return ended[-1]


def ours(text: str, adapter: Adapter) -> str:
    """With the names of what the shared adapter reads, and its port."""
    text = text.replace("127.0.0.1:6443", f"127.0.0.1:{adapter.port}")
    return text.replace("billing", "ledger").replace('"orders"', '"read-orders"').replace("%3Dorders", "%3Dread-orders")


def timeless(text: str) -> str:
    """Without what differs each time: times, ages, and the widths of columns."""
    text = re.sub(r"\d{4}-\d\d-\d\dT[\d:]+Z", "TIME", text)
    return " ".join(re.sub(r"\b(\d+[smh])+\b", "AGE", text).split())
