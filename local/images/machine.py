"""What building takes from this machine: commands, Debian's mirror, certificates, and how pip and apt reach registries.

Nothing of it stays in an image."""

import os
import shutil
import ssl
import subprocess
import sys
from pathlib import Path

from local.processes import RigError
from local.steps import run_step

COMMANDS = ("buildah", "crun", "debootstrap")
"""Each is in Debian's package of the same name."""
SYSTEM_PATH = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"
PIP_KEYS = ("index-url", "extra-index-url", "trusted-host", "proxy", "default-timeout", "retries")
DEBIANS_AUTHORITIES = "/etc/ssl/certs/ca-certificates.crt"
PLACE = "/run/machine"
"""Where RUN steps see this machine's certificates."""


def require_commands(log: Path) -> None:
    """Installs the missing commands with apt. Raises RigError where that is impossible."""
    if os.geteuid() != 0:
        raise RigError("Building and running the images needs root, for debootstrap, buildah and crun.")
    missing = [command for command in COMMANDS if shutil.which(command, path=SYSTEM_PATH) is None]
    if not missing:
        return
    if shutil.which("apt-get") is None:
        raise RigError(f"Building the images needs {', '.join(missing)} of Debian, and this machine has no apt-get.")
    quiet = {"DEBIAN_FRONTEND": "noninteractive"}
    run_step("updating apt's lists", ["apt-get", "update"], log, quiet)
    install = ["apt-get", "install", "--yes", "--no-install-recommends", *missing]
    run_step(f"installing {', '.join(missing)}", install, log, quiet)


def debian_mirror() -> str:
    """Returns the address from which apt gets Debian itself. Raises RigError."""
    filters = ("Identifier: Packages", "Origin: Debian", "Label: Debian", "Component: main")
    found = _output("apt-get", "indextargets", "--format", "$(REPO_URI)", *filters).split()
    if not found:
        raise RigError("apt has no lists of Debian's packages on this machine; run `apt-get update`.")
    return found[0].rstrip("/")


def build_mounts(folder: Path) -> list[str]:
    """Writes configuration of this machine into the folder. Returns what mounts it for RUN steps, as HOST:PATH:ro."""
    folder.mkdir(parents=True, exist_ok=True)
    pip = _pip_configuration()
    shutil.copy(pip.pop("cert", _authorities()), folder / "authorities.pem")
    pip["cert"] = f"{PLACE}/authorities.pem"
    (folder / "pip.conf").write_text(
        "\n".join(["[global]", *(f"{key} = {value}" for key, value in pip.items())]) + "\n"
    )
    apt = _output("apt-config", "dump", "Acquire::http", "Acquire::https")
    (folder / "apt.conf").write_text(f'{apt}Acquire::https::CaInfo "{PLACE}/authorities.pem";\n')
    places = {
        "authorities.pem": f"{PLACE}/authorities.pem",
        "pip.conf": "/etc/pip.conf",
        "apt.conf": "/etc/apt/apt.conf.d/99machine",
    }
    return [f"{folder / name}:{place}:ro" for name, place in places.items()]


def _pip_configuration() -> dict[str, str]:
    """Returns the keys that concern the network; variables of the environment overrule files, as in pip."""
    lines = _output(sys.executable, "-m", "pip", "config", "list").splitlines()
    found = sorted(
        (name.startswith(":env:"), name.rpartition(".")[2], value)
        for name, _, value in (line.partition("=") for line in lines)
    )
    return {key: value.strip("'\"") for _, key, value in found if key in (*PIP_KEYS, "cert")}


def _authorities() -> str:
    """Returns a file. Debian's OpenSSL has a folder instead, beside the file of the package ca-certificates."""
    found = ssl.get_default_verify_paths().cafile or DEBIANS_AUTHORITIES
    if not Path(found).exists():
        raise RigError(f"There is no {found}; install the package ca-certificates.")
    return found


def _output(*command: str) -> str:
    return subprocess.run(command, capture_output=True, text=True, check=True).stdout
