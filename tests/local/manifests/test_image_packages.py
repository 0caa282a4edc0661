"""The packages in the images: their size, and that nothing the adapter imports is left out.

The files of the development environment stand in for an image's, because their versions are the same."""

import importlib.metadata
import os
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from packaging.requirements import Requirement

from local.manifests.check import MANIFESTS

ROOT = MANIFESTS.parent
MOST_MEGABYTES = 250
IMPORT_ALL = """
import importlib, pkgutil, sys
for name in ("adapter", "apiservice"):
    for module in pkgutil.walk_packages(importlib.import_module(name).__path__, f"{name}."):
        if not module.name.startswith(sys.argv[1]) and module.name != "apiservice.__main__":
            importlib.import_module(module.name)
"""
KEEP_A_HISTORY = """
import sys, pyarrow as pa
from pyarrow import parquet
from adapter.history.files import files_at
files_at(sys.argv[1])
parquet.write_table(pa.table({"lag": [1]}), f"{sys.argv[1]}/lag.parquet")
assert parquet.read_table(f"{sys.argv[1]}/lag.parquet").num_rows == 1
"""


@pytest.fixture(scope="module")
def adapters(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return site_packages(tmp_path_factory.mktemp("adapter"), "runtime")


@pytest.fixture(scope="module")
def with_history(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return site_packages(tmp_path_factory.mktemp("history"), "history")


def site_packages(folder: Path, requirements: str) -> Path:
    """Puts what an image's stage installs into the folder, and removes what the Dockerfile removes."""
    for line in (ROOT / "requirements" / f"{requirements}.txt").read_text().splitlines():
        if "==" in line:
            requirement = Requirement(line.rstrip("\\"))
            if requirement.marker is None or requirement.marker.evaluate():
                copy(importlib.metadata.distribution(requirement.name), folder)
    copy(importlib.metadata.distribution("kafka-lag-adapter"), folder)
    for pattern in removed():
        if pattern.startswith("pyarrow") and requirements == "runtime":
            continue
        found = [*folder.glob(pattern)]
        assert found, f"the Dockerfile removes {pattern}, which is not there"
        for path in found:
            subprocess.run(["rm", "-r", path], check=True)
    return folder


def copy(package: importlib.metadata.Distribution, folder: Path) -> None:
    for file in package.files or []:
        source = Path(str(file.locate()))
        # Scripts are outside of the folder: `../../../bin/typer`.
        if ".." not in file.parts and source.is_file():
            for path in (source, *source.parent.glob(f"__pycache__/{source.stem}.*.pyc")):
                place(path, folder / Path(file).parent / path.relative_to(source.parent))


def place(source: Path, target: Path) -> None:
    target.parent.mkdir(parents=True, exist_ok=True)
    if not target.exists():
        try:
            os.link(source, target)
        except OSError:  # another file system
            target.write_bytes(source.read_bytes())


def removed() -> Iterator[str]:
    """Paths below site-packages, as patterns."""
    for line in (ROOT / "Dockerfile").read_text().splitlines():
        if found := re.fullmatch(r"RUN (?:cd /opt/venv/lib/python\*/site-packages/(\S+) && )?rm -r (.*)", line):
            for path in found[2].split():
                below = path.removeprefix("/opt/venv/lib/python*/site-packages/")
                yield f"{found[1]}/{below}" if found[1] else below


def run(packages: Path, code: str, *arguments: str) -> "subprocess.CompletedProcess[str]":
    """Runs the code with nothing to import but these packages, the product and the standard library."""
    start = f"import sys; sys.path += [{str(packages)!r}, {str(ROOT)!r}]\n"
    command = [sys.executable, "-I", "-S", "-B", "-c", start + code, *arguments]
    return subprocess.run(command, capture_output=True, text=True, check=False)


def megabytes(packages: Path) -> float:
    return sum(path.stat().st_size for path in packages.rglob("*") if path.is_file()) / 1e6


def test_the_adapters_packages_are_small(adapters: Path, with_history: Path) -> None:
    size, size_with_history = megabytes(adapters), megabytes(with_history)
    print(f"installed packages: {size:.0f} MB, with pyarrow {size_with_history:.0f} MB")

    # Less than half would mean that files of the packages were not found.
    assert MOST_MEGABYTES / 2 < size <= MOST_MEGABYTES < size_with_history


def test_the_adapter_imports_nothing_that_its_image_leaves_out(adapters: Path) -> None:
    ended = run(adapters, IMPORT_ALL, "adapter.history.")

    assert (ended.returncode, ended.stderr) == (0, "")


def test_the_image_with_a_history_can_keep_one(with_history: Path, tmp_path: Path) -> None:
    imported = run(with_history, IMPORT_ALL, "nothing")
    kept = run(with_history, KEEP_A_HISTORY, str(tmp_path))

    assert (imported.returncode, imported.stderr) == (0, "")
    assert (kept.returncode, kept.stderr) == (0, "")


def test_a_history_without_pyarrow_is_refused_with_the_way_to_get_it(adapters: Path, tmp_path: Path) -> None:
    settings = tmp_path / "settings.yaml"
    settings.write_text(
        f"clusters: [{{name: main, bootstrapServers: ['127.0.0.1:1']}}]\nhistory: {{location: {tmp_path}}}\n"
    )
    ended = run(adapters, f"from apiservice.__main__ import main; main(['serve', '--config', {str(settings)!r}])")

    assert ended.returncode == 2
    assert "history.location: a history needs pyarrow, which is not installed; use the image" in ended.stderr
    assert "Traceback" not in ended.stderr


def test_a_report_without_pyspark_is_refused_with_the_way_to_get_it(adapters: Path) -> None:
    ended = run(adapters, "from spark.__main__ import main; main()")

    assert ended.returncode == 2
    assert "is not installed; use the image that `docker build --target spark` builds" in ended.stderr
    assert "Traceback" not in ended.stderr
