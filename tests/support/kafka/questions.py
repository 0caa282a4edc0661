"""Two groups' rows, and what the tests of questions ask and compare."""

from collections.abc import Mapping, Sequence

from adapter.metrics.aggregation import MetricValue
from tests.support.samples import Answers, Key, Row, row, view

BILLING: dict[Key, Row] = {
    ("billing", "orders", 0): row(7, 10, 5),
    ("billing", "orders", 1): row(20, 20, 1),
    ("billing", "refunds", 0): row(90, 100, 85),
}
SHIPPING: dict[Key, Row] = {("shipping", "orders", 0): row(10, 10), ("shipping", "orders", 1): row(None, 20)}

WITHOUT_ROWS = (
    "for kafka_consumergroup_lag (a partition needs a commit, or a rule or an HPA that names group and topics)"
)
SILENCE = "broker 2 at kafka-2:9092 does not answer"


def answers(rows: Mapping[Key, Row]) -> Answers:
    return Answers([view(rows)])


def items(values: Sequence[MetricValue]) -> list[tuple[dict[str, str], int]]:
    return [(dict(item.labels), item.milli // 1000) for item in values]
