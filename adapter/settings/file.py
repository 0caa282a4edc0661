"""Loads the settings file, or reports every problem with its path in the file."""

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

from pydantic import ValidationError

from adapter.documents import Location, content_of, document_in, problems_of
from adapter.errors import SettingsInvalid, did_you_mean, shown, some_of
from adapter.settings.models import Settings

BuiltIn = Mapping[str, str]
"""The name of each built-in metric -> the `value` of a named metric that has the same values."""
NAMES_IN_KEDA = {
    "consumerGroup": "group",
    "topic": "topics",
    "offsetResetPolicy": "offsetReset",
    "lagThreshold": "lagPerReplica",
    "activationLagThreshold": "activation",
    "partitionLimitation": "partitions",
    "failureThreshold": "after",
}
"""Fields of a ScaledObject that people copy -> the key that replaces each."""


def load(path: Path, metrics: BuiltIn, *, opens_files: bool = True) -> Settings:
    """Loads a YAML file; raises SettingsInvalid with every problem.

    `opens_files` is whether the files that the settings name are checked as well."""
    return settings_in(content_of(path), path, metrics, opens_files=opens_files)


def settings_in(content: bytes, path: Path, metrics: BuiltIn, *, opens_files: bool = True) -> Settings:
    """Returns the settings in a file's content; `path` begins every problem."""
    try:
        return parse(document_in(content), metrics, opens_files=opens_files)
    except SettingsInvalid as invalid:
        raise SettingsInvalid(tuple(f"{path}: {problem}" for problem in invalid.problems)) from invalid


def parse(content: object, metrics: BuiltIn, *, opens_files: bool = True) -> Settings:
    """Parses a loaded document; raises SettingsInvalid with every problem."""
    if not isinstance(content, dict):
        raise SettingsInvalid(("must be a mapping with at least `clusters`",))
    contradictions = tuple(_contradictions(content, metrics))
    try:
        settings = Settings.model_validate(content)
    except ValidationError as error:
        raise SettingsInvalid(
            (*problems_of(error, Settings, _may_hold_secrets, NAMES_IN_KEDA), *contradictions)
        ) from error
    if problems := (*contradictions, *(_problems_in_files(settings) if opens_files else ())):
        raise SettingsInvalid(problems)
    return settings


def _may_hold_secrets(location: Location) -> bool:
    """People write passwords in place of the files that hold them."""
    match location:
        case ("clusters",) | ("clusters", _) | ("clusters", _, "security", *_):
            return True
    return False


def _problems_in_files(settings: Settings) -> Iterator[str]:
    # Loads cryptography.
    from adapter.settings import credentials  # noqa: PLC0415 - see above

    for at, cluster in enumerate(settings.clusters):
        yield from (f"clusters[{at}].security: {problem}" for problem in credentials.problems_of(cluster.security))
    if settings.upstream is not None:
        yield from (f"upstream: {problem}" for problem in credentials.problems_of(settings.upstream))
    if settings.history.location is not None and Path(settings.history.location).is_file():
        yield f"history.location: {settings.history.location!r} is a file, not a folder"


def from_bootstrap_servers(text: str) -> Settings:
    """Returns the settings of `--bootstrap-servers HOST:PORT[,HOST:PORT]`: one cluster named `main` and defaults."""
    servers = [server.strip() for server in text.split(",") if server.strip()]
    try:
        return parse({"clusters": [{"name": "main", "bootstrapServers": servers}]}, {})
    except SettingsInvalid as invalid:
        if not servers:
            raise SettingsInvalid(("--bootstrap-servers: does not name a server",)) from invalid
        raise SettingsInvalid(
            tuple(f"--bootstrap-servers: {p.split(': ', 1)[-1]}" for p in invalid.problems)
        ) from invalid


def _contradictions(content: Mapping[str, object], built_in: BuiltIn) -> Iterator[str]:
    """Yields what parts of the file say against each other, also where other parts are invalid."""
    clusters, metrics = _texts_in(content, "clusters"), _texts_in(content, "metrics")
    names, values = dict.fromkeys(each.get("name", "") for each in clusters), list(dict.fromkeys(built_in.values()))
    yield from _repeated("clusters", [each.get("name", "") for each in clusters])
    yield from _repeated("metrics", [each.get("name", "").lower() for each in metrics])
    for at, metric in enumerate(metrics):
        name, value, cluster = metric.get("name", ""), metric.get("value"), metric.get("cluster")
        if value is not None and value not in values:
            requirement = f"must be one of {', '.join(values)}{did_you_mean(value, values)}"
            yield f"metrics[{at}].value: is {shown(value)}; {requirement}"
        if name.lower() in built_in:
            yield f"metrics[{at}].name: {name!r} is the name of a built-in metric"
        if cluster is None and len(names) > 1:
            yield f"metrics[{at}].cluster: is missing; there are several clusters"
        if cluster is not None and names and cluster not in names:
            yield f"metrics[{at}].cluster: {cluster!r} is not one of the clusters {some_of([*names], separator=', ')}"


def _texts_in(content: Mapping[str, object], key: str) -> list[dict[str, str]]:
    """Returns what each item of the list at this key has as text."""
    items = content.get(key)
    mappings = (item if isinstance(item, dict) else {} for item in (items if isinstance(items, list) else ()))
    return [{name: text for name, text in item.items() if isinstance(text, str)} for item in mappings]


def _repeated(place: str, names: Sequence[str]) -> Iterator[str]:
    seen: dict[str, int] = {}
    for at, name in enumerate(names):
        if name and name in seen:
            yield f"{place}[{at}].name: {name!r} is also the name of {place}[{seen[name]}]"
        seen.setdefault(name, at)
