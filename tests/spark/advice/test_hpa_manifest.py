import re
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import Any

import pytest
import yaml
from hypothesis import given, settings
from hypothesis import strategies as st

from adapter.settings.models import Objective, Replicas
from adapter.verdicts.simulation.scalers import Served
from apiservice.metrics_api.label_selector import parse as parse_selector
from local.manifests.consistency import hpa_problems
from spark.advice.advised import Advice
from spark.advice.candidates import tried_of
from spark.advice.hpa import draft_of
from spark.advice.hpa_files.hpa_manifest import file_names, hpa_yaml, is_label_value
from spark.advice.hpa_files.yaml_text import quoted
from spark.advice.presets import best_of
from spark.advice.recommendation import Reads
from spark.figures.agreement import Agreement
from spark.figures.model import Group
from spark.trials.hpa_file import candidate_of, given_in
from tests.support.history.advised_groups import UTC, advice_for
from tests.support.history.recommended_files import hpa_in, object_in, settings_in
from tests.support.history.report_groups import group, hours, saturated, topic

NAMES = st.text(max_size=80)
OBJECT_NAME = re.compile(r"[a-z0-9]([-a-z0-9]*[a-z0-9])?")


def written(of: Group, advice: Advice | None = None) -> str:
    advice = advice or advice_for(of)
    fitting = best_of(advice.presets)
    return hpa_yaml(of, advice, fitting, file_names([of])[0])


@cache
def advice_of_any_name() -> Advice:
    return advice_for(group(capacity=saturated()))


def spec_of(text: str) -> dict[str, Any]:
    return dict(object_in(text)["spec"])


def external(text: str) -> dict[str, Any]:
    (metric,) = spec_of(text)["metrics"]
    return dict(metric["external"]["metric"])


def selector_text(text: str) -> str:
    """As the HPA's client writes matchLabels in a request."""
    labels = external(text)["selector"]["matchLabels"]
    return ",".join(f"{key}={value}" for key, value in labels.items())


def problems(spec: dict[str, Any]) -> list[str]:
    """What kube-apiserver's validation of an autoscaling/v2 HPA would refuse."""
    found = []
    if not 0 <= spec["minReplicas"] <= spec["maxReplicas"] or spec["maxReplicas"] < 1:
        found.append("replicas")
    (metric,) = spec["metrics"]
    target = metric["external"]["target"]
    if set(target) != {"type", "averageValue"} or not is_quantity(target["averageValue"]):
        found.append("target")
    for direction in ("scaleUp", "scaleDown"):
        rules = spec["behavior"][direction]
        if not 0 <= rules["stabilizationWindowSeconds"] <= 3600:
            found.append("window")
        if not rules["policies"] or rules["selectPolicy"] not in {"Max", "Min", "Disabled"}:
            found.append("policies")
        found += [
            "policy"
            for policy in rules["policies"]
            if policy["type"] not in {"Pods", "Percent"}
            or policy["value"] < 1
            or not 1 <= policy["periodSeconds"] <= 1800
        ]
    return found


def is_quantity(text: str) -> bool:
    return text.isdecimal() and int(text) > 0


@pytest.mark.parametrize("of", [group(), group("x", topic(of=hours(1, lambda _: 0)))])
def test_a_file_without_a_target_says_so_and_is_no_hpa_that_kubernetes_takes(of: Group) -> None:
    text = written(of)

    assert problems(spec_of(text)) == ["target"]
    assert "# No target is recommended. " in text


@pytest.mark.parametrize(
    "of",
    [
        group(capacity=saturated()),
        group(
            "x",
            topic(of=hours(200, lambda hour: 5 + hour % 2, partitions=300, skew=0.003), threshold=10**6),
            capacity=saturated(20, 1),
        ),
    ],
)
def test_every_file_is_an_hpa_that_kubernetes_takes(of: Group) -> None:
    assert problems(spec_of(written(of))) == []


def test_legal_names_are_selected_by_their_labels() -> None:
    metric = external(written(group("billing", topic("orders"))))

    assert metric["name"] == "kafka_consumergroup_lag"
    assert metric["selector"] == {"matchLabels": {"cluster": "main", "group": "billing", "topic": "orders"}}


def test_several_topics_of_one_group_are_one_sum() -> None:
    selector = external(written(group("billing", topic("orders"), topic("returns"))))["selector"]

    assert selector["matchLabels"] == {"cluster": "main", "group": "billing"}
    assert selector["matchExpressions"] == [{"key": "topic", "operator": "In", "values": ["orders", "returns"]}]


@settings(max_examples=30)
@given(NAMES.filter(lambda name: not is_label_value(name)))
def test_other_names_get_a_named_metric_whose_settings_the_adapter_takes(name: str) -> None:
    text = written(group(name, topic("orders")))
    parsed = settings_in(text)

    assert parsed.metrics[0].group == name
    assert external(text) == {"name": parsed.metrics[0].name}


def by_number(name: str, reads: Reads) -> str:
    """The file of an HPA on a number of replicas, for a group with this name."""
    busy = topic(of=hours(production=lambda _: 40), threshold=10**9)
    of = replace(group(name, busy, capacity=saturated(60, 49.99)), agreement=Agreement(max_wait_seconds=120))
    draft = draft_of(of, UTC)
    hpa = next(it.hpa for it in tried_of(draft) if it.hpa is not None and it.hpa.reads is reads)
    return written(of, Advice(draft.load, hpa, ()))


