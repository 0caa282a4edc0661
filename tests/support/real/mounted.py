"""A folder as the kubelet mounts a Secret or a ConfigMap: what the files link to is replaced all at once."""

from collections.abc import Mapping
from pathlib import Path


class Mounted:
    """Files of that folder are links to those of a hidden folder; a link to this one is turned with each version."""

    def __init__(self, folder: Path, contents: Mapping[str, str | bytes]) -> None:
        self.folder = folder
        self.contents: dict[str, str | bytes] = {}
        self._versions = 0
        folder.mkdir(parents=True, exist_ok=True)
        self.replace(contents)

    def replace(self, contents: Mapping[str, str | bytes]) -> None:
        """Changes these files and keeps the others."""
        self._versions += 1
        version = self.folder / f"..{self._versions}"
        version.mkdir()
        new = {**self.contents, **contents}
        for name, content in new.items():
            (version / name).write_bytes(content.encode() if isinstance(content, str) else content)
        link = self.folder / "..data_tmp"
        link.symlink_to(version.name)
        link.replace(self.folder / "..data")
        for name in new.keys() - self.contents.keys():
            linked = self.folder / f"..{name}_tmp"
            linked.symlink_to(f"..data/{name}")
            linked.replace(self.folder / name)
        self.contents = new
