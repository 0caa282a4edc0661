"""A bucket of the real S3 server, for one test."""

import shutil
from dataclasses import dataclass
from pathlib import Path

from local.s3.object_store import ObjectStore


@dataclass(frozen=True, slots=True)
class RealBucket:
    name: str
    server: ObjectStore

    @property
    def location(self) -> str:
        return f"s3://{self.name}/history"

    @property
    def folder(self) -> Path:
        """Where the server keeps the location's objects."""
        return self.server.bucket(self.name) / "history"

    def lay(self, root: Path) -> None:
        """Every file below the folder as an object of the location."""
        shutil.copytree(root, self.folder, dirs_exist_ok=True)

    def content(self) -> dict[str, bytes]:
        """Of every object of the location by its path, also of those that are staged."""
        there = (path for path in self.folder.rglob("*") if path.is_file())
        return {str(path.relative_to(self.folder)): path.read_bytes() for path in there}
