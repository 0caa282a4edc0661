"""Loads the settings file, or reports every problem with its path in the file."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import yaml
from pydantic import ValidationError

from adapter.errors import SettingsInvalid, some_of
from adapter.settings.models import SERVED_NAMES, Settings


def load(path: Path) -> Settings:
    """Loads a YAML file; raises SettingsInvalid with every problem."""
    try:
        text = path.read_text(encoding="utf-8")
    except OSError as error:
        raise SettingsInvalid((f"{path}: {error.strerror}",)) from error
    except UnicodeDecodeError as error:
        raise SettingsInvalid((f"{path}: is not UTF-8 text",)) from error
    try:
        return parse(content_of(text))
    except SettingsInvalid as invalid:
        raise SettingsInvalid(tuple(f"{path}: {problem}" for problem in invalid.problems)) from invalid


def content_of(text: str) -> object:
    try:
        content: object = yaml.load(text, _UniqueKeys)  # noqa: S506 - a SafeLoader
    except yaml.YAMLError as error:
        raise SettingsInvalid((_one_line(str(error)),)) from error
    # Invalid dates, `!!bool maybe` or deeply nested brackets raise whatever Python raises inside PyYAML.
    except Exception as error:
        raise SettingsInvalid((f"cannot be read as YAML: {type(error).__name__}: {_one_line(str(error))}",)) from error
    return content


def _one_line(text: str) -> str:
    return " ".join(text.split())


def parse(content: object) -> Settings:
    """Parses a loaded document; raises SettingsInvalid with every problem."""
    if not isinstance(content, dict):
        raise SettingsInvalid(("must be a mapping with at least `clusters`",))
    contradictions = tuple(_contradictions(_named_parts(content, "clusters"), _named_parts(content, "metrics")))
    try:
        settings = Settings.model_validate(content)
    except ValidationError as error:
        errors = error.errors(include_url=False, include_input=True)
        # A list whose items are all invalid is also reported as too short; drop that unless the list is empty in the
        # file.
        problems = tuple(sentence_of(one) for one in errors if one["type"] != "too_short" or not one["input"])
        raise SettingsInvalid(problems + contradictions) from error
    if contradictions:
        raise SettingsInvalid(contradictions)
    return settings


def from_bootstrap_servers(text: str) -> Settings:
    """Returns the settings of `--bootstrap-servers HOST:PORT[,HOST:PORT]`: one cluster named `main` and defaults."""
    servers = [server.strip() for server in text.split(",") if server.strip()]
    try:
        return parse({"clusters": [{"name": "main", "bootstrapServers": servers}]})
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


PLAIN_WORDS = {
    "extra_forbidden": "is not a known key",
    "missing": "is missing",
    "too_short": "must not be empty",
    "string_too_short": "must not be empty",
    "model_type": "must be a mapping",
    "tuple_type": "must be a list",
    "string_type": "must be text",
}


def sentence_of(problem: Mapping[str, Any]) -> str:
    """Turns pydantic's problem into one sentence: the path in the file, then the problem."""
    kind, message = problem["type"], str(problem["msg"])
    words = PLAIN_WORDS.get(kind, message[0].lower() + message[1:])
    if kind == "value_error":
        words = message.removeprefix("Value error, ")
    if kind in {"literal_error", "enum"}:
        words = f"is {problem['input']!r}; {message[0].lower()}{message[1:]}"
    return f"{path_in_file(problem['loc'])}: {words}"


def _named_parts(content: dict[object, object], key: str) -> list[tuple[int, dict[str, object]]]:
    """Returns the list's named mappings with their index; the type check reports the others."""
    parts = content.get(key)
    if not isinstance(parts, list):
        return []
    return [(at, part) for at, part in enumerate(parts) if isinstance(part, dict) and isinstance(part.get("name"), str)]


def _contradictions(
    clusters: list[tuple[int, dict[str, object]]], metrics: list[tuple[int, dict[str, object]]]
) -> Iterator[str]:
    yield from _repeated("clusters", ((at, str(cluster["name"])) for at, cluster in clusters))
    yield from _repeated("metrics", ((at, str(metric["name"]).lower()) for at, metric in metrics))
    known = dict.fromkeys(str(cluster["name"]) for _, cluster in clusters)
    names = some_of([*known], separator=", ")
    for at, metric in metrics:
        if str(metric["name"]).lower() in SERVED_NAMES:
            yield f"metrics[{at}].name: {metric['name']!r} is the name of a built-in metric"
        if metric.get("cluster") is None and len(known) > 1:
            yield f"metrics[{at}].cluster: is missing; there are several clusters"
        if isinstance(metric.get("cluster"), str) and metric["cluster"] not in known:
            yield f"metrics[{at}].cluster: {metric['cluster']!r} is not one of the clusters {names}"


def _repeated(place: str, names: Iterable[tuple[int, str]]) -> Iterator[str]:
    seen: dict[str, int] = {}
    for at, name in names:
        if name in seen:
            yield f"{place}[{at}].name: {name!r} is also the name of {place}[{seen[name]}]"
        seen.setdefault(name, at)


class _UniqueKeys(yaml.SafeLoader):
    """YAML silently lets a later key replace an earlier one, which would lose settings."""

    def construct_mapping(self, node: yaml.MappingNode, deep: bool = False) -> dict[Any, Any]:  # noqa: FBT001, FBT002 - PyYAML's
        seen: set[str] = set()
        for key, _ in node.value:
            if not isinstance(key, yaml.ScalarNode):
                continue
            if key.value in seen:
                raise yaml.MarkedYAMLError(None, None, f"the key {key.value!r} occurs twice", key.start_mark)
            seen.add(key.value)
        return super().construct_mapping(node, deep)
