"""The settings file: what to watch. Every problem of it is reported at once, each with its path in the file.

Keys are camelCase as in Kubernetes' own configuration files; `docs/settings.yaml` shows every one.
"""

from __future__ import annotations

import re
import ssl
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from enum import StrEnum
from functools import cached_property
from pathlib import Path
from typing import Annotated, Any, Literal, Self

import yaml
from pydantic import AfterValidator, BaseModel, BeforeValidator, ConfigDict, Field, ValidationError, model_validator
from pydantic.alias_generators import to_camel

from adapter.errors import SettingsInvalid

SECONDS = {"ms": 0.001, "s": 1.0, "m": 60.0, "h": 3600.0, "d": 86400.0}
DURATION = re.compile(r"(?:\d+(?:ms|s|m|h|d))+")
HOST_PORT = re.compile(r"(?P<host>\[[0-9a-fA-F:.%]+\]|[^\s:/@]+):(?P<port>\d{1,5})")
METRIC_NAME = re.compile(r"[A-Za-z0-9](?:[-A-Za-z0-9_.]{0,251}[A-Za-z0-9])?")
TOPIC_NAME = re.compile(r"[a-zA-Z0-9._-]{1,249}")


class MetricKind(StrEnum):
    """The short names of what is served."""

    LAG = "lag"
    RECORDS_LAG_MAX = "records_lag_max"
    LEAD_MIN = "lead_min"
    UNCOMMITTED_PARTITIONS = "uncommitted_partitions"


SERVED_NAMES: dict[str, MetricKind] = {
    **{f"kafka_consumergroup_{kind}": kind for kind in MetricKind},
    # The names under which consumers export it over JMX, and under which exporters publish that.
    "records-lag-max": MetricKind.RECORDS_LAG_MAX,
    "kafka_consumer_fetch_manager_records_lag_max": MetricKind.RECORDS_LAG_MAX,
}


def seconds_of(value: object) -> object:
    """`1m30s` -> 90.0; anything else is left to be refused by its type."""
    if not isinstance(value, str) or not DURATION.fullmatch(value):
        raise ValueError("must be a duration such as 10s, 1m30s or 30d")
    return sum(int(amount) * SECONDS[unit] for amount, unit in re.findall(r"(\d+)(ms|s|m|h|d)", value))


def regular_expression(text: str) -> str:
    try:
        re.compile(text)
    except re.error as error:
        raise ValueError(f"is no regular expression: {error}") from error
    return text


def host_and_port(text: str) -> str:
    match = HOST_PORT.fullmatch(text)
    if match is None or not 0 < int(match["port"]) < 65536:
        raise ValueError(f"{text!r} is not HOST:PORT")
    return text


def topic_name(text: str) -> str:
    if not TOPIC_NAME.fullmatch(text) or text in {".", ".."}:
        raise ValueError(f"{text!r} is no legal topic name")
    return text


def metric_name(text: str) -> str:
    if not METRIC_NAME.fullmatch(text):
        raise ValueError(f"{text!r} must be letters, digits, '-', '_' and '.', with a letter or digit at both ends")
    if text.lower() in {"status", "finalize"}:
        raise ValueError(f"{text!r} is taken by Kubernetes' own paths below a namespace")
    return text


def readable_file(path: Path) -> Path:
    try:
        path.read_bytes()
    except OSError as error:
        raise ValueError(f"{path} cannot be read: {error.strerror}") from error
    return path


def not_kept_yet(location: str | None) -> str | None:
    if location is not None:
        raise ValueError("this version keeps no history")
    return location


def without_repeats(values: tuple[str, ...]) -> tuple[str, ...]:
    repeated = [value for value, count in Counter(values).items() if count > 1]
    if repeated:
        raise ValueError(f"{repeated[0]!r} stands twice")
    return values


Seconds = Annotated[float, BeforeValidator(seconds_of)]
Pattern = Annotated[str, AfterValidator(regular_expression)]
BootstrapServer = Annotated[str, AfterValidator(host_and_port)]
TopicName = Annotated[str, AfterValidator(topic_name)]
TopicNames = Annotated[tuple[TopicName, ...], Field(min_length=1), AfterValidator(without_repeats)]
ReadableFile = Annotated[Path, AfterValidator(readable_file)]
Name = Annotated[str, Field(min_length=1)]


