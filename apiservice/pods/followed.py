"""The pods of one namespace, as values that follow those in the cluster."""

from collections.abc import Iterator

from apiservice.pods.pod import Json, Pod, pod_of


class FollowedPods:
    """A watch of pods calls `listed` and `changed`; any thread may read `current`."""

    def __init__(self) -> None:
        self.current: tuple[Pod, ...] | None = None
        """None: they have not been listed yet."""
        self._by_name: dict[str, Pod] = {}

    def listed(self, objects: Iterator[Json]) -> None:
        self._by_name = {pod.name: pod for pod in map(pod_of, objects)}
        self.current = tuple(self._by_name.values())

    def changed(self, event: str, changed: Json) -> None:
        pod = pod_of(changed)
        if event != "DELETED" and self._by_name.get(pod.name) == pod:
            return  # the status of a pod changes more often than what is kept of it
        if event == "DELETED":
            self._by_name.pop(pod.name, None)
        else:
            self._by_name[pod.name] = pod
        self.current = tuple(self._by_name.values())
