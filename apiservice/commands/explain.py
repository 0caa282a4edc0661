"""`kafka-lag-adapter explain`: why a group has its lag, read by this process, and what HPAs make of it."""

import json
import logging
from pathlib import Path
from typing import Literal

import typer

from adapter import clock
from adapter.lag.rules import AskedTopics
from adapter.metrics.query import Metrics
from apiservice.autoscalers import followed
from apiservice.autoscalers.asked import asked_topics
from apiservice.autoscalers.autoscaler import Autoscaler, autoscaler_of
from apiservice.cluster_api.connection import Json, connect
from apiservice.cluster_api.objects import ClusterObjects
from apiservice.commands.reading import reading
from apiservice.explanations import document_of, explained, text_of
from apiservice.flags import given_settings
from apiservice.pods.pod import Pod, pod_of
from apiservice.pods.watches import path_of


def run(
    group: str,
    config: Path | None,
    bootstrap_servers: str | None,
    kubeconfig: Path | None,
    output: Literal["text", "json"],
) -> None:
    """Prints it. Raises AdapterError if the group is not known, or no cluster can be read."""
    logging.disable()  # what goes wrong is in the text
    settings = given_settings(config, bootstrap_servers)
    hpas = _Hpas(kubeconfig)
    with reading(settings, hpas.asked) as clusters:
        clusters.wait()
        what = explained(group, clusters.metrics, settings, clock, hpas.current, pods_in=hpas.pods_in)
    typer.echo(json.dumps(document_of(what), indent=2) if output == "json" else text_of(what), nl=output == "json")


class _Hpas:
    """Those on our metrics, as they were when `asked` was called; none without a kubeconfig."""

    def __init__(self, kubeconfig: Path | None) -> None:
        self._objects = None if kubeconfig is None else ClusterObjects(connect(kubeconfig))
        self.current: tuple[Autoscaler, ...] = ()

    def asked(self, metrics: Metrics) -> frozenset[AskedTopics]:
        names = {name.lower() for name in metrics.names}
        ours = (autoscaler_of(each, names) for each in self._items(followed.PATH))
        self.current = tuple(each for each in ours if each is not None)
        return frozenset(topics for each in self.current for topics in asked_topics(each, metrics.named_groups))

    def pods_in(self, namespace: str) -> list[Pod]:
        return [pod_of(each) for each in self._items(path_of(namespace))]

    def _items(self, path: str) -> list[Json]:
        found = None if self._objects is None else self._objects.read(path)
        return (found or {}).get("items") or []
