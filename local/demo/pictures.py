"""What the programs that make pictures of the demo's groups have in common: flags, messages and the exit status."""

import argparse
import sys
from collections.abc import Callable
from pathlib import Path

from local import downloads
from local.processes import RigError, exit_on_sigterm, scratch

DOCS = Path(__file__).parents[2] / "docs"

Maker = Callable[[Path, int, Path], None]
"""Takes a folder of its own, the seconds, and the folder for the pictures. May raise RigError."""


def run(program: str, make: Maker, seconds: int, what_seconds_are: str) -> int:
    """Makes pictures as the command line says; returns the exit status. `seconds`: the default."""
    parser = argparse.ArgumentParser(prog=f"python -m local.demo.{program}")
    parser.add_argument("--seconds", type=int, default=seconds, help=f"{what_seconds_are} (default: %(default)s)")
    parser.add_argument("--into", type=Path, default=DOCS, metavar="FOLDER", help="default: docs")
    arguments = parser.parse_args()
    try:
        with exit_on_sigterm(), scratch("picture") as home:
            if missing := downloads.main(("kafka", "control-plane")):
                return missing
            make(home, arguments.seconds, arguments.into)
            return 0
    except RigError as error:
        print(f"No picture: {error}", file=sys.stderr)
        return 1
