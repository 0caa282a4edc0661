"""The settings as frozen models, one field per key of the file.

Keys are camelCase as in Kubernetes' own configuration files; `docs/settings.yaml` shows all of them."""

import itertools
import re
from collections.abc import Callable, Mapping, Sequence
from enum import StrEnum
from functools import cached_property
from typing import Annotated, Literal, Self

from pydantic import Field, ValidationInfo, field_validator, model_validator
from pydantic.alias_generators import to_camel

from adapter.settings import types
from adapter.settings.security import Security

REPLICAS = "replicas"
"""The value of a named metric that its `replicas` shape."""
REQUIRED_REPLICAS, REQUIRED_REPLICAS_FORECAST = "required_replicas", "required_replicas_forecast"
"""The values that `objective` defines, or `replicas` with `maxWait`."""
SHAPED = (REPLICAS, REQUIRED_REPLICAS, REQUIRED_REPLICAS_FORECAST)

Wait = Annotated[float, types.duration("1s", "1d")]
"""Seconds that a message may wait at most."""


class Cluster(types.SettingsPart):
    name: types.ClusterName
    """The label `cluster`."""
    bootstrap_servers: Annotated[tuple[types.BootstrapServer, ...], Field(min_length=1)]
    security: Security = Security()


class Names(types.SettingsPart):
    """Regular expressions that must match the whole name."""

    include: tuple[types.Pattern, ...] = (".*",)
    exclude: tuple[types.Pattern, ...] = ()

    @cached_property
    def watches(self) -> Callable[[str], bool]:
        # Compiled separately, so that flags and groups of one pattern do not affect another.
        included, excluded = (
            [re.compile(pattern) for pattern in patterns] for patterns in (self.include, self.exclude)
        )
        return lambda name: (
            any(pattern.fullmatch(name) for pattern in included)
            and not any(pattern.fullmatch(name) for pattern in excluded)
        )


class Collection(types.SettingsPart):
    interval: Annotated[float, types.duration("1s", "1h")] = 10.0
    """Time between two cycles in seconds; below the 15 s between two reads of an HPA."""
    max_age: Annotated[float, types.duration("1s", "1d")] = 60.0
    """The age above which a value is refused, in seconds: a few cycles, and far below a scale-down window."""
    groups: Names = Names()
    topics: Names = Names(exclude=("__.*",))

    @model_validator(mode="after")
    def _values_outlive_a_cycle(self) -> Self:
        if self.max_age <= self.interval:
            raise ValueError(f"maxAge ({self.max_age:g}s) must be longer than interval ({self.interval:g}s)")
        return self


class Isolation(StrEnum):
    """Which records count: up to the high watermark, or up to the last stable offset."""

    READ_UNCOMMITTED = "read_uncommitted"
    READ_COMMITTED = "read_committed"


class Fallback(types.SettingsPart):
    """The owner's own number, served while the lag is unknown; never 0, because unknown is not 0."""

    after: Annotated[float, types.duration("1s", "1d")]
    """Seconds for which the value has been refused."""
    replicas: types.Count


class Objective(types.SettingsPart):
    """What the members of a group should achieve."""

    max_wait: Wait
    capacity_hint: types.Rate | None = None
    """What one member can read, until it is learned; None: the group has no number until then."""
    forecast_time_zone: types.TimeZone | None = None
    """The zone whose hours and weekdays the load follows, for a forecast by the history; None: there is none."""


