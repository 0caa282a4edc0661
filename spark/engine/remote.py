"""A session by Spark Connect. The server's executors are sent this code, but not the packages that it imports."""

import contextlib
import importlib.util
import socket
import tempfile
import zipfile
from collections.abc import Iterator, Mapping
from pathlib import Path
from urllib.parse import urlsplit

from pyspark.sql import SparkSession

from spark.errors import Unusable

PORT = 15002
"""What a server listens on unless it is told otherwise."""
PATIENCE_SECONDS = 10.0
"""The client itself would try again for many minutes."""
ROOT = Path(__file__).parents[2]
OF_TABLES = {"numpy": "numpy", "pyarrow": "pyarrow"}
"""What tasks import beside this code, and its names in an index."""
OF_HPAS = {**OF_TABLES, "numba": "numba", "pydantic": "pydantic", "yaml": "PyYAML"}
"""Of tasks that also replay HPAs."""


@contextlib.contextmanager
def connected(url: str, settings: Mapping[str, str], packages: Mapping[str, str]) -> Iterator[SparkSession]:
    """Ends the session with the block. Raises Unusable where no server answers, or its Python lacks `packages`."""
    _refuse_unreachable(url)
    session = SparkSession.builder.remote(url).getOrCreate()
    try:
        for name, value in settings.items():
            session.conf.set(name, value)
        with tempfile.TemporaryDirectory() as folder:
            code = Path(folder, "kafka-lag-report.zip")
            write_code(code)
            session.addArtifacts(str(code), pyfile=True)
        _refuse_without(session, packages, url)
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


def _refuse_without(session: SparkSession, packages: Mapping[str, str], url: str) -> None:
    """By a function of plain Python, which even a server without pyarrow can run."""
    from pyspark.sql import functions as F  # noqa: PLC0415 -- slow to load

    names = list(packages)

    def missing() -> str:
        return " ".join(name for name in names if importlib.util.find_spec(name) is None)

    (row,) = session.range(1).select(F.udf(missing, "string", useArrow=False)()).collect()
    if row[0]:
        lacked = ", ".join(packages[name] for name in row[0].split())
        raise Unusable(f"{_server(url)}: install {lacked} for the Python of its executors, where the tasks run")


def _server(url: str) -> str:
    """Without what may follow the address, such as a token."""
    parts = urlsplit(url)
    return f"{parts.scheme}://{parts.netloc}"


def _refuse_unreachable(url: str) -> None:
    parts = urlsplit(url)
    if parts.scheme != "sc" or not parts.hostname:
        raise Unusable(f"--remote: is {url!r}; must be a Spark Connect server such as sc://host:{PORT}")
    try:
        socket.create_connection((parts.hostname, parts.port or PORT), PATIENCE_SECONDS).close()
    except OSError as error:
        raise Unusable(f"{_server(url)} cannot be reached: {error.strerror or error}") from error
