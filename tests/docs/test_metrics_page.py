"""docs/metrics.md: the tables of metrics, reasons and conditions are those of the code."""

import re
from pathlib import Path

from adapter import conditions
from adapter.history import errors as history_errors
from adapter.kafka.answers import FailureCause
from adapter.metrics.aggregation import (
    CAPACITY,
    CONSUMPTION,
    DATA_LOSS,
    MAXIMUM,
    MEMBERS,
    MINIMUM,
    PRODUCTION,
    REPLICAS,
    REQUIRED,
    REQUIRED_FORECAST,
    SUM_BY_GROUP,
    SUM_BY_TOPIC,
    WAIT,
)
from adapter.metrics.definitions import DEFINITIONS, MetricDefinition
from adapter.metrics.problems import ABSENT, Reason

LINES = (Path(__file__).parents[2] / "docs/metrics.md").read_text().splitlines()
FOLDS = {
    SUM_BY_TOPIC: ["one per cluster, group and topic", "sum"],
    SUM_BY_GROUP: ["one per cluster and group", "sum"],
    MAXIMUM: ["exactly one", "maximum"],
    MINIMUM: ["exactly one", "minimum"],
    REPLICAS: ["exactly one", "by the group's `replicas`"],
    REQUIRED: ["exactly one", "by the group's `objective`"],
    REQUIRED_FORECAST: ["exactly one", "by the group's `objective` with `forecastTimeZone`"],
    CAPACITY: ["exactly one", "of the whole group"],
    WAIT: ["exactly one", "maximum"],
    PRODUCTION: ["one per cluster, group and topic", "sum"],
    CONSUMPTION: ["one per cluster, group and topic", "sum"],
    DATA_LOSS: ["exactly one", "minimum"],
    MEMBERS: ["one per cluster and group", "of the whole group"],
}


def row_of(metric: MetricDefinition) -> list[str]:
    names = ", ".join(f"`{name}`" for name in (metric.served_name, *metric.aliases))
    return [names, metric.help, *FOLDS[metric.fold], metric.unit]


def test_the_table_of_metrics_has_every_definition_in_order() -> None:
    begin = LINES.index("| metric | value | items | aggregation | unit |") + 2

    rows = [line.strip("| ").split(" | ") for line in LINES[begin : begin + len(DEFINITIONS)]]
    assert rows == [row_of(metric) for metric in DEFINITIONS]
    assert LINES[begin + len(DEFINITIONS)].startswith("| named metrics in the settings |")


def test_the_table_of_reasons_has_each_with_its_code() -> None:
    absent = ", ".join(f"`{reason}`" for reason in Reason if reason in ABSENT)
    unavailable = ", ".join(f"`{reason}`" for reason in Reason if reason not in ABSENT)

    assert [f"| 404 | {absent} |", f"| 503 | {unavailable} |"] == [
        line for line in LINES if line[:6] in ("| 404 ", "| 503 ")
    ][-2:]


def test_the_table_of_conditions_has_each_in_the_order_of_the_code() -> None:
    begin = LINES.index("| condition | true if |") + 2
    rows = LINES[begin : LINES.index("", begin)]

    named = [name for row in rows for name in re.findall("`(.+?)`", row.split(" | ")[0])]
    assert named == [each.name for each in vars(conditions).values() if isinstance(each, conditions.Definition)]


def causes_of(metric: str) -> list[str]:
    (row,) = (line for line in LINES if line.startswith(f"| `{metric}` |"))
    return re.findall("`(.+?)`", row.split(" | ")[2])


def test_the_causes_of_counted_failures_are_those_of_the_code() -> None:
    of_history = {*history_errors.CAUSES.values(), *history_errors.PROVIDERS_WORDS.values(), "other"}

    assert causes_of("kafka_lag_adapter_broker_errors_total") == list(FailureCause)
    assert set(causes_of("kafka_lag_adapter_history_failures_total")) == of_history