class SettingsPart(BaseModel):
    """Frozen, and strict about keys: a misspelt key would silently watch something else."""

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
    """How a cluster's brokers are spoken to. Secrets are files, so that they can be mounted and rotated."""

    protocol: Protocol = Protocol.PLAINTEXT
    mechanism: Literal["PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512"] | None = None
    username: Name | None = None
    password_file: ReadableFile | None = None
    ca_file: ReadableFile | None = None
    """PEM; absent: the system's certificate authorities."""
    cert_file: ReadableFile | None = None
    """PEM, the client's certificate with its intermediates."""
    key_file: ReadableFile | None = None
    """PEM: PKCS#1, PKCS#8 or EC, encrypted or not."""
    key_password_file: ReadableFile | None = None

    @model_validator(mode="after")
    def _parts_belong_together(self) -> Self:
        problems = [*self._sasl_problems(), *self._tls_problems()]
        if problems:
            raise ValueError("; ".join(problems))
        return self

    def _sasl_problems(self) -> Iterator[str]:
        sasl = {"mechanism": self.mechanism, "username": self.username, "passwordFile": self.password_file}
        if self.protocol.authenticates:
            yield from (f"{key} is needed with {self.protocol}" for key, value in sasl.items() if value is None)
        else:
            yield from (f"{key} has no meaning with {self.protocol}" for key, value in sasl.items() if value)

    def _tls_problems(self) -> Iterator[str]:
        tls = {
            "caFile": self.ca_file,
            "certFile": self.cert_file,
            "keyFile": self.key_file,
            "keyPasswordFile": self.key_password_file,
        }
        if not self.protocol.encrypts:
            yield from (f"{key} has no meaning with {self.protocol}" for key, value in tls.items() if value)
        elif (self.cert_file is None) != (self.key_file is None):
            yield "certFile and keyFile belong together"
        elif self.key_password_file and not self.key_file:
            yield "keyPasswordFile has no meaning without keyFile"
        else:
            yield from self._unloadable_files()

    def _unloadable_files(self) -> Iterator[str]:
        context = ssl.create_default_context()
        try:
            if self.ca_file:
                context.load_verify_locations(self.ca_file)
        except (ssl.SSLError, ValueError) as error:
            yield f"caFile {self.ca_file} holds no PEM certificates: {error}"
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
    """A mounted secret, without the line end that editors add."""
    return path.read_text(encoding="utf-8").rstrip("\r\n") if path else None


class Cluster(SettingsPart):
    name: Name
    """The label `cluster`."""
    bootstrap_servers: Annotated[tuple[BootstrapServer, ...], Field(min_length=1)]
    security: Security = Security()


class Names(SettingsPart):
    """Regular expressions that must match the whole name."""

    include: tuple[Pattern, ...] = (".*",)
    exclude: tuple[Pattern, ...] = ()

    @cached_property
    def watches(self) -> Callable[[str], bool]:
        included, excluded = (re.compile("|".join(f"(?:{p})" for p in ps)) for ps in (self.include, self.exclude))
        nothing_excluded = not self.exclude
        return lambda name: bool(included.fullmatch(name)) and (nothing_excluded or not excluded.fullmatch(name))


class Collection(SettingsPart):
    interval: Annotated[Seconds, Field(ge=1, le=3600)] = 10.0
    """Between two cycles, in seconds: below the 15 s after which an HPA asks again."""
    max_age: Annotated[Seconds, Field(ge=1, le=86400)] = 60.0
    """How old a value may get before it is refused, in seconds: a few cycles, and far below a scale-down window."""
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
    """How a group is treated; of several rules the first that fits counts."""

    group: Name | None = None
    groups: Pattern | None = None
    topics: TopicNames | None = None
    offset_reset: Literal["latest", "earliest"] = "latest"
    isolation: Isolation = Isolation.READ_UNCOMMITTED

    @model_validator(mode="after")
    def _names_its_groups(self) -> Self:
        if (self.group is None) == (self.groups is None):
            raise ValueError("needs either group (a name) or groups (a regular expression)")
        return self

    def fits(self, group: str) -> bool:
        return group == self.group if self.groups is None else re.fullmatch(self.groups, group) is not None


class NamedMetric(SettingsPart):
    """A metric of its own name, for groups that are no legal label values, or for short HPAs."""

    name: Annotated[str, AfterValidator(metric_name)]
    value: MetricKind
    cluster: Name | None = None
    group: Name
    topics: TopicNames | None = None


class History(SettingsPart):
    """Accepted as an empty block only: this version keeps no history, and says so."""

    location: Annotated[str | None, AfterValidator(not_kept_yet)] = None


class Settings(SettingsPart):
    clusters: Annotated[tuple[Cluster, ...], Field(min_length=1)]
    collection: Collection = Collection()
    rules: tuple[Rule, ...] = ()
    metrics: tuple[NamedMetric, ...] = ()
    history: History = History()

    def rule_for(self, group: str) -> Rule | None:
        return next((rule for rule in self.rules if rule.fits(group)), None)


def load(path: Path) -> Settings:
    """Settings of a YAML file; raises SettingsInvalid with every problem found."""
    try:
        content = yaml.load(path.read_text(encoding="utf-8"), _UniqueKeys)  # noqa: S506 - a SafeLoader
    except OSError as error:
        raise SettingsInvalid((f"{path}: {error.strerror}",)) from error
    except UnicodeDecodeError as error:
        raise SettingsInvalid((f"{path}: is not UTF-8 text",)) from error
    except yaml.YAMLError as error:
        raise SettingsInvalid((f"{path}: {' '.join(str(error).split())}",)) from error
    try:
        return parse(content)
    except SettingsInvalid as invalid:
        raise SettingsInvalid(tuple(f"{path}: {problem}" for problem in invalid.problems)) from invalid


