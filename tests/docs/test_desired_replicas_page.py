"""docs/desired-replicas.md and docs/migration.md: settings of numbers of replicas can be used as they are printed."""

import re
from pathlib import Path

import pytest
import yaml

from adapter.collector.resting import LONGEST_SECONDS
from adapter.lag.replicas import still_after
from adapter.settings.models import Replicas
from tests.support import samples

DOCS = Path(__file__).parents[2] / "docs"
PAGE = (DOCS / "desired-replicas.md").read_text()
SNIPPETS = [
    yaml.safe_load(snippet)
    for page in ("desired-replicas.md", "migration.md")
    for snippet in re.findall(r"```yaml\n(.*?)```", (DOCS / page).read_text(), re.DOTALL)
    if "replicas:" in snippet and not snippet.lstrip().startswith(("apiVersion", "- "))
]


@pytest.mark.parametrize("snippet", [each for each in SNIPPETS if {"rules", "metrics"} & each.keys()])
def test_settings_are_accepted(snippet: dict[str, object]) -> None:
    assert samples.settings(**snippet)


def test_the_keys_and_defaults_are_those_of_the_settings() -> None:
    (alone,) = (snippet["replicas"] for snippet in SNIPPETS if snippet.keys() == {"replicas"})
    assert Replicas.model_validate(alone).fallback is not None

    for field in Replicas.model_fields.values():
        assert f"`{field.alias}`" in PAGE or f"`{field.alias}:" in PAGE or f"{field.alias}: " in PAGE
    for key, default in (("lagPerReplica", 10), ("activation", 0), ("consumersPerReplica", 1)):
        assert f"`{key}` ({default})" in PAGE


def test_the_times_are_those_of_the_code() -> None:
    seconds = still_after(samples.settings().collection.interval)

    assert f"60 s and two cycles ({seconds:g} s by default)" in PAGE
    assert f"for at most {LONGEST_SECONDS / 60:g} minutes" in PAGE
