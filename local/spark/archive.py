"""What executors need besides Spark and Python, as two files for spark-submit: the packages (`--archives`), which
seldom change, and the code (`--py-files`), which is small.

`python -m local.spark.archive DIR` creates both there. An archive fits the interpreter and the processor that made
it. Every executor and the driver unpack the packages before the first task, so files that no task needs are left out,
and modules are compiled here instead of in each process that imports them."""

import hashlib
import py_compile
import shutil
import subprocess
import sys
import tarfile
from itertools import pairwise
from pathlib import Path

from local.downloads import cached
from local.processes import RigError
from spark.engine.remote import write_code

PACKAGES = "packages"
CODE = "kafka-lag-report.zip"
ROOT = Path(__file__).parents[2]
REQUIREMENTS = ROOT / "requirements" / "spark.txt"
SUFFIX = ".tar"
"""Spark unpacks it in a fifth of the CPU that inflating the same files takes."""
OF_TASKS = frozenset(
    {
        *("numba", "llvmlite", "numpy", "pyarrow"),
        *("pydantic", "pydantic-core", "annotated-types", "typing-extensions", "typing-inspection"),
        "pyyaml",
    }
)
"""What the code of tasks imports; all packages of the adapter would be 5,000 files more."""
LEFT_OUT = (
    *("tests/", "pyarrow/include/", "pyarrow/src/", "numpy/f2py/", "*flight*"),
    *("*.pyi", "*.px[di]", "*.pyx", "*.[ah]"),
)
"""Sources, declarations for type checkers and compilers, tests, and Arrow Flight, a sixth of the bytes."""
NEEDS_BYTES = 1024**3


def packages() -> Path:
    """Returns an archive of pyarrow, numpy and what else the code of tasks imports; made once. Raises RigError."""
    identity = repr((requirements(), LEFT_OUT))
    tag = f"{sys.implementation.cache_tag}-{hashlib.sha256(identity.encode()).hexdigest()[:12]}"
    return cached(f"spark-packages-{tag}{SUFFIX}", NEEDS_BYTES, _make_packages)


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
    for path in [path for pattern in LEFT_OUT for path in folder.rglob(pattern)]:
        shutil.rmtree(path) if path.is_dir() else path.unlink(missing_ok=True)
    compile_modules(folder)
    with tarfile.open(target, "w") as archive:
        for path in sorted(folder.iterdir()):  # Hadoop refuses the entry `./`
            archive.add(path, path.name)
    shutil.rmtree(folder)


def compile_modules(folder: Path) -> None:
    """Replaces sources by what this interpreter makes of them, without times, which archives do not keep."""
    mode = py_compile.PycInvalidationMode.UNCHECKED_HASH
    for source in folder.rglob("*.py"):
        compiled, shown = str(source.with_suffix(".pyc")), str(source.relative_to(folder))
        py_compile.compile(str(source), compiled, shown, doraise=True, invalidation_mode=mode)
        source.unlink()


def main(folder: Path) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    write_code(folder / CODE)
    of_packages = shutil.copy(packages(), folder / f"{PACKAGES}{SUFFIX}")
    print(f"{folder / CODE}\n{of_packages}")


if __name__ == "__main__":
    main(Path(sys.argv[1]))
