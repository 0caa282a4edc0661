"""The Python of the tests: that of the images by default, and never the environment of another one."""

import os
import re
import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]


def python(file: Path, version: str) -> Path:
    """A program that says it is this Python."""
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(f"#!/bin/sh\necho Python {version}\n")
    file.chmod(0o755)
    return file


def planned(folder: Path, *arguments: str) -> str:
    """What `make` would do to have the environment in this folder."""
    command = ["make", "--dry-run", "--directory", str(ROOT), f"VENV={folder}", *arguments, f"{folder}/installed"]
    environment = {**os.environ, "PYENV_ROOT": str(folder.parent / "pyenv"), "PATH": f"{folder.parent}:{os.defpath}"}
    environment.pop("MAKEFLAGS", None)
    return subprocess.run(command, env=environment, check=True, capture_output=True, text=True).stdout


@pytest.fixture
def environment(tmp_path: Path) -> Path:
    """That of Python 3.11.7, complete."""
    python(tmp_path / "venv" / "bin" / "python", "3.11.7")
    (tmp_path / "venv" / "installed").touch()
    return tmp_path / "venv"


def test_an_environment_of_another_python_is_made_anew(environment: Path, tmp_path: Path) -> None:
    same, other = python(tmp_path / "same", "3.11.7"), python(tmp_path / "other", "3.13.0")

    assert "venv --clear" not in planned(environment, f"PYTHON={same}")
    assert f"\n{other} -m venv --clear {environment}\n" in planned(environment, f"PYTHON={other}")


@pytest.mark.parametrize("place", ["python{}", "pyenv/versions/{}.1/bin/python3"], ids=["PATH", "pyenv"])
def test_the_images_python_is_the_default(environment: Path, tmp_path: Path, place: str) -> None:
    (version,) = re.findall(r"^ARG PYTHON_IMAGE=python:(\d+\.\d+)-", (ROOT / "Dockerfile").read_text(), re.MULTILINE)
    found = python(tmp_path / place.format(version), f"{version}.1")
    command = found if "/" in place else found.name

    assert f"\n{command} -m venv --clear {environment}\n" in planned(environment)
