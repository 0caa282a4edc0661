"""Validates label keys and values.

The wording is that of https://github.com/kubernetes/apimachinery (pkg/api/validate/content), for web searches."""

import json
import re

_NAME_PATTERN = "([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]"
_DOMAIN_PATTERN = r"[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*"
_NAME = re.compile(r"[A-Za-z0-9](?:[-A-Za-z0-9_.]*[A-Za-z0-9])?")
_DOMAIN_PART = re.compile(r"[a-z0-9](?:[-a-z0-9]*[a-z0-9])?")
_CHARACTERS = (
    "consist of alphanumeric characters, '-', '_' or '.', and must start and end with an alphanumeric character"
)
_NAME_PROBLEM = (
    f"must {_CHARACTERS} (e.g. 'MyName',  or 'my.name',  or '123-abc', regex used for validation is '{_NAME_PATTERN}')"
)
_VALUE_PROBLEM = (
    f"a valid label must be an empty string or {_CHARACTERS} (e.g. 'MyValue',  or 'my_value',  or '12345', "
    f"regex used for validation is '({_NAME_PATTERN})?')"
)
_DOMAIN_PROBLEM = (
    "a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' or '.', and must start "
    f"and end with an alphanumeric character (e.g. 'example.com', regex used for validation is '{_DOMAIN_PATTERN}')"
)


def problems_of_value(value: str) -> list[str]:
    problems = [] if _bytes_of(value) <= 63 else ["must be no more than 63 bytes"]
    if value and not _NAME.fullmatch(value):
        problems.append(_VALUE_PROBLEM)
    return problems


def problems_of_key(key: str) -> list[str]:
    prefix, slash, name = key.rpartition("/")
    if "/" in prefix:
        optional = "with an optional DNS subdomain prefix and '/' (e.g. 'example.com/MyName')"
        return [f"a valid label key {_NAME_PROBLEM} {optional}"]
    problems = [f"prefix part {problem}" for problem in _problems_of_prefix(prefix)] if slash else []
    if not name:
        problems.append("name part must be non-empty")
    elif _bytes_of(name) > 63:
        problems.append("name part must be no more than 63 bytes")
    if not _NAME.fullmatch(name):
        problems.append(f"name part {_NAME_PROBLEM}")
    return problems


def _problems_of_prefix(prefix: str) -> list[str]:
    if not prefix:
        return ["must be non-empty"]
    problems = [] if _bytes_of(prefix) <= 253 else ["must be no more than 253 bytes"]
    # Part by part: one expression for the whole would be slow for long text that does not match.
    if not all(_DOMAIN_PART.fullmatch(part) for part in prefix.split(".")):
        problems.append(_DOMAIN_PROBLEM)
    return problems


def _bytes_of(text: str) -> int:
    return len(text.encode("utf-8", "surrogatepass"))


def invalid(place: str, value: str, problems: list[str]) -> str:
    return f"{place}: Invalid value: {json.dumps(value, ensure_ascii=False)}: {'; '.join(problems)}"