class Replicas(types.SettingsPart):
    """How many replicas a group should have. What KEDA's trigger `kafka` has as well has its name and default there."""

    lag_per_replica: types.SomeMessages = 10
    max_wait: Wait | None = None
    """Instead of `lagPerReplica`: the number follows from what arrives."""
    capacity_hint: types.Rate | None = None
    """As in an objective."""
    forecast_time_zone: types.TimeZone | None = None
    """As in an objective."""
    activation: types.Messages = 0
    """At or below this lag, there should be 0 replicas."""
    allow_idle_consumers: bool = False
    """Whether there may be more consumers than can have a partition."""
    limit_to_partitions_with_lag: bool = False
    """Whether there should be no more consumers than partitions with lag."""
    exclude_persistent_lag: bool = False
    """Whether partitions whose commit stands still count only for `activation`."""
    ensure_even_distribution_of_partitions: bool = False
    """Whether all consumers should have the same number of partitions."""
    partitions: types.Partitions | None = None
    """None: all."""
    consumers_per_replica: types.Count = 1
    fallback: Fallback | None = None

    @model_validator(mode="after")
    def _has_one_target(self) -> Self:
        for name in ("capacity_hint", "forecast_time_zone"):
            if self.max_wait is None and name in self.model_fields_set:
                raise ValueError(f"{to_camel(name)} has an effect only with maxWait")
        if self.max_wait is not None:
            for name in ("lag_per_replica", "exclude_persistent_lag"):
                if name in self.model_fields_set:
                    raise ValueError(f"maxWait and {to_camel(name)} cannot be used together")
        return self

    @model_validator(mode="after")
    def _agrees_with_itself(self) -> Self:
        others = {
            "allowIdleConsumers": self.allow_idle_consumers,
            "ensureEvenDistributionOfPartitions": self.ensure_even_distribution_of_partitions,
        }
        for name in (name for name, is_set in others.items() if is_set and self.limit_to_partitions_with_lag):
            raise ValueError(f"limitToPartitionsWithLag and {name} cannot be used together")
        return self

    @property
    def judges_movement(self) -> bool:
        """Whether it matters whether commits move."""
        return self.exclude_persistent_lag or self.max_wait is not None

    @cached_property
    def partition_names(self) -> frozenset[str] | None:
        """Those of `partitions` as the label `partition` has them; None: all."""
        numbers = None if self.partitions is None else types.partition_numbers(self.partitions)
        return None if numbers is None else frozenset(map(str, numbers))

    def require_topics(self, topics: Sequence[str] | None) -> None:
        """Raises ValueError if some of it says nothing without knowing which topics count."""
        needs = {
            "limitToPartitionsWithLag": self.limit_to_partitions_with_lag,
            "ensureEvenDistributionOfPartitions": self.ensure_even_distribution_of_partitions,
            "partitions": self.partitions is not None,
        }
        for name in (name for name, is_set in needs.items() if is_set and topics is None):
            raise ValueError(f"{name} needs topics beside replicas")


class Rule(types.SettingsPart):
    """How a group is treated; the first matching rule counts."""

    group: types.Name | None = None
    groups: types.Pattern | None = None
    topics: types.TopicNames | None = None
    offset_reset: Literal["latest", "earliest"] | None = None
    """None: `earliest` for topics that are named together with the group, because a group at zero replicas commits
    nothing, so with `latest` an HPA would never see its first messages; otherwise `latest`."""
    isolation: Isolation = Isolation.READ_UNCOMMITTED
    namespaces: types.Namespaces | None = None
    """Who may read the group: names, or regular expressions for whole names; None: as `tenancy` says."""
    replicas: Replicas | None = None
    """For `kafka_consumergroup_replicas`; None: the group has no such value."""

    objective: Objective | None = None
    """For `kafka_consumergroup_required_replicas` and `…_capacity`; None: the group has no such values."""

    @field_validator("replicas")
    @classmethod
    def _replicas_are_of_topics(cls, replicas: Replicas | None, info: ValidationInfo) -> Replicas | None:
        return _of_topics(replicas, info)

    @model_validator(mode="after")
    def _names_its_groups(self) -> Self:
        if (self.group is None) == (self.groups is None):
            raise ValueError("needs either group (a name) or groups (a regular expression)")
        return self

    @property
    def without_replicas(self) -> Self:
        """What of it decides which offsets are read, and how."""
        is_plain = self.replicas is None and self.objective is None
        return self if is_plain else self.model_copy(update={"replicas": None, "objective": None})

    @cached_property
    def required_replicas(self) -> Replicas | None:
        """How the required number follows from the objective, with the shaping of `replicas`; None without one."""
        if self.objective is None:
            return None
        shape = self.replicas or Replicas()
        return shape.model_copy(update={"exclude_persistent_lag": False, **self.objective.model_dump()})

    @property
    def follows_demand(self) -> bool:
        """Whether some value follows from what the group's members can read."""
        return self.objective is not None or (self.replicas is not None and self.replicas.max_wait is not None)

    @property
    def judges_movement(self) -> bool:
        """Whether it matters for some value whether the group's commits move."""
        return self.objective is not None or (self.replicas is not None and self.replicas.judges_movement)

    def counts_from_start(self, *, is_named: bool) -> bool:
        """Whether the whole log counts without a commit. `is_named`: a selector names the topic with the group."""
        is_named |= bool(self.group and self.topics)
        return (self.offset_reset or ("earliest" if is_named else "latest")) == "earliest"

    @cached_property
    def topic_names(self) -> frozenset[str]:
        return frozenset(self.topics or ())


