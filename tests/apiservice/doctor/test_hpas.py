"""What follows from an HPA's conditions, and from what it lacks; its other checks are tested on a real cluster."""

from pathlib import Path
from typing import Any

import pytest

from adapter.metrics.definitions import SERVED
from adapter.metrics.query import Metrics
from adapter.overview.commit_pace import CommitPace
from apiservice.autoscalers.autoscaler import autoscaler_of
from apiservice.autoscalers.rivals import Rivals
from apiservice.commands.cluster_facts import Cluster
from apiservice.doctor.check import Check, Outcome
from apiservice.doctor.facts import LATE, Answer, HpaFacts
from apiservice.doctor.hpas import NOT_IN_SETTINGS, UNNAMED, Known, Names, Seen, checks_of, foreign, unread
from tests.support.checks import of
from tests.support.kubernetes.fake_cluster import kubeconfig_text
from tests.support.kubernetes.hpas import custom, external, hpa
from tests.support.samples import SteppedClock, row, settings, store_of, view

NO_RIVALS = Rivals(tuple)
Values = tuple[tuple[str, Answer], ...]


def found(target: dict[str, Any] | None = None, conditions: object = ()) -> list[Check]:
    document = hpa("consumer", external(group="billing"), conditions=conditions)
    seen = autoscaler_of(document, SERVED)
    assert seen is not None
    answer = Answer(None, "not found", 404) if target is None else Answer(target)
    facts = HpaFacts((("kafka_consumergroup_lag", Answer({})),), answer)
    return [*checks_of(Seen(document, seen, facts), seen, Rivals(tuple), "KLA101 skipped")]


def found_of(document: dict[str, Any], rivals: Rivals | str = NO_RIVALS, values: Values = ()) -> list[Check]:
    seen = autoscaler_of(document, SERVED)
    assert seen is not None
    return [*checks_of(Seen(document, seen, HpaFacts(values)), seen, rivals, "KLA101 skipped")]


def condition(kind: str, status: str, reason: str) -> list[dict[str, str]]:
    return [{"type": kind, "status": status, "reason": reason, "message": "because"}]


@pytest.mark.parametrize(
    ("conditions", "outcome"),
    [
        ([], Outcome.SKIPPED),
        (condition("ScalingActive", "True", "ValidMetricFound"), Outcome.OK),
        (condition("ScalingActive", "False", "FailedGetExternalMetric"), Outcome.FAILED),
        (condition("AbleToScale", "False", "FailedGetScale"), Outcome.FAILED),
        (condition("ScalingLimited", "True", "TooManyReplicas"), Outcome.WARNING),
        (condition("ScalingLimited", "True", "TooFewReplicas"), Outcome.OK),
    ],
)
def test_conditions_are_judged_by_type_status_and_reason(conditions: list[dict[str, str]], outcome: Outcome) -> None:
    assert [check.outcome for check in of(found(conditions=conditions), "KLA503")] == [outcome]


def test_without_settings_what_needs_kafka_is_skipped_with_the_reason() -> None:
    checks = found()

    for code in ("KLA505", "KLA507", "KLA509"):
        assert [(check.outcome, check.detail) for check in of(checks, code)] == [(Outcome.SKIPPED, "KLA101 skipped")]


@pytest.mark.parametrize(
    ("strategy", "outcome"),
    [
        ({"type": "Recreate"}, Outcome.OK),
        ({"type": "RollingUpdate", "rollingUpdate": {"maxSurge": "25%"}}, Outcome.OK),
        ({"type": "RollingUpdate"}, Outcome.OK),
    ],
)
def test_updates_that_add_no_pods_or_many_are_good(strategy: dict[str, Any], outcome: Outcome) -> None:
    checks = found({"spec": {"strategy": strategy}})

    assert [check.outcome for check in of(checks, "KLA508")] == [outcome]


def test_a_target_that_is_no_deployment_is_skipped_with_its_kind(tmp_path: Path) -> None:
    kubeconfig = tmp_path / "kubeconfig"
    kubeconfig.write_text(kubeconfig_text(1))
    document = hpa("consumer")
    document["spec"]["scaleTargetRef"]["kind"] = "StatefulSet"

    target = Cluster(kubeconfig, seconds=0.0).of_hpa(document).target

    assert target.problem == "StatefulSet consumer is not a Deployment of apps/v1"


def test_a_target_that_cannot_be_read_is_skipped() -> None:
    assert [check.outcome for check in of(found(), "KLA508")] == [Outcome.SKIPPED]


def test_an_hpa_without_an_external_metric_has_no_value_to_read() -> None:
    document = hpa("consumer", custom("Pods", external(group="billing")))

    assert [check.outcome for check in of(found_of(document), "KLA502")] == [Outcome.SKIPPED]


def test_other_scalers_that_could_not_be_listed_are_not_taken_for_none() -> None:
    document = hpa("consumer", external(group="billing"))
    checks = of(found_of(document, "HPAs may not be listed"), "KLA506")

    assert [(check.outcome, check.detail) for check in checks] == [(Outcome.SKIPPED, "HPAs may not be listed")]


FORBIDDEN = Answer(None, "the Kubernetes API server answered 403: forbidden", 403)


