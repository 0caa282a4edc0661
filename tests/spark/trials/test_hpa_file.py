import re
from pathlib import Path

import pytest
import yaml

from adapter.verdicts.simulation.promised import Promised
from adapter.verdicts.simulation.scalers import Served
from spark.errors import Unusable
from spark.trials.hpa_file import REPLICAS, REQUIRED, GivenHpa, candidate_of, given_in
from spark.trials.references import Candidate
from tests.spark.replay.test_command import lag_of
from tests.support.history.report_groups import group, topic
from tests.support.hpas import Json, document, external, hpa

BILLING = group("billing", topic("orders"))


def replayed(*metrics: Json) -> Candidate:
    return candidate_of(GivenHpa("hpa.yaml", hpa(*metrics, most=12)), BILLING, 30.0)


@pytest.mark.parametrize(
    ("metric", "sentence"),
    [
        (lag_of("shop"), "spec.metrics[0] scales on group 'shop', not on the lag of group 'billing'"),
        (lag_of("billing", topic="other"), "spec.metrics[0] scales on topic 'other'"),
        (lag_of("billing", metric="queue"), "spec.metrics[0] scales on 'queue', not on the lag of group 'billing'"),
    ],
)
def test_an_hpa_that_scales_on_anything_else_is_refused(metric: Json, sentence: str) -> None:
    with pytest.raises(Unusable, match=sentence.replace("[", r"\[").replace("]", r"\]")):
        replayed(metric)


@pytest.mark.parametrize("metric", [lag_of("billing"), external(average="3000", name="billing-backlog")])
def test_the_lag_of_the_group_and_a_named_metric_are_accepted(metric: Json) -> None:
    assert replayed(metric).rule is None


def required(average: str = "1", name: str = REQUIRED) -> Json:
    metric = lag_of("billing", metric=name)
    metric["external"]["target"]["averageValue"] = average
    return metric


@pytest.mark.parametrize("metric", [required(), external(average="1", name="billing-replicas")])
def test_a_number_of_replicas_is_replayed_with_the_promise(metric: Json) -> None:
    assert replayed(metric).rule == Promised(30.0)


@pytest.mark.parametrize("name", [REQUIRED, REPLICAS])
def test_a_number_of_replicas_with_another_target_or_beside_a_lag_is_refused(name: str) -> None:
    given = GivenHpa("hpa.yaml", hpa(required("1", name), lag_of("billing"), most=12), lag_per_replica=500)

    with pytest.raises(Unusable, match='must be `averageValue: "1"`'):
        replayed(required("2", name))
    with pytest.raises(Unusable, match="has different kinds of metrics"):
        candidate_of(given, BILLING, 30.0)


def in_file(folder: Path, metric: Json, *settings: str) -> GivenHpa:
    """Of a file with these settings as comments."""
    file = folder / "hpa.yaml"
    comments = "".join(f"# | {line}\n" for line in settings)
    file.write_text(f"# First, a rule.\n{comments}{yaml.safe_dump(document(metric, most=12))}")
    return given_in(file)


RULE = ("rules:", "  - group: billing", "    topics: [orders]")
NAMED = ("metrics:", "  - name: billing-replicas", "    value: replicas")


@pytest.mark.parametrize(
    ("metric", "settings"),
    [(required("1", REPLICAS), RULE), (external(average="1", name="billing-replicas"), NAMED)],
)
def test_a_number_of_replicas_by_the_lag_is_replayed_with_the_rule_in_the_files_comments(
    metric: Json, settings: tuple[str, ...], tmp_path: Path
) -> None:
    given = in_file(tmp_path, metric, *settings, "    replicas: {lagPerReplica: 500}")
    partitions = BILLING.partitions

    assert candidate_of(given, BILLING, 30.0) == Candidate(given.hpa, Served(500.0 * partitions, 500.0))


def test_a_promise_in_the_files_comments_says_nothing_of_the_lag(tmp_path: Path) -> None:
    shape = "    replicas: {maxWait: 30s, capacityHint: 50}"
    given = in_file(tmp_path, external(average="1", name="billing-replicas"), *NAMED, shape)

    assert candidate_of(given, BILLING, 30.0).rule == Promised(30.0)


@pytest.mark.parametrize(
    ("metric", "settings"),
    [
        (required(), (*RULE, "    objective: {maxWait: 2m, capacityHint: 50}")),
        (external(average="1", name="billing-replicas"), (*NAMED, "    replicas: {maxWait: 2m}")),
    ],
    ids=["rule", "named metric"],
)
def test_a_promise_in_the_files_comments_is_the_one_that_is_replayed(
    metric: Json, settings: tuple[str, ...], tmp_path: Path
) -> None:
    assert candidate_of(in_file(tmp_path, metric, *settings), BILLING, 30.0).rule == Promised(120.0)


def test_comments_that_are_no_settings_do_not_matter_to_an_hpa_on_the_lag(tmp_path: Path) -> None:
    assert in_file(tmp_path, lag_of("billing"), "day | peak", "replicas: [").lag_per_replica is None


def test_without_the_rule_in_its_comments_a_number_of_replicas_by_the_lag_is_refused(tmp_path: Path) -> None:
    sentence = rf"spec.metrics\[0\] is {REPLICAS}, and only the adapter's settings say .*Write their rule above the HPA"

    with pytest.raises(Unusable, match=sentence):
        candidate_of(in_file(tmp_path, required("1", REPLICAS)), BILLING, 30.0)


@pytest.mark.parametrize(
    ("line", "sentence"),
    [
        ("    replicas: {lagPerReplica: 500, activation: 3}", "more than lagPerReplica"),
        ("    replicas: {lagPerReplica: 0}", "not valid rules or metrics"),
        (f"    replicas: {{lagPerReplica: 1{'0' * 400}}}", "not valid rules or metrics"),
        ("    objective: {maxWait: soon}", "not valid rules or metrics"),
        ("    replicas: {lagPerReplica: 500, maxWait: 30s}", "more than lagPerReplica"),
        ("    replicas: {maxWait: 30s}\n# |     objective: {maxWait: 60s}", "several values of maxWait"),
        ("    replicas: *lag", "line 5, column 19: found undefined alias"),
        (
            "    replicas: {lagPerReplica: 500}\n# |   - replicas: {lagPerReplica: 20}",
            "several values of lagPerReplica",
        ),
    ],
)
def test_a_rule_in_the_comments_that_cannot_be_replayed_is_refused(line: str, sentence: str, tmp_path: Path) -> None:
    with pytest.raises(Unusable, match=f"^--hpa {re.escape(str(tmp_path))}/hpa.yaml: .*{sentence}"):
        in_file(tmp_path, required("1", REPLICAS), *RULE, line)