class NamedMetric(types.SettingsPart):
    """A metric with its own name, for groups that are no valid label values, or for short HPAs."""

    name: types.MetricName
    value: str
    """The name of the metric's definition."""
    cluster: types.Name | None = None
    group: types.Name
    topics: types.TopicNames | None = None
    namespaces: types.Namespaces | None = None
    """Who may read the metric; None: who may read its group."""
    replicas: Annotated[Replicas | None, Field(validate_default=True)] = None
    """For the values `replicas` and `required_replicas`."""

    @property
    def judges_movement(self) -> bool:
        return self.replicas is not None and self.replicas.judges_movement

    @field_validator("replicas")
    @classmethod
    def _replicas_belong_to_the_value(cls, replicas: Replicas | None, info: ValidationInfo) -> Replicas | None:
        value = info.data.get("value")
        is_needed = value in SHAPED
        if is_needed and replicas is None:
            raise ValueError(f"is missing; the value {value} needs it")
        if not is_needed and replicas is not None:
            raise ValueError(f"has an effect only with the values {', '.join(SHAPED)}")
        if value != REPLICAS and replicas is not None and replicas.max_wait is None:
            raise ValueError(f"needs maxWait; the value {value} follows from it")
        return _of_topics(replicas, info)


def _of_topics(replicas: Replicas | None, info: ValidationInfo) -> Replicas | None:
    if replicas is not None and "topics" in info.data:
        replicas.require_topics(info.data["topics"])
    return replicas


class History(types.SettingsPart):
    """The offset history; without a location, none is kept."""

    location: types.HistoryLocation | None = None
    """An absolute path, or a prefix in a bucket: s3:// (or s3a://), gs:// or abfss://."""
    flush_interval: Annotated[float, types.duration("10s", "1h")] = 300.0
    """Seconds between two files: a crash may lose this much; shorter intervals make more files."""
    retention: Annotated[float, types.duration("1d", "3650d")] = 30 * 86_400.0
    """How long a day (UTC) is kept after its last sample, in seconds for which adapters ran."""

    @model_validator(mode="after")
    def _belongs_to_a_location(self) -> Self:
        if self.location is None and self.model_fields_set:
            raise ValueError("no other key has an effect without location")
        return self


class UpstreamSettings(types.SettingsPart):
    """Another server of metrics. It gets this adapter's token, so its certificate is always verified."""

    service: types.DnsLabel
    namespace: types.DnsLabel
    port: Annotated[int, Field(ge=1, le=65535)] = 443
    ca_file: types.File
    """PEM: the authority that issued its certificate."""

    @property
    def host(self) -> str:
        """The name that kube-apiserver verifies as well."""
        return f"{self.service}.{self.namespace}.svc"