@pytest.mark.parametrize(
    ("status", "outcome"), [(404, Outcome.FAILED), (403, Outcome.SKIPPED), (None, Outcome.SKIPPED)]
)
def test_an_hpa_is_absent_only_if_kubernetes_says_so(status: int | None, outcome: Outcome) -> None:
    (check,) = of(unread("HPA shop/consumer", Answer(None, "why", status)), "KLA501")

    assert (check.outcome, check.subject, check.detail) == (outcome, "HPA shop/consumer", "why")


def test_a_value_that_only_the_user_may_not_read_is_skipped() -> None:
    document = hpa("consumer", external(group="billing"))
    checks = of(found_of(document, values=(("kafka_consumergroup_lag", FORBIDDEN),)), "KLA502")

    assert [(check.outcome, check.detail) for check in checks] == [(Outcome.SKIPPED, FORBIDDEN.problem)]


NAMED = "billing-backlog"
"""What the settings of the running adapter name."""


@pytest.mark.parametrize(
    ("names", "outcome"), [(Names(SERVED), Outcome.FAILED), (Names(SERVED, are_all=False), Outcome.SKIPPED)]
)
def test_a_metric_is_foreign_only_if_all_names_are_known(names: Names, outcome: Outcome) -> None:
    seen = Seen(hpa("consumer", external(NAMED)), None, HpaFacts())
    (check,) = of(foreign(seen, names), "KLA501")

    assert check.outcome is outcome
    assert check.detail.startswith(f"it reads {NAMED}")


def test_an_hpa_without_any_metric_by_name_is_foreign_whatever_the_settings_name() -> None:
    document = hpa("consumer")
    document["spec"]["metrics"] = []
    (check,) = of(foreign(Seen(document, None, HpaFacts()), Names(SERVED, are_all=False)), "KLA501")

    assert (check.outcome, check.detail) == (Outcome.FAILED, "it reads no metric by name")


@pytest.mark.parametrize(
    ("value", "target", "outcome"),
    [
        ("lag", "Value", Outcome.WARNING),
        ("lag", "AverageValue", Outcome.OK),
        ("replicas", "Value", Outcome.OK),
        (None, "Value", Outcome.SKIPPED),
        (None, "AverageValue", Outcome.OK),
    ],
)
def test_a_named_metric_counts_as_a_lag_only_if_it_is_known_as_one(
    value: str | None, target: str, outcome: Outcome
) -> None:
    names = Names({**SERVED, NAMED: value})
    metric = external(NAMED)
    metric["external"]["target"]["type"] = target
    document = hpa("consumer", metric)
    seen = autoscaler_of(document, names.values)
    assert seen is not None
    checks = checks_of(Seen(document, seen, HpaFacts()), seen, NO_RIVALS, "no --config", names)

    assert [check.outcome for check in of(checks, "KLA504")] == [outcome]


@pytest.mark.parametrize("why", [UNNAMED, NOT_IN_SETTINGS])
def test_a_metric_that_may_be_a_lag_is_skipped_with_the_reason(why: str) -> None:
    names = Names({**SERVED, NAMED: None}, why_unknown=why)
    metric = external(NAMED)
    metric["external"]["target"]["type"] = "Value"
    document = hpa("consumer", metric)
    seen = autoscaler_of(document, names.values)
    assert seen is not None
    (check,) = of(checks_of(Seen(document, seen, HpaFacts()), seen, NO_RIVALS, "not asked for", names), "KLA504")

    assert (check.outcome, check.detail) == (Outcome.SKIPPED, f"it reads {NAMED}; {why}")


@pytest.mark.parametrize(
    ("pace", "outcome"),
    [
        (CommitPace(5.0, 1000.0), Outcome.WARNING),
        (CommitPace(5.0, 1000.0, is_bound=True), Outcome.SKIPPED),
        (CommitPace(0.5, 1000.0, is_bound=True), Outcome.OK),
        (CommitPace(0.5, 1000.0), Outcome.OK),
    ],
)
def test_commits_are_rare_only_if_reads_without_one_were_seen(pace: CommitPace, outcome: Outcome) -> None:
    """The target is 1000 messages, so 1 s of the only member's work."""
    given = settings()
    metrics = Metrics(given, store_of(view({("billing", "orders", 0): row(0, 5)})), SteppedClock())
    document = hpa("consumer", external(group="billing"))
    seen = autoscaler_of(document, SERVED)
    assert seen is not None
    known = Known(given, metrics, lambda _, __: (pace, 1), {})
    checks = checks_of(Seen(document, seen, HpaFacts()), seen, NO_RIVALS, known)

    assert [check.outcome for check in of(checks, "KLA507")] == [outcome]


def test_a_value_that_there_was_no_time_to_read_is_skipped(tmp_path: Path) -> None:
    """kube-apiserver is never asked: its port would refuse."""
    kubeconfig = tmp_path / "kubeconfig"
    kubeconfig.write_text(kubeconfig_text(1))
    document = hpa("consumer", external(group="billing"))
    seen = autoscaler_of(document, SERVED)
    assert seen is not None
    facts = Cluster(kubeconfig, seconds=0.0).of_hpa(document)
    checks = [*checks_of(Seen(document, seen, facts), seen, Rivals(tuple), "KLA101 skipped")]

    assert [(check.outcome, check.detail) for check in of(checks, "KLA502")] == [(Outcome.SKIPPED, LATE.problem)]
