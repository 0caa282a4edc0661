"""Describes the machine, without which the figures mean nothing."""

import importlib.metadata
import os
import platform
import subprocess
from pathlib import Path

from local.downloads import KAFKA, KUBERNETES

LIBRARIES = ("fastapi", "uvicorn", "uvloop", "httptools", "kafka-python", "numpy", "kubernetes", "kafka-lag-adapter")


def description() -> str:
    """Returns Markdown with the processor, memory, system, and all versions."""
    cores = len(os.sched_getaffinity(0))
    system = ".".join(platform.release().split(".")[:2])
    libraries = ", ".join(f"{name} {importlib.metadata.version(name)}" for name in LIBRARIES)
    return "\n".join(
        [
            "## The machine",
            "",
            f"- {processor(Path('/proc/cpuinfo').read_text())}, {cores} cores, {_memory_gib():.0f} GiB of memory",
            f"- {platform.system()} {system}, load average before the first table {os.getloadavg()[0]:.1f}",
            f"- {platform.python_implementation()} {platform.python_version()}; {libraries}",
            f"- Kafka {KAFKA} on {_java()}; Kubernetes {KUBERNETES}",
            "",
        ]
    )


def processor(cpuinfo: str) -> str:
    """Returns the model's name from /proc/cpuinfo, which some architectures lack."""
    names = (line.partition(":")[2].strip() for line in cpuinfo.splitlines() if line.startswith("model name"))
    return next(names, platform.machine())


def _memory_gib() -> float:
    return float(os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") / 1024**3)


def _java() -> str:
    said = subprocess.run(["java", "-version"], capture_output=True, text=True, check=True).stderr
    return said.splitlines()[0]
