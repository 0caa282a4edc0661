"""`kafka-lag-adapter explain`: why a group has its lag, read by this process, and what HPAs make of it."""

import json
import logging
from pathlib import Path
from typing import Literal

import typer

from adapter import clock
from adapter.metrics.query import Metrics
from apiservice.autoscalers import followed
from apiservice.autoscalers.autoscaler import Autoscaler, autoscaler_of
from apiservice.cluster_api.connection import connect
from apiservice.cluster_api.objects import ClusterObjects
from apiservice.commands.reading import reading
from apiservice.explanations import document_of, explained, text_of
from apiservice.flags import given_settings


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
    with reading(settings) as clusters:
        clusters.wait()
        metrics = clusters.metrics
        hpas = () if kubeconfig is None else _autoscalers(kubeconfig, metrics)
        what = explained(group, metrics, settings, clock, hpas)
    typer.echo(json.dumps(document_of(what), indent=2) if output == "json" else text_of(what), nl=output == "json")


def _autoscalers(kubeconfig: Path, metrics: Metrics) -> tuple[Autoscaler, ...]:
    found = ClusterObjects(connect(kubeconfig)).read(followed.PATH) or {}
    names = {name.lower() for name in metrics.names}
    ours = (autoscaler_of(each, names) for each in found.get("items", ()))
    return tuple(each for each in ours if each is not None)
