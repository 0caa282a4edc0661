"""The settings as frozen models, one field per key of the file.

Keys are camelCase as in Kubernetes' own configuration files; `docs/settings.yaml` shows all of them."""

import itertools
import re
import ssl
from collections.abc import Callable, Iterator, Mapping, Sequence
from enum import StrEnum
from functools import cached_property
from pathlib import Path
from typing import Annotated, Literal, Self

from pydantic import AfterValidator, BaseModel, ConfigDict, Field, ValidationInfo, model_validator
from pydantic.alias_generators import to_camel

from adapter.settings import types


class MetricKind(StrEnum):
    LAG = "lag"
    RECORDS_LAG_MAX = "records_lag_max"
    LEAD_MIN = "lead_min"
    UNCOMMITTED_PARTITIONS = "uncommitted_partitions"


SERVED_NAMES: dict[str, MetricKind] = {
    **{f"kafka_consumergroup_{kind}": kind for kind in MetricKind},
    # The names under which consumers export it over JMX, and under which exporters publish it.
    "records-lag-max": MetricKind.RECORDS_LAG_MAX,
    "kafka_consumer_fetch_manager_records_lag_max": MetricKind.RECORDS_LAG_MAX,
}


class SettingsPart(BaseModel):
    """Frozen and strict about keys, because a misspelt key would silently watch something else."""

    model_config = ConfigDict(
        frozen=True, extra="forbid", alias_generator=to_camel, validate_by_name=False, validate_by_alias=True
    )


class Protocol(StrEnum):
    PLAINTEXT = "PLAINTEXT"
    SSL = "SSL"
    SASL_PLAINTEXT = "SASL_PLAINTEXT"
    SASL_SSL = "SASL_SSL"

    @property
    def encrypts(self) -> bool:
        return self in {Protocol.SSL, Protocol.SASL_SSL}

    @property
    def authenticates(self) -> bool:
        return self in {Protocol.SASL_PLAINTEXT, Protocol.SASL_SSL}


class Security(SettingsPart):
    """How to connect to a cluster's brokers. Secrets are files, so that they can be mounted and rotated."""

    protocol: Protocol = Protocol.PLAINTEXT
    mechanism: Literal["PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512"] | None = None
    username: types.Name | None = None
    password_file: types.SecretFile | None = None
    ca_file: types.ReadableFile | None = None
    """PEM; absent: the system's certificate authorities."""
    cert_file: types.ReadableFile | None = None
    """PEM: the client's certificate with its intermediates."""
    key_file: types.ReadableFile | None = None
    """PEM: PKCS#1, PKCS#8 or EC, encrypted or not."""
    key_password_file: types.SecretFile | None = None

    @model_validator(mode="after")
    def _parts_belong_together(self, info: ValidationInfo) -> Self:
        problems = [*self._sasl_problems(), *self._tls_problems()]
        if not problems and types.opens_files(info):
            problems = [*self._unloadable_files()]
        if problems:
            raise ValueError("; ".join(problems))
        return self

    def _sasl_problems(self) -> Iterator[str]:
        sasl = {"mechanism": self.mechanism, "username": self.username, "passwordFile": self.password_file}
        if self.protocol.authenticates:
            yield from (f"{key} is needed with {self.protocol}" for key, value in sasl.items() if value is None)
        else:
            yield from (f"{key} has no effect with {self.protocol}" for key, value in sasl.items() if value)

    def _tls_problems(self) -> Iterator[str]:
        tls = {
            "caFile": self.ca_file,
            "certFile": self.cert_file,
            "keyFile": self.key_file,
            "keyPasswordFile": self.key_password_file,
        }
        if not self.protocol.encrypts:
            yield from (f"{key} has no effect with {self.protocol}" for key, value in tls.items() if value)
        elif (self.cert_file is None) != (self.key_file is None):
            yield "certFile and keyFile must be set together"
        elif self.key_password_file and not self.key_file:
            yield "keyPasswordFile has no effect without keyFile"

    def _unloadable_files(self) -> Iterator[str]:
        context = ssl.create_default_context()
        try:
            if self.ca_file:
                context.load_verify_locations(self.ca_file)
        except (ssl.SSLError, ValueError) as error:
            yield f"caFile {self.ca_file} contains no PEM certificates: {error}"
        try:
            if self.cert_file and self.key_file:
                context.load_cert_chain(self.cert_file, self.key_file, self.key_password or "")
        except (ssl.SSLError, ValueError) as error:
            yield f"certFile {self.cert_file} and keyFile {self.key_file} cannot be used together: {error}"

    @property
    def password(self) -> str | None:
        return secret_in(self.password_file)

    @property
    def key_password(self) -> str | None:
        return secret_in(self.key_password_file)


def secret_in(path: Path | None) -> str | None:
    """Returns a mounted secret without the newline that editors add; raises OSError or UnicodeDecodeError."""
    return path.read_text(encoding="utf-8").rstrip("\r\n") if path else None


class Cluster(SettingsPart):
    name: types.ClusterName
    """The label `cluster`."""
    bootstrap_servers: Annotated[tuple[types.BootstrapServer, ...], Field(min_length=1)]
    security: Security = Security()


class Names(SettingsPart):
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


class Collection(SettingsPart):
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


class Rule(SettingsPart):
    """How a group is treated; the first matching rule counts."""

    group: types.Name | None = None
    groups: types.Pattern | None = None
    topics: types.TopicNames | None = None
    offset_reset: Literal["latest", "earliest"] = "latest"
    isolation: Isolation = Isolation.READ_UNCOMMITTED

    @model_validator(mode="before")
    @classmethod
    def _wakes_a_group_that_it_names(cls, rule: object) -> object:
        """A group at zero replicas commits nothing, so with `latest` an HPA would never see its first messages."""
        if isinstance(rule, Mapping) and rule.get("group") and rule.get("topics"):
            return {"offsetReset": "earliest", **rule}
        return rule

    @model_validator(mode="after")
    def _names_its_groups(self) -> Self:
        if (self.group is None) == (self.groups is None):
            raise ValueError("needs either group (a name) or groups (a regular expression)")
        return self

    @cached_property
    def topic_names(self) -> frozenset[str]:
        return frozenset(self.topics or ())


class NamedMetric(SettingsPart):
    """A metric with its own name, for groups that are no valid label values, or for short HPAs."""

    name: Annotated[str, AfterValidator(types.metric_name)]
    value: MetricKind
    cluster: types.Name | None = None
    group: types.Name
    topics: types.TopicNames | None = None


class History(SettingsPart):
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


class Settings(SettingsPart):
    clusters: Annotated[tuple[Cluster, ...], Field(min_length=1)]
    collection: Collection = Collection()
    rules: tuple[Rule, ...] = ()
    metrics: tuple[NamedMetric, ...] = ()
    history: History = History()

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
