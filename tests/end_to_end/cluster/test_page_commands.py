"""The commands of the pages beside docs/install.md run as they stand and print what the page shows."""

import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from local.adapter import Adapter
from local.downloads import command_line_tools
from local.kubernetes.control_plane import ControlPlane
from tests.end_to_end.cluster.test_install import DOCS, commands

PAGES = ("migration", "troubleshooting", "upgrading", "versions")


@pytest.mark.parametrize("page", PAGES)
def test_every_command_prints_what_the_page_shows(
    control_plane: ControlPlane, adapter: Adapter, tmp_path: Path, page: str
) -> None:
    shutil.copy(DOCS / "settings.yaml", tmp_path)
    environment = {
        "PATH": f"{command_line_tools()}:{Path(sys.executable).parent}:/usr/bin:/bin",
        "KUBECONFIG": str(control_plane.admin_kubeconfig),
        "HOME": str(tmp_path),
    }

    found = commands(DOCS / f"{page}.md")
    assert found
    for line, shown in found:
        here = line.replace("127.0.0.1:6443", f"127.0.0.1:{adapter.port}").replace("billing", "ledger")
        shell = ["bash", "-o", "pipefail", "-c", here]
        ended = subprocess.run(shell, cwd=tmp_path, env=environment, capture_output=True, text=True, check=False)
        assert ended.returncode == 0, ended.stderr
        assert shown.strip() in ended.stdout, line
