"""docs/demand.md: the example on the page is what `make demo-demand` runs, so its figures hold for a copy."""

import re
from pathlib import Path
from typing import Any

import numpy as np
import yaml

from adapter.verdicts.demands import Demand, Promise
from adapter.verdicts.required import required
from local.manifests.check import MANIFESTS
from local.promise import scenario
from tests.support import samples

PAGE = (Path(__file__).parents[2] / "docs" / "demand.md").read_text()
EXAMPLE = "example-hpa-required.yaml"


def snippets() -> list[Any]:
    return [yaml.safe_load(snippet) for snippet in re.findall(r"```yaml\n(.*?)```", PAGE, re.DOTALL)]


def test_the_demo_has_the_rule_of_the_page_with_other_names_and_another_capacity() -> None:
    (rule,) = next(snippet["rules"] for snippet in snippets() if "rules" in snippet)
    assert samples.settings(rules=[rule])
    rule["objective"]["capacityHint"] = scenario.CAPACITY

    assert {**rule, "group": scenario.BY_PROMISE, "topics": [scenario.TOPIC]} == scenario.promise()


def test_the_demo_applies_the_example_of_the_page_with_other_names() -> None:
    assert f"(../manifests/{EXAMPLE}) is the HPA for it" in PAGE
    example = yaml.safe_load((MANIFESTS / EXAMPLE).read_text())
    name = scenario.BY_PROMISE
    example["metadata"] = {"name": name, "namespace": scenario.NAMESPACE}
    example["spec"]["scaleTargetRef"]["name"] = name
    example["spec"]["metrics"][0]["external"]["metric"]["selector"]["matchLabels"] = {"group": name}

    assert scenario.hpa(name) == example
    (most,) = {scenario.hpa(group)["spec"]["maxReplicas"] for group in scenario.GROUPS}
    assert f"both may have {most} replicas" in " ".join(PAGE.split())
    assert needed(scenario.PARTITIONS, float(scenario.rates().max())) <= most <= scenario.PARTITIONS


def test_the_figures_are_of_the_scenario() -> None:
    (shown,) = re.findall(r"\*\*Seen side by side\.\*\*(.*?)\n\n", PAGE, re.DOTALL)

    for what in (
        f"topic of {scenario.PARTITIONS} partitions",
        f"read {scenario.CAPACITY:g} messages/s each",
        f"need {scenario.START_SECONDS} s to start",
        f"from {scenario.LEAST_RATE:g} to {scenario.MOST_RATE:g} messages/s",
        f"{scenario.LAG_PER_REPLICA} messages of lag per replica",
        f"`maxWait: {scenario.MAX_WAIT}s`",
    ):
        assert what in " ".join(shown.split())


def needed(partitions: int, rate: float) -> int:
    nothing = np.zeros(partitions)
    demand = Demand(np.full(partitions, rate / partitions), nothing, nothing, scenario.CAPACITY, (partitions,))
    return required(0.0, demand, Promise.of(scenario.MAX_WAIT, demand.sharing, scenario.INTERVAL_SECONDS))[0].members


def test_the_steps_of_whole_partitions_are_those_of_the_rule() -> None:
    assert "120 messages/s need 7 consumers and 121 need 12" in " ".join(PAGE.split())
    assert [needed(12, rate) for rate in (120.0, 121.0)] == [7, 12]
    assert [needed(16, rate) for rate in (120.0, 121.0)] == [8, 8]
