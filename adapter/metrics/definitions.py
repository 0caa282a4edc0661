"""The metrics: what each one is, and under which names it is served. A new metric is one more definition."""

from collections.abc import Iterable
from dataclasses import dataclass
from functools import partial

from adapter.lag.totals import NO_VALUE
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
    Age,
    Column,
    Fold,
    MemberFold,
)
from adapter.metrics.demand import BOUND
from adapter.settings import models

OF_VALUES = Age(lambda totals: totals.oldest, lambda values: values.is_known)
OF_COMMITS = Age(lambda totals: totals.oldest_commit, lambda values: values.is_commit_known)


@dataclass(frozen=True, slots=True)
class MetricDefinition:
    name: str
    """By which the `value` of a named metric selects it. With the prefix, it is the name of the metric itself."""
    unit: str
    column: Column
    fold: Fold
    age: Age
    is_listed: bool
    """Whether a read without a selector is a listing: one bad group does not hide the others."""
    help: str
    """What it is, as in "lag of group billing"."""
    aliases: tuple[str, ...] = ()
    reads_rows: bool = False
    """Whether a read costs something for each partition."""
    labels: tuple[str, ...] = ()
    """Labels of its values that are not those of partitions."""
    is_shaped: bool = False
    """Whether it is of one group, whose rule or named metric says how its value follows (`replicas`)."""
    of_members: MemberFold | None = None
    """What the lag of a member's partitions makes together; None: the metric is not served for members."""
    shows_work: bool = False
    """Whether it is 0 while nothing waits, and above 0 otherwise, so that a target can be scaled to zero by it."""

    @property
    def served_name(self) -> str:
        return f"kafka_consumergroup_{self.name}"


DEFINITIONS = (
    MetricDefinition(
        "lag",
        "messages",
        lambda totals: totals.lag,
        SUM_BY_TOPIC,
        OF_VALUES,
        is_listed=True,
        help="lag",
        of_members=sum,
        shows_work=True,
    ),
    MetricDefinition(
        "records_lag_max",
        "messages",
        lambda totals: totals.lag_max,
        MAXIMUM,
        OF_VALUES,
        is_listed=False,
        help="largest lag",
        # The names under which consumers export it over JMX, and under which exporters publish it.
        aliases=("records-lag-max", "kafka_consumer_fetch_manager_records_lag_max"),
        of_members=partial(max, default=0),
        shows_work=True,
    ),
    MetricDefinition(
        "lead_min", "messages", lambda totals: totals.lead_min, MINIMUM, OF_VALUES, is_listed=False, help="lead"
    ),
    MetricDefinition(
        "uncommitted_partitions",
        "partitions",
        lambda totals: totals.uncommitted,
        SUM_BY_GROUP,
        OF_COMMITS,
        is_listed=True,
        help="number of uncommitted partitions",
    ),
    MetricDefinition(
        models.REPLICAS,
        "replicas",
        lambda totals: totals.lag,
        REPLICAS,
        OF_VALUES,
        is_listed=False,
        help="number of replicas",
        reads_rows=True,
        is_shaped=True,
        shows_work=True,
    ),
    MetricDefinition(
        models.REQUIRED_REPLICAS,
        "replicas",
        lambda totals: totals.lag,
        REQUIRED,
        OF_VALUES,
        is_listed=False,
        help="required number of replicas",
        reads_rows=True,
        is_shaped=True,
        shows_work=True,
    ),
    MetricDefinition(
        models.REQUIRED_REPLICAS_FORECAST,
        "replicas",
        lambda totals: totals.lag,
        REQUIRED_FORECAST,
        OF_VALUES,
        is_listed=False,
        help="required number of replicas by the forecast",
        reads_rows=True,
        is_shaped=True,
    ),
    MetricDefinition(
        "capacity",
        "messages/s",
        # It is of the group's members, whatever they read now.
        lambda totals: [NO_VALUE] * len(totals),
        CAPACITY,
        OF_COMMITS,
        is_listed=False,
        help="capacity of one member",
        is_shaped=True,
    ),
    MetricDefinition(
        "lag_seconds",
        "seconds",
        lambda totals: totals.lag,
        WAIT,
        OF_VALUES,
        is_listed=False,
        help="age of the oldest waiting message",
        reads_rows=True,
        labels=(BOUND,),
    ),
    MetricDefinition(
        "production_rate",
        "messages/s",
        lambda totals: totals.lag,
        PRODUCTION,
        OF_VALUES,
        is_listed=False,
        help="production rate",
        reads_rows=True,
    ),
    MetricDefinition(
        "consumption_rate",
        "messages/s",
        lambda totals: totals.lag,
        CONSUMPTION,
        OF_VALUES,
        is_listed=False,
        help="consumption rate",
        reads_rows=True,
    ),
    MetricDefinition(
        "members",
        "members",
        # Whether a topic is still read does not change the number.
        lambda totals: [NO_VALUE] * len(totals),
        MEMBERS,
        OF_COMMITS,
        is_listed=False,
        help="number of members",
    ),
    MetricDefinition(
        "seconds_to_data_loss",
        "seconds",
        lambda totals: totals.lag,
        DATA_LOSS,
        OF_VALUES,
        is_listed=False,
        help="time until data loss",
        reads_rows=True,
    ),
)


def by_served_name(definitions: Iterable[MetricDefinition] = DEFINITIONS) -> dict[str, MetricDefinition]:
    """Returns the definitions by the names that discovery lists."""
    named = {each.served_name: each for each in definitions}
    return named | {alias: each for each in named.values() for alias in each.aliases}


SERVED = {name: each.name for name, each in by_served_name().items()}
"""Name in discovery -> the `value` with which a named metric serves the same."""
