import pytest

from tests.support import samples
from tests.support.samples import settings_problems


def metric_of_replicas(replicas: object, **parts: object) -> dict[str, object]:
    return {"name": "x", "value": "replicas", "group": "a", "topics": ["b"], "replicas": replicas, **parts}


def test_replicas_have_the_defaults_of_keda() -> None:
    (found,) = samples.settings(metrics=[metric_of_replicas({}, topics=None)]).metrics

    assert found.replicas is not None
    assert found.replicas.model_dump() == {
        "lag_per_replica": 10,
        "max_wait": None,
        "capacity_hint": None,
        "forecast_time_zone": None,
        "activation": 0,
        "allow_idle_consumers": False,
        "limit_to_partitions_with_lag": False,
        "exclude_persistent_lag": False,
        "ensure_even_distribution_of_partitions": False,
        "partitions": None,
        "consumers_per_replica": 1,
        "fallback": None,
    }


def test_the_text_of_a_scaled_object_is_understood() -> None:
    keys = {"lagPerReplica": "1000", "allowIdleConsumers": "true", "partitions": " 0-3 , 7 "}
    (found,) = samples.settings(metrics=[metric_of_replicas(keys)]).metrics

    assert found.replicas is not None
    assert (found.replicas.lag_per_replica, found.replicas.allow_idle_consumers) == (1000, True)
    assert found.replicas.partition_names == frozenset("01237")


@pytest.mark.parametrize(
    ("keys", "problem"),
    [
        ({"lagPerReplica": 0}, ".lagPerReplica: is 0; must be at least 1"),
        ({"lagPerReplica": -1}, ".lagPerReplica: is -1; must be at least 1"),
        ({"lagPerReplica": True}, ".lagPerReplica: is True; must be a whole number"),
        ({"lagPerReplica": 1.5}, ".lagPerReplica: is 1.5; must be a whole number"),
        ({"activation": -1}, ".activation: is -1; must be at least 0"),
        ({"consumersPerReplica": 0}, ".consumersPerReplica: is 0; must be at least 1"),
        ({"maxWait": "0s"}, ".maxWait: is '0s'; must be between 1s and 1d"),
        ({"maxWait": "30s", "capacityHint": 0}, ".capacityHint: is 0; must be at least 0.001"),
        ({"maxWait": "30s", "capacityHint": True}, ".capacityHint: is True; must be a number"),
        ({"capacityHint": 60}, ": capacityHint has an effect only with maxWait"),
        ({"maxWait": "30s", "lagPerReplica": 10}, ": maxWait and lagPerReplica cannot be used together"),
        (
            {"maxWait": "30s", "excludePersistentLag": True},
            ": maxWait and excludePersistentLag cannot be used together",
        ),
        ({"lagPerReplicas": 5}, ".lagPerReplicas: is not a known key; did you mean 'lagPerReplica'?"),
        ({"lagThreshold": 5}, ".lagThreshold: is not a known key; did you mean 'lagPerReplica'?"),
        ({"activationLagThreshold": 5}, ".activationLagThreshold: is not a known key; did you mean 'activation'?"),
        ({"partitionLimitation": "0"}, ".partitionLimitation: is not a known key; did you mean 'partitions'?"),
        ({"consumerGroup": "a"}, ".consumerGroup: is not a known key"),
        (
            {"fallback": {"failureThreshold": 3, "after": "3m", "replicas": 6}},
            ".fallback.failureThreshold: is not a known key; did you mean 'after'?",
        ),
        ({"partitions": "3-1"}, ".partitions: is '3-1'; the range 3-1 ends before it begins"),
        (
            {"partitions": "0,"},
            ".partitions: is '0,'; must be numbers and ranges of at most 99999, such as '0-3,7'",
        ),
        ({"partitions": 7}, ".partitions: is 7; must be text; put it in quotes"),
        ({"partitions": [7]}, ".partitions: is [7]; must be text"),
        (
            {"allowIdleConsumers": True, "limitToPartitionsWithLag": True},
            ": limitToPartitionsWithLag and allowIdleConsumers cannot be used together",
        ),
        (
            {"ensureEvenDistributionOfPartitions": True, "limitToPartitionsWithLag": True},
            ": limitToPartitionsWithLag and ensureEvenDistributionOfPartitions cannot be used together",
        ),
        ({"fallback": {"replicas": 6}}, ".fallback.after: is missing"),
        ({"fallback": {"after": "3m", "replicas": 0}}, ".fallback.replicas: is 0; must be at least 1"),
        (
            {"fallback": {"after": 180, "replicas": 6}},
            ".fallback.after: is 180; must be a duration such as 10s, 1m30s or 30d",
        ),
    ],
)
def test_replicas_that_cannot_be_meant_are_refused_in_metrics_and_in_rules(keys: object, problem: str) -> None:
    rule = {"groups": "a.*", "topics": ["b"], "replicas": keys}

    assert settings_problems(metrics=[metric_of_replicas(keys)]) == (f"metrics[0].replicas{problem}",)
    assert settings_problems(rules=[rule]) == (f"rules[0].replicas{problem}",)


