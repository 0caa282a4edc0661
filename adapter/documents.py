"""Files that people write: their content as a YAML document, and what is wrong with one, with the path in the file."""

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from types import MappingProxyType
from typing import Any, get_args

import yaml
from pydantic import BaseModel, ValidationError
from yaml.reader import ReaderError

from adapter.errors import SettingsInvalid, did_you_mean, shown

Location = Sequence[int | str]
"""Keys and indexes from the whole document to one of its values."""


def content_of(path: Path) -> bytes:
    try:
        return path.read_bytes()
    except OSError as error:
        raise SettingsInvalid((f"{path}: {error.strerror}",)) from error


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


def path_in_file(location: Location) -> str:
    """`("rules", 2, "offsetReset")` -> `rules[2].offsetReset`."""
    text = "".join(f"[{step}]" if isinstance(step, int) else f".{step}" for step in location)
    return text.removeprefix(".")


UNQUOTED = "string_unquoted"
"""Ours, beside pydantic's kinds of problems."""
REQUIREMENTS = {
    "model_type": "must be a mapping",
    "tuple_type": "must be a list",
    "string_type": "must be text",
    "string_unicode": "must be text",
    UNQUOTED: "must be text; put it in quotes",
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


def problems_of(
    error: ValidationError,
    model: type[BaseModel],
    may_hold_secrets: Callable[[Location], bool] = lambda _: False,
    synonyms: Mapping[str, str] = MappingProxyType({}),
) -> tuple[str, ...]:
    """Turns each of pydantic's problems into one sentence: the path in the file, then the problem.

    Refused values are shown, except in places for which `may_hold_secrets` returns True. `synonyms`: what others call
    keys -> the key."""
    # A list whose items are all invalid is also reported as too short; drop that unless the list is empty in the file.
    problems = (one for one in error.errors(include_url=False) if one["type"] != "too_short" or not one["input"])
    return tuple(
        f"{path_in_file(one['loc'])}: {_words_of(one, model, synonyms, is_shown=not may_hold_secrets(one['loc']))}"
        for one in problems
    )


def _words_of(
    problem: Mapping[str, Any], model: type[BaseModel], synonyms: Mapping[str, str], *, is_shown: bool
) -> str:
    kind = problem["type"]
    match kind:
        case "extra_forbidden":
            # Without its value, which may be a secret.
            *place, key = problem["loc"]
            keys = _keys_at(place, model)
            meant = synonyms.get(str(key))
            return f"is not a known key{did_you_mean(meant if meant in keys else str(key), keys)}"
        case "missing":
            return "is missing"
        case "too_short" | "string_too_short":
            return "must not be empty"
        case "value_error":
            return str(problem["ctx"]["error"])
        case "string_type" if isinstance(problem["input"], int | float):
            # YAML reads 7, 1.0 and no as other things than text.
            kind = UNQUOTED
    context = problem.get("ctx", {})
    requirement = REQUIREMENTS.get(kind, "is not valid").format(**context)
    near = did_you_mean(str(problem["input"]), re.findall("'([^']+)'", str(context.get("expected", ""))))
    return f"is {shown(problem['input'])}; {requirement}{near}" if is_shown else f"{requirement}{near}"


def _keys_at(location: Location, part: type[BaseModel]) -> list[str]:
    """Returns the keys that a file has at this place; `part` is its whole."""
    for step in location:
        fields = {field.alias: field for field in part.model_fields.values()}
        if isinstance(step, str):
            part = next(_parts_in(fields[step].annotation))
    return [str(field.alias) for field in part.model_fields.values()]


def _parts_in(annotation: object) -> Iterator[type[BaseModel]]:
    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        yield annotation
    for argument in get_args(annotation):
        yield from _parts_in(argument)


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
