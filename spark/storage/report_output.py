"""Where a report's files go: a folder, or a bucket. An earlier report stays until this one is made."""

import shutil
import tempfile
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from spark.errors import ReportError, Unusable
from spark.storage.local import LocalFiles, refuse_unwritable
from spark.storage.location import answer_of, files_at
from spark.storage.protocol import HistoryFiles

PROBE = ".writable"
"""An object that is written and deleted at the start: only that shows whether the bucket may be written."""


def output_at(place: str) -> "FolderOutput | BucketOutput":
    """Raises Unusable where it is neither a path nor a bucket.

    So do both outputs where the place cannot be written: `prepare` before anything is computed for nothing, and
    `publish`, which takes the text for each path and leaves no other files in `hpa/`.
    """
    files = files_at(place)
    return FolderOutput(files.root) if isinstance(files, LocalFiles) else BucketOutput(files)


@dataclass(frozen=True, slots=True)
class FolderOutput:
    root: Path

    def prepare(self) -> None:
        try:
            self.root.mkdir(parents=True, exist_ok=True)
        except FileExistsError as error:
            raise Unusable(f"{self.root} is not a folder") from error
        except OSError as error:
            raise self._refusal(error) from error
        refuse_unwritable(self.root)

    def publish(self, documents: Mapping[str, str]) -> None:
        """All files are written under hidden names before the first takes its place; `hpa` is replaced as a whole."""
        staged = Path(tempfile.mkdtemp(prefix=".report-", dir=self.root))
        try:
            (staged / "hpa").mkdir()
            for path, text in documents.items():
                (staged / path).write_text(text, encoding="utf-8", newline="")
            if (self.root / "hpa").exists():
                (self.root / "hpa").rename(staged / "old")
            (staged / "hpa").rename(self.root / "hpa")
            for path in documents:
                if "/" not in path:
                    (staged / path).replace(self.root / path)
        except OSError as error:
            raise self._refusal(error) from error
        finally:
            shutil.rmtree(staged, ignore_errors=True)

    def _refusal(self, error: OSError) -> Unusable:
        return Unusable(f"{self.root} cannot be written: {error.strerror or error}")


@dataclass(frozen=True, slots=True)
class BucketOutput:
    files: HistoryFiles

    def prepare(self) -> None:
        answer_of(self.files)
        try:
            self.files.write(PROBE, "")
            self.files.delete(PROBE)
        except ReportError as error:
            raise Unusable(str(error)) from error

    def publish(self, documents: Mapping[str, str]) -> None:
        """Each file is one PUT: a reader meets an old file or a new one, never half of one."""
        for path, text in documents.items():
            self.files.write(path, text)
        for file in self.files.listed("hpa", 0):
            if file.path not in documents:
                self.files.delete(file.path)
