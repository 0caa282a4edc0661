"""HPAs, scales and Events as kube-apiserver keeps them: for faults that a real one does not show on request."""

import copy
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from apiservice.auth.cluster_settings import ClusterUnreachable

Json = dict[str, Any]


@dataclass
class FakeObjects:
    """As `ClusterObjects`. `written` has every write that succeeded, in order: what was written, and to what."""

    kept: dict[str, Json] = field(default_factory=dict)
    written: list[tuple[str, object]] = field(default_factory=list)
    refusing: dict[str, ClusterUnreachable] = field(default_factory=dict)
    """Part of a path -> what every write to such a path raises."""
    before_write: list[Callable[[], None]] = field(default_factory=list)
    """What others do just before the next writes, one for each."""
    reads: list[str] = field(default_factory=list)

    def put(self, path: str, document: Json) -> None:
        version = int(self.kept.get(path, {"metadata": {}})["metadata"].get("resourceVersion", 0)) + 1
        changed = {**document["metadata"], "resourceVersion": str(version)}
        self.kept[path] = copy.deepcopy({**document, "metadata": changed})

    def read(self, path: str) -> Json | None:
        self.reads.append(path)
        self._refuse(path)
        return copy.deepcopy(self.kept.get(path))

    def create(self, path: str, document: Json) -> bool:
        self._refuse(path)
        self.written.append(("Event", document["reason"]))
        return True

    def replace(self, path: str, document: Json) -> bool:
        self._begin_write(path)
        if self.kept[path]["metadata"]["resourceVersion"] != document["metadata"]["resourceVersion"]:
            return False
        self.put(path, document)
        self.written.append(("replicas", document["spec"]["replicas"]))
        return True

    def merge(self, path: str, change: Json) -> bool:
        self._begin_write(path)
        if path not in self.kept:
            raise ClusterUnreachable("the Kubernetes API server answered 404: not found", 404)
        document, metadata = copy.deepcopy(self.kept[path]), change["metadata"]
        if metadata.get("resourceVersion") not in {None, document["metadata"]["resourceVersion"]}:
            return False
        before = document["metadata"]["annotations"]
        annotations = {**before, **metadata["annotations"]}
        kept = {key: value for key, value in annotations.items() if value is not None}
        if kept != before:
            document["metadata"]["annotations"] = kept
            self.put(path, document)
        for key, value in metadata["annotations"].items():
            if value is not None or key in before:
                self.written.append((key.rpartition("/")[2], "removed" if value is None else "set"))
        return True

    def apply(self, path: str, document: Json, *, force: bool, manager: str) -> bool:
        """As for the only owner of what it applies; annotations of ours that it leaves out go."""
        assert (force, manager) == (False, "kafka-lag-adapter-max-replicas")
        self._begin_write(path)
        kept, metadata = copy.deepcopy(self.kept[path]), document["metadata"]
        if kept["metadata"]["resourceVersion"] != metadata["resourceVersion"]:
            return False
        annotations = kept["metadata"]["annotations"]
        for mark in ("before", "by"):
            annotations.pop(f"kafka-lag-adapter/max-replicas-{mark}", None)
        annotations |= metadata.get("annotations", {})
        kept["spec"] |= document["spec"]
        self.put(path, kept)
        self.written.append(("maxReplicas", document["spec"]["maxReplicas"]))
        return True

    def _begin_write(self, path: str) -> None:
        self._refuse(path)
        if self.before_write:
            self.before_write.pop(0)()

    def _refuse(self, path: str) -> None:
        for part, error in self.refusing.items():
            if part in path:
                raise error