@pytest.mark.parametrize(
    "keys",
    [{"limitToPartitionsWithLag": True}, {"ensureEvenDistributionOfPartitions": True}, {"partitions": "0-3"}],
)
def test_what_is_said_of_partitions_needs_topics(keys: dict[str, object]) -> None:
    problem = f"replicas: {next(iter(keys))} needs topics beside replicas"

    assert settings_problems(metrics=[metric_of_replicas(keys, topics=None)]) == (f"metrics[0].{problem}",)
    assert settings_problems(rules=[{"group": "a", "replicas": keys}]) == (f"rules[0].{problem}",)


def test_replicas_belong_to_the_value_of_that_name() -> None:
    assert settings_problems(metrics=[metric_of_replicas(None)]) == (
        "metrics[0].replicas: is missing; the value replicas needs it",
    )
    values = "replicas, required_replicas, required_replicas_forecast"
    assert settings_problems(metrics=[metric_of_replicas({}, value="lag")]) == (
        f"metrics[0].replicas: has an effect only with the values {values}",
    )


def test_the_required_number_needs_a_promise() -> None:
    assert settings_problems(metrics=[metric_of_replicas(None, value="required_replicas")]) == (
        "metrics[0].replicas: is missing; the value required_replicas needs it",
    )
    assert settings_problems(metrics=[metric_of_replicas({}, value="required_replicas")]) == (
        "metrics[0].replicas: needs maxWait; the value required_replicas follows from it",
    )


@pytest.mark.parametrize(
    ("objective", "problem"),
    [
        ({}, ".maxWait: is missing"),
        ({"maxWait": 30}, ".maxWait: is 30; must be a duration such as 10s, 1m30s or 30d"),
        ({"maxWait": "30s", "capacityHint": -1}, ".capacityHint: is -1; must be at least 0.001"),
        ({"maxWait": "30s", "capacity": 60}, ".capacity: is not a known key; did you mean 'capacityHint'?"),
    ],
)
def test_an_objective_that_cannot_be_meant_is_refused(objective: object, problem: str) -> None:
    assert settings_problems(rules=[{"group": "a", "objective": objective}]) == (f"rules[0].objective{problem}",)


def test_the_required_number_of_a_rule_has_the_promise_of_its_objective_and_the_limits_of_its_replicas() -> None:
    replicas = {"lagPerReplica": 1000, "consumersPerReplica": 2}
    (rule,) = samples.settings(rules=[{"group": "a", "objective": {"maxWait": "1m"}, "replicas": replicas}]).rules

    shape = rule.required_replicas
    assert shape is not None
    assert (shape.max_wait, shape.capacity_hint, shape.consumers_per_replica) == (60.0, None, 2)


def test_only_groups_with_a_promise_have_an_objective() -> None:
    shape = {"maxWait": "30s"}
    rules = [{"group": "a", "objective": shape}, {"groups": "b.*", "replicas": shape}, {"groups": ".*"}]
    settings = samples.settings(rules=rules, metrics=[metric_of_replicas(shape, group="c")])

    assert [group for group in ("a", "b1", "c", "d") if settings.has_objective(group)] == ["a", "b1", "c"]


@pytest.mark.parametrize(
    ("objective", "problem"),
    [
        (
            {"maxWait": "30s", "forecastTimeZone": "Berlin"},
            "is 'Berlin'; must be a time zone such as UTC or Europe/Berlin",
        ),
        (
            {"maxWait": "30s", "forecastTimeZone": "../etc"},
            "is '../etc'; must be a time zone such as UTC or Europe/Berlin",
        ),
    ],
)
def test_a_time_zone_must_be_known(objective: dict[str, str], problem: str) -> None:
    rule = {"group": "billing", "objective": objective}

    assert settings_problems(rules=[rule]) == (f"rules[0].objective.forecastTimeZone: {problem}",)


def test_a_forecast_needs_a_promise() -> None:
    problems = settings_problems(metrics=[metric_of_replicas({"forecastTimeZone": "UTC"})])

    assert problems == ("metrics[0].replicas: forecastTimeZone has an effect only with maxWait",)
