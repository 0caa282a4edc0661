import pytest
import yaml

from adapter.verdicts.hpa import HpaInvalid, hpa_of, quantity
from tests.support.hpas import document, external, hpa, rules


@pytest.mark.parametrize(
    ("text", "value"),
    [("100", 100), (30, 30), ("1500m", 1.5), ("10k", 10_000), ("2Ki", 2048), ("1e3", 1000), ("1.5", 1.5), (".5", 0.5)],
)
def test_quantities_are_read_as_kubernetes_writes_them(text: object, value: float) -> None:
    assert float(quantity(text)) == value


def test_a_target_is_rounded_up_to_thousandths() -> None:
    assert hpa(external(average="1u")).metrics[0].source.target.average_value == 1


def test_what_a_behavior_leaves_out_has_the_defaults_of_kubernetes() -> None:
    behavior = hpa(behavior={"scaleUp": {"tolerance": "50m"}}).behavior

    assert behavior is not None
    assert [(each.type, each.value, each.period_seconds) for each in behavior.scale_up.policies] == [
        ("Pods", 4, 15),
        ("Percent", 100, 15),
    ]
    assert (behavior.scale_up.stabilization_window_seconds, behavior.scale_up.tolerance) == (0, 0.05)
    assert [(each.type, each.value) for each in behavior.scale_down.policies] == [("Percent", 100)]
    assert behavior.scale_down.stabilization_window_seconds is None


def test_an_absent_behavior_is_not_one_with_defaults() -> None:
    assert hpa().behavior is None
    assert hpa(behavior={}).behavior is not None


def test_an_object_of_the_cluster_is_read_with_its_status_and_metadata() -> None:
    stored = document(least=2, most=9)
    stored["metadata"] |= {"uid": "1", "managedFields": [{}]}
    stored["status"] = {"currentReplicas": 2, "conditions": []}

    assert hpa_of(yaml.safe_load(yaml.safe_dump(stored))).max_replicas == 9


RESOURCE = {"type": "Resource", "resource": {"name": "cpu", "target": {"type": "Utilization"}}}
BOTH = {"type": "Value", "value": "1", "averageValue": "2"}
MISSPELT = {**external(average="1"), "exterrnal": {}}
UP = "spec.behavior.scaleUp"


@pytest.mark.parametrize(
    ("of", "problem"),
    [
        ("text", "must be one object of kind HorizontalPodAutoscaler"),
        ({**document(), "apiVersion": "autoscaling/v1"}, "apiVersion: is 'autoscaling/v1'; must be 'autoscaling/v2'"),
        ({**document(), "kind": "List"}, "kind: is 'List'; must be 'HorizontalPodAutoscaler'"),
        ({"apiVersion": "autoscaling/v2", "kind": "HorizontalPodAutoscaler"}, "spec: is missing"),
        (
            {**document(), "spec": {"max_replicas": 4}},
            "spec.max_replicas: is not a known key; did you mean 'maxReplicas'?",
        ),
        (document(most=0), "spec.maxReplicas: is 0; must be at least 1"),
        (document(least=-1), "spec.minReplicas: is -1; must be at least 0"),
        (document(least=5, most=4), "spec: `maxReplicas` 4 must be at least `minReplicas` 5"),
        (document(RESOURCE), "spec.metrics[0].type: is 'Resource'; must be 'External' or 'Object'"),
        (document(MISSPELT), "spec.metrics[0].exterrnal: is not a known key; did you mean 'external'?"),
        (document(external(average="0")), "spec.metrics[0].external.target.averageValue: is '0'; must be positive"),
        (document(external(value="many")), "spec.metrics[0].external.target.value: is 'many'; must be a quantity"),
        (document({"type": "External"}), "spec.metrics[0]: of type External must have `external`"),
        (
            document({"type": "External", "external": {"metric": {"name": "lag"}, "target": BOTH}}),
            "spec.metrics[0].external.target: of type Value must not have `averageValue`",
        ),
        (document(behavior={"scaleUp": {"policies": []}}), f"{UP}.policies: must not be empty"),
        (document(behavior={"scaleUp": rules("Pod 4 15")}), f"{UP}.policies[0].type: is 'Pod'; must be 'Pods'"),
        (document(behavior={"scaleUp": rules("Pods 0 15")}), f"{UP}.policies[0].value: is 0; must be at least 1"),
        (document(behavior={"scaleUp": rules("Pods 4 1801")}), f"{UP}.policies[0].periodSeconds: is 1801; must be at"),
        (document(behavior={"scaleUp": rules(window=3601)}), f"{UP}.stabilizationWindowSeconds: is 3601; must be at"),
        (document(behavior={"scaleUp": rules(select="Most")}), f"{UP}.selectPolicy: is 'Most'; must be 'Max', 'Min'"),
        (document(behavior={"scaleUp": rules(tolerance="-1")}), f"{UP}.tolerance: is '-1'; must not be negative"),
        (document(behavior={"scaleUp": rules(window=True)}), f"{UP}.stabilizationWindowSeconds: is True; must be a"),
    ],
)
def test_what_kubernetes_refuses_or_no_history_has_is_refused_with_its_path(of: object, problem: str) -> None:
    with pytest.raises(HpaInvalid) as refused:
        hpa_of(of)

    assert problem in str(refused.value)


def test_every_problem_is_said_at_once() -> None:
    with pytest.raises(HpaInvalid) as refused:
        hpa_of(document(external(average="-1"), most=0))

    assert len(refused.value.problems) == 2