@pytest.mark.parametrize(
    ("reads", "shape"),
    [
        (Reads.REQUIRED_REPLICAS, Objective.model_validate({"maxWait": "120s", "capacityHint": 49.9})),
        (Reads.REPLICAS, Replicas.model_validate({"lagPerReplica": 4900})),
    ],
)
def test_an_hpa_on_a_number_of_replicas_brings_its_rule_and_both_are_taken_as_they_are(
    reads: Reads, shape: Objective | Replicas
) -> None:
    text = by_number("billing", reads)
    (rule,) = settings_in(text).rules
    behavior = hpa_in(text).behavior

    assert (rule.group, rule.topics, rule.objective or rule.replicas) == ("billing", ("orders",), shape)
    assert list(hpa_problems(object_in(text), {"group"}, "1")) == problems(spec_of(text)) == []
    assert external(text)["name"] == reads.metric
    assert behavior is not None
    assert behavior.scale_up.tolerance == 0


@pytest.mark.parametrize(
    ("reads", "shape"),
    [
        (Reads.REQUIRED_REPLICAS, Replicas.model_validate({"maxWait": "120s", "capacityHint": 49.9})),
        (Reads.REPLICAS, Replicas.model_validate({"lagPerReplica": 4900})),
    ],
)
def test_a_name_that_no_selector_can_name_has_a_named_metric_of_replicas(reads: Reads, shape: Replicas) -> None:
    text = by_number("Billing Service/eu", reads)
    (metric,) = settings_in(text).metrics

    assert (metric.group, metric.topics, metric.value, metric.replicas) == (
        "Billing Service/eu",
        ("orders",),
        reads.short,
        shape,
    )
    assert external(text) == {"name": metric.name}
    assert hpa_in(text).metrics[0].source.target.average_value == 1000


@pytest.mark.parametrize("name", ["billing", "Billing Service/eu"])
def test_a_file_on_a_number_of_replicas_by_the_lag_is_replayed_by_its_own_rule(name: str, tmp_path: Path) -> None:
    file = tmp_path / "hpa.yaml"
    file.write_text(by_number(name, Reads.REPLICAS))
    of = group(name)

    assert candidate_of(given_in(file), of, 120.0).served == Served(4900.0 * of.partitions, 4900.0)


def test_an_hpa_on_the_lag_needs_no_rule() -> None:
    assert settings_in(by_number("billing", Reads.LAG)).rules == ()


@settings(max_examples=30)
@given(NAMES, NAMES)
def test_no_name_breaks_the_file(name: str, of_topic: str) -> None:
    """The figures are those of other names: only these are at issue, and a replay takes its time."""
    text = written(group(name, topic(of_topic), capacity=saturated()), advice_of_any_name())

    assert problems(spec_of(text)) == []
    assert all(character.isprintable() or character == "\n" for character in text)


@given(st.text(alphabet=st.characters(codec="utf-8")))
def test_quoted_text_is_read_back_as_it_was(text: str) -> None:
    assert yaml.safe_load(quoted(text)) == text


@given(
    st.lists(st.tuples(st.sampled_from(["main", "eu"]), NAMES | st.sampled_from(["a", "A", "a-", "a b"])), unique=True)
)
def test_names_of_files_are_legal_and_never_shared(keys: list[tuple[str, str]]) -> None:
    names = file_names([replace(group(name), cluster=cluster) for cluster, name in keys])

    assert len({name.casefold() for name in names}) == len(keys)
    assert all(OBJECT_NAME.fullmatch(name) and len(name) <= 63 for name in names)


def test_a_group_named_like_anothers_file_takes_nothing_from_it() -> None:
    first = file_names([group("A b")])[0]
    names = file_names([group("A b"), group(first)])

    assert len(set(names)) == 2


def test_a_plain_name_stays_as_it_is() -> None:
    assert file_names([group("billing"), group("search-2")]) == ("billing", "search-2")


@pytest.mark.parametrize("name", ["", "\u65e5\u672c", "..."])
def test_a_name_of_which_nothing_can_stand_in_a_files_name_is_called_a_group(name: str) -> None:
    assert re.fullmatch("group-[0-9a-f]{8}", file_names([group(name)])[0])


def test_the_group_without_a_name_is_selected_by_its_label() -> None:
    """The adapter's settings take no empty name, and an empty text is a legal label value."""
    (group_is,) = (it for it in parse_selector(selector_text(written(group("", topic("orders"))))) if it.key == "group")

    assert group_is.only == frozenset({""})


def test_doubts_and_reasons_stand_in_the_file() -> None:
    text = written(group("billing", topic(of=hours(4))))

    assert "# - [note] Less than a day of data" in text
    assert "your-consumer" in text
    assert max(len(line) for line in text.splitlines()) <= 120


def test_the_words_of_a_label_value_are_kubernetes() -> None:
    legal, illegal = ("", "a", "A.b_c-d", "x" * 63), ("-a", "a-", "a b", "x" * 64, "ä", "a\n")

    assert all(map(is_label_value, legal))
    assert not any(map(is_label_value, illegal))
