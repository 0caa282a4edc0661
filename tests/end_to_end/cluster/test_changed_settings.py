"""A changed settings file takes effect in the running process, whole or not at all, and no read fails meanwhile."""

import json
from collections.abc import Mapping
from functools import partial
from pathlib import Path
from typing import Any

import yaml

from local.adapter import EXTERNAL_METRICS, Adapter, own_kubeconfig, process
from local.certificates import Pair
from local.kafka.broker import Kafka
from local.kafka.tools import commit, create_topic, produce
from local.kubernetes.control_plane import ControlPlane
from local.processes import free_port, wait_until
from tests.support.real.groups_to_read import LAG, path
from tests.support.real.mounted import Mounted
from tests.support.real.repeated_reads import repeated

WAIT_SECONDS = 120.0
TOPIC, GROUP, NAMED = "changed-settings", "changing", "changing-backlog"
READ = path("default", LAG, f"group%3D{GROUP},cluster%3Dmain")


def test_changed_settings_take_effect_as_a_whole_while_every_read_succeeds(
    control_plane: ControlPlane, one_broker: Kafka, administrator: Pair, tmp_path: Path
) -> None:
    create_topic(one_broker, TOPIC, 1)
    produce(one_broker, TOPIC, 30)
    commit(one_broker, GROUP, {(TOPIC, 0): 10})
    main = {"name": "main", "bootstrapServers": one_broker.bootstrap_servers.split(",")}
    # Groups of other tests may be in a state in which no collector can read them.
    collection = {"interval": "1s", "maxAge": "60s", "groups": {"include": [GROUP]}}
    first = {"clusters": [main], "collection": collection}
    named = {"name": NAMED, "value": "lag", "cluster": "main", "group": GROUP}
    second = {**first, "clusters": [main, {**main, "name": "again"}], "metrics": [named]}
    misspelt = {**second, "clusters": [{**main, "bootstrapServers": [f"127.0.0.1:{free_port()}"]}]}
    with process(tmp_path, first, own_kubeconfig(control_plane)) as running:
        settings = ConfigMapFile(running.settings, first)
        wait_until(running.is_ready, "the adapter to be ready", WAIT_SECONDS)
        wait_until(lambda: running.get(READ, shown=administrator)[0] == 200, "the group to be read", WAIT_SECONDS)
        with repeated(lambda: running.get(READ, shown=administrator)[0]) as codes:
            settings.replace(second)
            wait_until(lambda: NAMED in discovered(running, administrator), "the named metric", WAIT_SECONDS)
            code, body = running.get(path("default", NAMED), shown=administrator)
            assert (code, json.loads(body)["items"][0]["value"]) == (200, "20")
            # Complete or partial: other tests leave groups on the broker of which a part cannot be read.
            cycles = 'cycles_total{cluster="again",outcome="'
            wait_until(lambda: cycles in own_metrics(running), "the first cycle that is served", WAIT_SECONDS)

            settings.replace({"clusters": [], "rule": []})
            wait_until(lambda: "is refused" in remarks(running), "the file to be refused", WAIT_SECONDS)
            assert remarks(running).endswith("in force: clusters, rule; the log has details")
            assert f"rule: {running.settings}: clusters: must not be empty" in running.process.log.read_text()
            assert 'condition{cluster="",condition="settings",status="false"} 1.0' in own_metrics(running)
            assert NAMED in discovered(running, administrator)

            settings.replace(misspelt)
            wait_until(lambda: "have been read: main" in remarks(running), "the new address to be tried", WAIT_SECONDS)

            settings.replace({**second, "history": {"location": str(tmp_path / "history")}})
            wait_until(lambda: "in force: history;" in remarks(running), "the history to be refused", WAIT_SECONDS)

            settings.replace(first)
            wait_until(lambda: NAMED not in discovered(running, administrator), "the first settings", WAIT_SECONDS)
            wait_until(lambda: 'cluster="again"' not in own_metrics(running), "its series to go", WAIT_SECONDS)
            wait_until(lambda: remarks(running) == "", "the settings to be reported as in force", WAIT_SECONDS)
        for changes in ('{outcome="taken_over"} 2.0', '{outcome="refused"} 2.0'):
            wait_until(partial(is_counted, running, changes), changes, WAIT_SECONDS)
    assert set(codes) == {200}
    assert len(codes) > 20


class ConfigMapFile:
    """A file that is replaced as the kubelet replaces those of a ConfigMap."""

    def __init__(self, file: Path, settings: Mapping[str, Any]) -> None:
        self._name = file.name
        self._mounted = Mounted(file.parent, {file.name: yaml.safe_dump(dict(settings))})

    def replace(self, settings: Mapping[str, Any]) -> None:
        self._mounted.replace({self._name: yaml.safe_dump(dict(settings))})


def discovered(adapter: Adapter, administrator: Pair) -> set[str]:
    code, body = adapter.get(EXTERNAL_METRICS, shown=administrator)
    assert code == 200
    return {resource["name"] for resource in json.loads(body)["resources"]}


def remarks(adapter: Adapter) -> str:
    code, body = adapter.get_plain("/readyz?verbose")
    assert code == 200
    return "\n".join(line for line in body.decode().splitlines() if line.startswith("warn: settings: "))


def is_counted(adapter: Adapter, changes: str) -> bool:
    return f"settings_changes_total{changes}" in own_metrics(adapter)


def own_metrics(adapter: Adapter) -> str:
    return adapter.get_plain("/metrics")[1].decode()