class CustomMetrics(types.SettingsPart):
    """custom.metrics.k8s.io, which is always answered."""

    register_services: Annotated[bool, Field(alias="register", strict=True)] = False
    """Whether its APIServices are registered where nobody else has them, and Pods metrics are served."""
    upstream: UpstreamSettings | None = None
    """Who is asked for custom metrics that this adapter does not serve; None: nobody."""


class AutoscalerChanges(types.SettingsPart):
    """What the adapter may write for HPAs, and changes only where an annotation asks for them. It needs rights of its
    own."""

    scale_to_zero: Annotated[bool, Field(strict=True)] = False
    """The number of replicas of an HPA's target: 0, and from there the HPA's minimum."""
    max_replicas: Annotated[bool, Field(strict=True)] = False
    """`maxReplicas` of the HPA: as many as can have a partition."""
    events: Annotated[bool, Field(strict=True)] = False
    """Events about what HPAs on our metrics ask for and do not get."""


class Level(StrEnum):
    """What one item of a table of groups is."""

    GROUP = "group"
    TOPIC = "topic"
    """Of a group."""
    PARTITION = "partition"


class Series(types.SettingsPart):
    """Values of all groups for Prometheus, on /metrics/groups of both ports. The plain port shows them to anyone."""

    by: Level = Level.TOPIC
    dialect: Literal["own", "kafka_exporter"] = "own"
    """Whose names the metrics and labels have."""
    cluster_label: types.SeriesLabel = "cluster"
    """Prometheus's own `cluster` may be the name of a Kubernetes cluster."""
    limit: types.Count = 20_000
    """The number of series at most; the groups beyond are left out."""


class Settings(types.SettingsPart):
    clusters: Annotated[tuple[Cluster, ...], Field(min_length=1)]
    collection: Collection = Collection()
    rules: tuple[Rule, ...] = ()
    metrics: tuple[NamedMetric, ...] = ()
    history: History = History()
    tenancy: Literal["open", "closed"] = "open"
    """Whether everybody or nobody may read a group whose rule, if it has one, lists no namespaces."""
    upstream: UpstreamSettings | None = None
    """Who is asked for external metrics that this adapter does not serve; None: nobody."""
    custom_metrics: CustomMetrics = CustomMetrics()
    autoscalers: AutoscalerChanges = AutoscalerChanges()
    series: Series | None = None
    """None: there are none."""

    def has_objective(self, group: str) -> bool:
        """Whether some value of the group follows from what its members can read."""
        rule = self.rule_for(group) if self._has_objectives else None
        return group in self._metrics_by_demand or (rule is not None and rule.follows_demand)

    @cached_property
    def _has_objectives(self) -> bool:
        return any(rule.follows_demand for rule in self.rules)

    @cached_property
    def _metrics_by_demand(self) -> frozenset[str]:
        """Their groups."""
        return frozenset(each.group for each in self.metrics if each.replicas and each.replicas.max_wait is not None)

    def rule_for(self, group: str) -> Rule | None:
        """Returns the first matching rule; rules that name their group are found by a lookup."""
        place, rule = self._rules_by_name.get(group, (len(self.rules), None))
        patterns = itertools.takewhile(lambda pattern: pattern[0] < place, self._patterns)
        return next((self.rules[at] for at, pattern in patterns if pattern.fullmatch(group)), rule)

    @cached_property
    def _rules_by_name(self) -> Mapping[str, tuple[int, Rule]]:
        """Group -> the first rule that names it, and its index."""
        rules = list(enumerate(self.rules))
        return {rule.group: (place, rule) for place, rule in reversed(rules) if rule.group is not None}

    @cached_property
    def _patterns(self) -> Sequence[tuple[int, re.Pattern[str]]]:
        """Index and pattern of each rule with a regular expression. Compiled here: `re` caches only a few hundred."""
        return [(place, re.compile(rule.groups)) for place, rule in enumerate(self.rules) if rule.groups is not None]
