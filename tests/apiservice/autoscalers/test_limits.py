"""Which HPAs are shown as held at their maximum."""

import pytest

from adapter.metrics.definitions import SERVED
from apiservice.autoscalers.autoscaler import autoscaler_of
from apiservice.autoscalers.limits import LimitedHpas
from tests.support.kubernetes.hpas import external, hpa


@pytest.mark.parametrize(
    ("status", "reason", "shown"),
    [("True", "TooManyReplicas", 1), ("True", "TooFewReplicas", 0), ("False", "DesiredWithinRange", 0)],
)
def test_an_hpa_wants_more_if_its_condition_says_so(status: str, reason: str, shown: int) -> None:
    condition = {"type": "ScalingLimited", "status": status, "reason": reason, "message": ""}
    found = autoscaler_of(hpa("billing", external(group="billing"), conditions=[condition]), SERVED)
    assert found is not None
    (family,) = LimitedHpas(lambda: (found,)).collect()

    (sample,) = family.samples
    assert (sample.labels, sample.value) == ({"hpa_namespace": "shop", "hpa": "billing"}, shown)
