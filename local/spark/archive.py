"""What executors need besides Spark and Python, as two files for spark-submit: the packages (`--archives`), which
seldom change, and the code (`--py-files`), which is small.

`python -m local.spark.archive DIR` creates both there. An archive fits the interpreter and the processor that made
it."""

import hashlib
import shutil
import subprocess
import sys
from itertools import pairwise
from pathlib import Path

from local.downloads import cached
from local.processes import RigError
from spark.engine.remote import write_code

PACKAGES = "packages"
CODE = "kafka-lag-report.zip"
ROOT = Path(__file__).parents[2]
REQUIREMENTS = ROOT / "requirements" / "history.txt"
OF_TASKS = frozenset(
    {
        *("numpy", "pyarrow"),
        *("pydantic", "pydantic-core", "annotated-types", "typing-extensions", "typing-inspection"),
        "pyyaml",
    }
)
"""What the code of tasks imports. Every executor unpacks it; all packages of the adapter would be 5,000 files more."""
NEEDS_BYTES = 1024**3


def packages() -> Path:
    """Returns a zip of pyarrow, numpy and what else the code of tasks imports; made once. Raises RigError."""
    tag = f"{sys.implementation.cache_tag}-{hashlib.sha256(requirements().encode()).hexdigest()[:12]}"
    return cached(f"spark-packages-{tag}.zip", NEEDS_BYTES, _make_packages)


def requirements() -> str:
    """The lines of REQUIREMENTS about these packages, with their hashes."""
    lines = REQUIREMENTS.read_text().splitlines(keepends=True)
    begins = [at for at, line in enumerate(lines) if line[:1].isalpha()]
    blocks = (lines[first:end] for first, end in pairwise([*begins, len(lines)]))
    return "".join(line for block in blocks if block[0].partition("==")[0] in OF_TASKS for line in block)


def _make_packages(target: Path) -> None:
    folder = target.with_suffix("")
    command = [sys.executable, "-m", "uv", "pip", "install", "--quiet", "--require-hashes", "--no-deps"]
    done = subprocess.run(
        [*command, "--target", str(folder), "-r", "-"],
        input=requirements(),
        capture_output=True,
        text=True,
        check=False,
    )
    if done.returncode:
        raise RigError(f"the packages for Spark's executors could not be installed:\n{done.stderr}")
    shutil.make_archive(str(folder), "zip", folder)
    shutil.rmtree(folder)


def main(folder: Path) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    write_code(folder / CODE)
    shutil.copy(packages(), folder / f"{PACKAGES}.zip")
    print(f"{folder / CODE}\n{folder / PACKAGES}.zip")


if __name__ == "__main__":
    main(Path(sys.argv[1]))
