"""Where a report's files go: a folder, or a bucket. An earlier report stays until this one is made."""

import itertools
import shutil
import tempfile
from collections.abc import Iterable, Sequence
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
    `publish`, which takes path and text of each file, one after another, and leaves no other files in `folders`.
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

    def publish(self, documents: Iterable[tuple[str, str]], folders: Sequence[str] = ()) -> None:
        """All files are written under hidden names before the first takes its place; each of `folders` is replaced as a
        whole, and goes where there is no file for it."""
        staged = Path(tempfile.mkdtemp(prefix=".report-", dir=self.root))
        try:
            new, old = staged / "new", staged / "old"
            old.mkdir()
            for path, text in documents:
                (new / path).parent.mkdir(parents=True, exist_ok=True)
                (new / path).write_text(text, encoding="utf-8", newline="")
            for folder in folders:
                if (self.root / folder).exists():
                    (self.root / folder).rename(old / folder)
                if (new / folder).exists():
                    (new / folder).rename(self.root / folder)
            for file in new.iterdir():
                file.replace(self.root / file.name)
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

    def publish(self, documents: Iterable[tuple[str, str]], folders: Sequence[str] = ()) -> None:
        """Each file is one PUT: a reader meets an old file or a new one, never half of one."""
        written = set()
        for path, text in documents:
            self.files.write(path, text)
            written.add(path)
        for file in itertools.chain.from_iterable(self.files.listed(folder, 0) for folder in folders):
            if file.path not in written:
                self.files.delete(file.path)
