import pytest

from spark.errors import Unusable
from spark.trials.hpa_file import check_scales_on_lag
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
        check_scales_on_lag(hpa(metric, most=12), "main", "billing", ["orders"])


@pytest.mark.parametrize("metric", [lag_of("billing"), external(average="3000", name="billing-backlog")])
def test_the_lag_of_the_group_and_a_named_metric_are_accepted(metric: Json) -> None:
    check_scales_on_lag(hpa(metric, most=12), "main", "billing", ["orders"])
