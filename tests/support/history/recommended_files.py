"""The files of recommended HPAs as those read them who copy them: the adapter its settings, kube-apiserver the HPA."""

from typing import Any

import yaml

from adapter.metrics.definitions import SERVED
from adapter.settings.file import parse
from adapter.settings.models import Settings
from adapter.verdicts.hpa import Hpa, hpa_of

CLUSTERS = "clusters: [{name: main, bootstrapServers: ['localhost:1']}]\n"


def settings_in(text: str) -> Settings:
    """Those of the comments; raises SettingsInvalid where the adapter would refuse them."""
    snippet = "\n".join(line.split("# | ", 1)[1] for line in text.splitlines() if "# | " in line)
    return parse(yaml.safe_load(f"{CLUSTERS}{snippet}"), SERVED)


def object_in(text: str) -> dict[str, Any]:
    (document,) = yaml.safe_load_all(text)
    assert isinstance(document, dict)
    return document


def hpa_in(text: str) -> Hpa:
    """Raises HpaInvalid where kube-apiserver would refuse it."""
    return hpa_of(object_in(text))
