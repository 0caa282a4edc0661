"""What helm and kustomize make of the shipped manifests, by their real commands."""

import os
import subprocess
from collections.abc import Mapping, Sequence
from pathlib import Path

import yaml

from local.downloads import command_line_tools
from local.manifests.check import MANIFESTS
from local.manifests.shipped import NAME, Manifest
from local.processes import RigError

LOADER = getattr(yaml, "CSafeLoader", yaml.SafeLoader)


def run(*command: str, env: Mapping[str, str] | None = None) -> str:
    """Returns the standard output of helm or kubectl. Raises RigError with what it wrote to standard error."""
    path = f"{command_line_tools()}:{os.environ['PATH']}"
    ended = subprocess.run(
        command, capture_output=True, text=True, check=False, env={**os.environ, "PATH": path, **(env or {})}
    )
    if ended.returncode != 0:
        raise RigError(f"{' '.join(command)}: {ended.stderr or ended.stdout}")
    return ended.stdout


def chart(
    values: Sequence[Path] = (), *, release: str = NAME, namespace: str = NAME, settings: Sequence[str] = ()
) -> list[Manifest]:
    """Returns what `helm template` prints; `settings` are values as for --set. Raises RigError."""
    files = [f"--values={file}" for file in values]
    sets = [f"--set={setting}" for setting in settings]
    return _documents(run("helm", "template", release, str(MANIFESTS), f"--namespace={namespace}", *files, *sets))


def kustomization(folder: Path) -> list[Manifest]:
    """Returns what `kubectl kustomize` prints. Raises RigError."""
    return _documents(run("kubectl", "kustomize", str(folder)))


def _documents(text: str) -> list[Manifest]:
    return [document for document in yaml.load_all(text, LOADER) if document]
