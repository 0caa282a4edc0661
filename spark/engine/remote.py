"""A session by Spark Connect. The server's executors are sent this code. They must have pyarrow and numpy, and for
replays pydantic and PyYAML, by which HPAs are parsed."""

import contextlib
import socket
import tempfile
import zipfile
from collections.abc import Iterator
from pathlib import Path
from urllib.parse import urlsplit

from pyspark.sql import SparkSession

from spark.errors import Unusable

PORT = 15002
"""What a server listens on unless it is told otherwise."""
PATIENCE_SECONDS = 10.0
"""The client itself would try again for many minutes."""
ROOT = Path(__file__).parents[2]


@contextlib.contextmanager
def connected(url: str, settings: dict[str, str]) -> Iterator[SparkSession]:
    """Ends the session with the block. Raises Unusable where no server answers."""
    _refuse_unreachable(url)
    session = SparkSession.builder.remote(url).getOrCreate()
    try:
        for name, value in settings.items():
            session.conf.set(name, value)
        with tempfile.TemporaryDirectory() as folder:
            code = Path(folder, "kafka-lag-report.zip")
            write_code(code)
            session.addArtifacts(str(code), pyfile=True)
        yield session
    finally:
        with contextlib.suppress(Exception):  # the server may be gone
            session.stop()


def write_code(target: Path) -> None:
    """This package and the adapter's, as one zip file."""
    with zipfile.ZipFile(target, "w", zipfile.ZIP_DEFLATED) as archive:
        for package in ("adapter", "spark"):
            for file in sorted((ROOT / package).rglob("*")):
                if file.is_file() and "__pycache__" not in file.parts:
                    archive.write(file, file.relative_to(ROOT))


def _refuse_unreachable(url: str) -> None:
    parts = urlsplit(url)
    if parts.scheme != "sc" or not parts.hostname:
        raise Unusable(f"--remote: is {url!r}; must be a Spark Connect server such as sc://host:{PORT}")
    try:
        socket.create_connection((parts.hostname, parts.port or PORT), PATIENCE_SECONDS).close()
    except OSError as error:
        raise Unusable(f"{parts.scheme}://{parts.netloc} cannot be reached: {error.strerror or error}") from error