def parse(content: object) -> Settings:
    """Settings of an already loaded document; raises SettingsInvalid with every problem found."""
    if not isinstance(content, dict):
        raise SettingsInvalid(("must be a mapping with at least `clusters`",))
    contradictions = tuple(_contradictions(_named_parts(content, "clusters"), _named_parts(content, "metrics")))
    try:
        settings = Settings.model_validate(content)
    except ValidationError as error:
        errors = error.errors(include_url=False, include_input=True)
        # A list whose items are all refused counts as too short as well; only one that is empty in the file is.
        problems = tuple(_sentence(one) for one in errors if one["type"] != "too_short" or not one["input"])
        raise SettingsInvalid(problems + contradictions) from error
    if contradictions:
        raise SettingsInvalid(contradictions)
    return settings


def from_bootstrap_servers(text: str) -> Settings:
    """What `--bootstrap-servers HOST:PORT[,HOST:PORT]` means: one cluster named `main`, everything else by default."""
    servers = [server.strip() for server in text.split(",") if server.strip()]
    try:
        return parse({"clusters": [{"name": "main", "bootstrapServers": servers}]})
    except SettingsInvalid as invalid:
        if not servers:
            raise SettingsInvalid(("--bootstrap-servers: names no server",)) from invalid
        raise SettingsInvalid(
            tuple(f"--bootstrap-servers: {p.split(': ', 1)[-1]}" for p in invalid.problems)
        ) from invalid


def path_in_file(location: Sequence[int | str]) -> str:
    """`("rules", 2, "offsetReset")` -> `rules[2].offsetReset`."""
    text = "".join(f"[{step}]" if isinstance(step, int) else f".{step}" for step in location)
    return text.removeprefix(".")


PLAIN_WORDS = {
    "extra_forbidden": "is no known key",
    "missing": "is missing",
    "too_short": "must not be empty",
    "string_too_short": "must not be empty",
    "model_type": "must be a mapping",
    "tuple_type": "must be a list",
    "string_type": "must be text",
}


def _sentence(problem: Mapping[str, Any]) -> str:
    """pydantic's problem as one of ours: the path in the file, then what is wrong there."""
    kind, message = problem["type"], str(problem["msg"])
    words = PLAIN_WORDS.get(kind, message[0].lower() + message[1:])
    if kind == "value_error":
        words = message.removeprefix("Value error, ")
    if kind in {"literal_error", "enum"}:
        words = f"is {problem['input']!r}; {message[0].lower()}{message[1:]}"
    return f"{path_in_file(problem['loc'])}: {words}"


def _named_parts(content: dict[object, object], key: str) -> list[tuple[int, dict[str, object]]]:
    """The list's mappings that have a name, with their places; the rest is refused by its type already."""
    parts = content.get(key)
    if not isinstance(parts, list):
        return []
    return [(at, part) for at, part in enumerate(parts) if isinstance(part, dict) and isinstance(part.get("name"), str)]


def _contradictions(
    clusters: list[tuple[int, dict[str, object]]], metrics: list[tuple[int, dict[str, object]]]
) -> Iterator[str]:
    yield from _repeated("clusters", ((at, str(cluster["name"])) for at, cluster in clusters))
    yield from _repeated("metrics", ((at, str(metric["name"]).lower()) for at, metric in metrics))
    known = {cluster["name"] for _, cluster in clusters}
    for at, metric in metrics:
        if str(metric["name"]).lower() in SERVED_NAMES:
            yield f"metrics[{at}].name: {metric['name']!r} is a metric that is always served"
        if metric.get("cluster") is None and len(known) > 1:
            yield f"metrics[{at}].cluster: is missing; there are several clusters"
        if isinstance(metric.get("cluster"), str) and metric["cluster"] not in known:
            yield f"metrics[{at}].cluster: {metric['cluster']!r} is none of the clusters {', '.join(map(str, known))}"


def _repeated(place: str, names: Iterable[tuple[int, str]]) -> Iterator[str]:
    seen: dict[str, int] = {}
    for at, name in names:
        if name in seen:
            yield f"{place}[{at}].name: {name!r} is also the name of {place}[{seen[name]}]"
        seen.setdefault(name, at)


class _UniqueKeys(yaml.SafeLoader):
    """YAML lets a later key replace an earlier one in silence; half of a settings file would be lost that way."""

    def construct_mapping(self, node: yaml.MappingNode, deep: bool = False) -> dict[Any, Any]:  # noqa: FBT001, FBT002 - PyYAML's
        seen: set[str] = set()
        for key, _ in node.value:
            if not isinstance(key, yaml.ScalarNode):
                continue
            if key.value in seen:
                raise yaml.MarkedYAMLError(None, None, f"the key {key.value!r} stands twice", key.start_mark)
            seen.add(key.value)
        return super().construct_mapping(node, deep)
