"""Any other location, through Hadoop's FileSystem: so s3a://, hdfs:// and whatever Spark is configured for work by
configuration alone."""

from __future__ import annotations

import io
from pathlib import Path
from typing import Any, BinaryIO

from pyspark.sql import SparkSession

from spark.storage.protocol import FOOTER_BYTES, DirectFiles, File, is_below_hidden, is_hidden, renamed
from spark.storage.tails import Tail


class HadoopFiles:
    """The same through the JVM."""

    def __init__(self, location: str, session: SparkSession) -> None:
        self.location = location.rstrip("/")
        self._jvm: Any = session._jvm  # pyspark shows the JVM under no other name
        self._configuration: Any = session._jsc.hadoopConfiguration()
        self._system: Any = self._path().getFileSystem(self._configuration)

    @property
    def at_once(self) -> int:
        return 1

    @property
    def direct(self) -> DirectFiles | None:
        return None

    def exists(self, path: str = "") -> bool:
        return bool(self._system.exists(self._path(path)))

    def listed(self, table: str, depth: int) -> list[File]:
        found = self._system.globStatus(self._path("/".join([table, *["*"] * (depth + 1)]))) or ()
        files = (File(self._relative(status), status.getLen()) for status in found if status.isFile())
        return sorted(
            (file for file in files if not is_below_hidden(file.path.removeprefix(table))), key=lambda file: file.path
        )

    def hidden(self, path: str = "") -> list[str]:
        found = self._system.globStatus(self._path(f"{path}/*" if path else "*")) or ()
        return sorted(filter(is_hidden, (status.getPath().getName() for status in found)))

    def read(self, path: str) -> str | None:
        if not self.exists(path):
            return None
        stream = self._system.open(self._path(path))
        try:
            return bytes(self._jvm.org.apache.commons.io.IOUtils.toByteArray(stream)).decode()
        finally:
            stream.close()

    def write(self, path: str, text: str) -> None:
        stream = self._system.create(self._path(path), True)
        stream.write(bytearray(text.encode()))
        stream.close()

    def move(self, old: str, new: str) -> None:
        """As LocalFiles.move."""
        self._system.mkdirs(self._path(new).getParent())
        if not self._system.rename(self._path(old), self._path(new)):
            raise OSError(f"{self.location}/{old} could not be renamed to {new}")

    def swap(self, staged: str, target: str, aside: str) -> None:
        renamed(self, staged, target, aside)

    def replace(self, staged: str, target: str) -> None:
        self.delete(target)
        self.move(staged, target)

    def delete(self, path: str) -> None:
        self._system.delete(self._path(path), True)

    def opened(self, file: File) -> BinaryIO:
        start = max(0, file.size - FOOTER_BYTES)
        stream = self._system.open(self._path(file.path))
        try:
            stream.seek(start)
            tail = bytes(self._jvm.org.apache.commons.io.IOUtils.toByteArray(stream))
        finally:
            stream.close()
        return io.BufferedReader(Tail(start, tail))

    def local_path(self, file: File) -> Path | None:
        del file
        return None

    def uri(self, path: str = "") -> str:
        return f"{self.location}/{path}" if path else self.location

    def shown(self, path: str = "") -> str:
        return self.uri(path)

    def _path(self, path: str = "") -> Any:  # noqa: ANN401 -- Java's
        return self._jvm.org.apache.hadoop.fs.Path(self.uri(path))

    def _relative(self, status: Any) -> str:  # noqa: ANN401 -- Java's
        root = self._path().toUri().getPath().rstrip("/")
        return str(status.getPath().toUri().getPath()).removeprefix(f"{root}/")
