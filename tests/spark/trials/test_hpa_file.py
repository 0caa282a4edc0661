import pytest

from adapter.verdicts.simulation.promised import Promised
from spark.errors import Unusable
from spark.trials.hpa_file import REQUIRED, candidate_of
from tests.spark.replay.test_command import lag_of
from tests.support.hpas import Json, external, hpa


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
        candidate_of(hpa(metric, most=12), "main", "billing", ["orders"], 30.0)


@pytest.mark.parametrize("metric", [lag_of("billing"), external(average="3000", name="billing-backlog")])
def test_the_lag_of_the_group_and_a_named_metric_are_accepted(metric: Json) -> None:
    assert candidate_of(hpa(metric, most=12), "main", "billing", ["orders"], 30.0).rule is None


def required(average: str = "1") -> Json:
    metric = lag_of("billing", metric=REQUIRED)
    metric["external"]["target"]["averageValue"] = average
    return metric


@pytest.mark.parametrize("metric", [required(), external(average="1", name="billing-replicas")])
def test_a_number_of_replicas_is_replayed_with_the_promise(metric: Json) -> None:
    assert candidate_of(hpa(metric, most=12), "main", "billing", ["orders"], 30.0).rule == Promised(30.0)


def test_a_number_of_replicas_with_another_target_or_beside_a_lag_is_refused() -> None:
    with pytest.raises(Unusable, match='must be `averageValue: "1"`'):
        candidate_of(hpa(required("2"), most=12), "main", "billing", ["orders"], 30.0)
    with pytest.raises(Unusable, match="has both a lag and a number of replicas"):
        candidate_of(hpa(required(), lag_of("billing"), most=12), "main", "billing", ["orders"], 30.0)
