"""Loads the settings file, or reports every problem with its path in the file."""

import re
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, get_args

import yaml
from pydantic import ValidationError
from yaml.reader import ReaderError

from adapter.errors import SettingsInvalid, did_you_mean, shown, some_of
from adapter.settings.models import Settings
from adapter.settings.types import SettingsPart

BuiltIn = Mapping[str, str]
"""The name of each built-in metric -> the `value` of a named metric that has the same values."""


def load(path: Path, metrics: BuiltIn, *, opens_files: bool = True) -> Settings:
    """Loads a YAML file; raises SettingsInvalid with every problem.

    `opens_files` is whether the files that the settings name are checked as well."""
    return settings_in(content_of(path), path, metrics, opens_files=opens_files)


def content_of(path: Path) -> bytes:
    try:
        return path.read_bytes()
    except OSError as error:
        raise SettingsInvalid((f"{path}: {error.strerror}",)) from error


def settings_in(content: bytes, path: Path, metrics: BuiltIn, *, opens_files: bool = True) -> Settings:
    """Returns the settings in a file's content; `path` begins every problem."""
    try:
        return parse(document_in(content), metrics, opens_files=opens_files)
    except SettingsInvalid as invalid:
        raise SettingsInvalid(tuple(f"{path}: {problem}" for problem in invalid.problems)) from invalid


def document_in(content: bytes) -> object:
    try:
        document: object = yaml.load(content.decode(), _Loader)  # noqa: S506 - a SafeLoader
    except UnicodeDecodeError as error:
        raise SettingsInvalid(("is not UTF-8 text",)) from error
    except ReaderError as error:
        raise SettingsInvalid((f"contains the character U+{error.character:04X}, which YAML forbids",)) from error
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark
        place = f"line {mark.line + 1}, column {mark.column + 1}: " if mark else ""
        # A password that begins with `*` or `!` looks like an alias or a tag.
        problem = re.sub(r"(alias|anchor|tag) '.*'", r"\1", str(error.problem or error.context))
        raise SettingsInvalid((f"{place}{problem}",)) from error
    except RecursionError as error:
        raise SettingsInvalid(("is nested too deeply",)) from error
    return document


def parse(content: object, metrics: BuiltIn, *, opens_files: bool = True) -> Settings:
    """Parses a loaded document; raises SettingsInvalid with every problem."""
    if not isinstance(content, dict):
        raise SettingsInvalid(("must be a mapping with at least `clusters`",))
    contradictions = tuple(_contradictions(content, metrics))
    try:
        settings = Settings.model_validate(content)
    except ValidationError as error:
        raise SettingsInvalid((*problems_of(error, Settings), *contradictions)) from error
    if problems := (*contradictions, *(_problems_in_files(settings) if opens_files else ())):
        raise SettingsInvalid(problems)
    return settings


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


def path_in_file(location: Sequence[int | str]) -> str:
    """`("rules", 2, "offsetReset")` -> `rules[2].offsetReset`."""
    text = "".join(f"[{step}]" if isinstance(step, int) else f".{step}" for step in location)
    return text.removeprefix(".")


REQUIREMENTS = {
    "model_type": "must be a mapping",
    "tuple_type": "must be a list",
    "string_type": "must be text",
    "string_unicode": "must be text",
    "path_type": "must be the path of a file",
    "string_too_long": "must have at most {max_length} characters",
    "bool_type": "must be true or false",
    "bool_parsing": "must be true or false",
    "int_type": "must be a whole number",
    "int_parsing": "must be a whole number",
    "int_from_float": "must be a whole number",
    "greater_than_equal": "must be at least {ge}",
    "less_than_equal": "must be at most {le}",
    "literal_error": "must be {expected}",
    "enum": "must be {expected}",
}
"""Kind of problem -> the sentence after the refused value."""


def problems_of(error: ValidationError, model: type[SettingsPart]) -> tuple[str, ...]:
    """Turns each of pydantic's problems into one sentence: the path in the file, then the problem."""
    # A list whose items are all invalid is also reported as too short; drop that unless the list is empty in the file.
    problems = (one for one in error.errors(include_url=False) if one["type"] != "too_short" or not one["input"])
    return tuple(f"{path_in_file(one['loc'])}: {_words_of(one, model)}" for one in problems)


def _words_of(problem: Mapping[str, Any], model: type[SettingsPart]) -> str:
    kind = problem["type"]
    match kind:
        case "extra_forbidden":
            # Without its value, which may be a secret.
            *place, key = problem["loc"]
            return f"is not a known key{did_you_mean(str(key), _keys_at(place, model))}"
        case "missing":
            return "is missing"
        case "too_short" | "string_too_short":
            return "must not be empty"
        case "value_error":
            return str(problem["ctx"]["error"])
    context = problem.get("ctx", {})
    requirement = REQUIREMENTS.get(kind, "is not valid").format(**context)
    near = did_you_mean(str(problem["input"]), re.findall("'([^']+)'", str(context.get("expected", ""))))
    match problem["loc"]:
        case ("clusters",) | ("clusters", _) | ("clusters", _, "security", *_):
            # Without the value: people write passwords there in place of files.
            return f"{requirement}{near}"
    return f"is {shown(problem['input'])}; {requirement}{near}"


def _keys_at(location: Sequence[int | str], part: type[SettingsPart]) -> list[str]:
    """Returns the keys that a file has at this place; `part` is its whole."""
    for step in location:
        fields = {field.alias: field for field in part.model_fields.values()}
        if isinstance(step, str):
            part = next(_parts_in(fields[step].annotation))
    return [str(field.alias) for field in part.model_fields.values()]


def _parts_in(annotation: object) -> Iterator[type[SettingsPart]]:
    if isinstance(annotation, type) and issubclass(annotation, SettingsPart):
        yield annotation
    for argument in get_args(annotation):
        yield from _parts_in(argument)


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


class _Loader(yaml.SafeLoader):
    """Refuses repeated keys, because YAML would silently keep only the last one."""

    def construct_object(self, node: yaml.Node, deep: bool = False) -> object:  # noqa: FBT001, FBT002 - PyYAML's
        try:
            return super().construct_object(node, deep)
        except (ValueError, LookupError) as error:  # what `!!int x` and `!!bool x` raise
            raise yaml.MarkedYAMLError(None, None, f"YAML cannot read this value: {error}", node.start_mark) from error

    def construct_mapping(self, node: yaml.MappingNode, deep: bool = False) -> dict[Any, Any]:  # noqa: FBT001, FBT002 - PyYAML's
        seen: set[str] = set()
        for key, _ in node.value:
            if not isinstance(key, yaml.ScalarNode):
                continue
            if key.value in seen:
                raise yaml.MarkedYAMLError(None, None, f"the key {key.value!r} occurs twice", key.start_mark)
            seen.add(key.value)
        return super().construct_mapping(node, deep)


# Dates stay text, because no key takes one.
_Loader.add_constructor("tag:yaml.org,2002:timestamp", lambda _, node: node.value)
