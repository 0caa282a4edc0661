"""The shipped dashboards, as Grafana gets them from their ConfigMaps."""

import json
from pathlib import Path
from typing import Any

import yaml

from local.manifests.check import MANIFESTS

FOLDER = MANIFESTS / "dashboards"


def dashboards(group: str) -> dict[str, dict[str, Any]]:
    """Returns the JSON of each by its name (`overview`), for this regular expression of groups and for all clusters."""
    files = {file.stem.removeprefix("config-map-dashboard-"): file for file in sorted(FOLDER.glob("config-map-*.yaml"))}
    return {name: _filled(file, {"$cluster": ".*", "$group": group}) for name, file in files.items()}


def _filled(file: Path, variables: dict[str, str]) -> dict[str, Any]:
    (text,) = yaml.safe_load(file.read_text())["data"].values()
    for variable, value in variables.items():
        text = text.replace(variable, value)
    filled: dict[str, Any] = json.loads(text)
    return filled
