"""Label selectors as Kubernetes writes them: text in, requirements out, or the error text that its users know.

Grammar: https://kubernetes.io/docs/concepts/overview/working-with-objects/labels/#api
A value list may hold empty values anywhere, as in `x in (,a,,)`."""

import re
from collections.abc import Iterator, Mapping, Sequence

from adapter.metrics.requirement import Operator, Requirement, int64
from apiservice.http.status import BadRequest
from apiservice.metrics_api.label_syntax import invalid, problems_of_key, problems_of_value


def parse(text: str) -> tuple[Requirement, ...]:
    """Returns the requirements sorted by key, or raises BadRequest with the wording of Kubernetes' own parser."""
    tokens = [_END, *reversed(_TOKEN.findall(text))]
    return tuple(sorted(_requirements(tokens), key=lambda requirement: requirement.key))


Selector = Mapping[str, object]
"""A LabelSelector as in Kubernetes' API."""
_NAMES = {
    Operator.IN: "In",
    Operator.NOT_IN: "NotIn",
    Operator.NOT_EQUALS: "NotIn",
    Operator.EXISTS: "Exists",
    Operator.ABSENT: "DoesNotExist",
}


def document_of(requirements: Sequence[Requirement]) -> Selector | None:
    """Returns the selector as replies repeat it, None if there is none; raises BadRequest for other operators.

    A second value of a label becomes an expression, so that the selector still matches nothing."""
    labels: dict[str, str] = {}
    expressions: list[Selector] = []
    for one in requirements:
        if one.operator in (Operator.GREATER, Operator.LESS):
            raise BadRequest(f"metricLabelSelector: {str(one.operator)!r} is no operator of a LabelSelector")
        if one.operator in _NAMES:
            values = {"values": sorted(one.values)} if one.values else {}
            expressions.append({"key": one.key, "operator": _NAMES[one.operator], **values})
        elif labels.setdefault(one.key, min(one.values)) not in one.values:
            expressions.append({"key": one.key, "operator": "In", "values": sorted(one.values)})
    parts = {"matchLabels": labels, "matchExpressions": expressions}
    return {key: part for key, part in parts.items() if part} or None


_END = ""
_SYMBOLS = frozenset({"=", "==", "!=", "!", "(", ")", ",", "<", ">"})
_TOKEN = re.compile(r"==|!=|[=!(),<>]|[^ \t\r\n=!(),<>]+")
_BINARY = {str(operator): operator for operator in Operator if operator not in (Operator.EXISTS, Operator.ABSENT)}


def _is_identifier(token: str) -> bool:
    """`in` and `notin` are also identifiers; only their position after a key makes them operators."""
    return token != _END and token not in _SYMBOLS


def _requirements(tokens: list[str]) -> Iterator[Requirement]:
    """Takes the tokens from the end of the list: they are in reverse, so that each is taken at once."""
    expected = "!, identifier, or 'end of string'"
    separator = "," if tokens[-1] != _END else _END
    while separator != _END:
        if tokens[-1] != Operator.ABSENT and not _is_identifier(tokens[-1]):
            raise BadRequest(f"found '{tokens[-1]}', expected: {expected}")
        yield _requirement(tokens)
        separator, expected = tokens.pop(), "identifier after ','"
        if separator not in (_END, ","):
            raise BadRequest(f"found '{separator}', expected: ',' or 'end of string'")


def _requirement(tokens: list[str]) -> Requirement:
    is_absent = tokens[-1] == Operator.ABSENT
    if is_absent:
        tokens.pop()
    key = _identifier(tokens)
    problems = problems_of_key(key)
    if problems:
        raise _unreadable(invalid("<nil>", key, problems))
    if is_absent or tokens[-1] in (_END, ","):
        return Requirement(key, Operator.ABSENT if is_absent else Operator.EXISTS)
    token = tokens.pop()
    operator = _BINARY.get(token)
    if operator is None:
        raise _unreadable(f"found '{token}', expected: in, notin, =, ==, !=, gt, lt")
    if operator in (Operator.IN, Operator.NOT_IN):
        values = _value_list(tokens)
    else:
        values = [""] if tokens[-1] in (_END, ",") else [_identifier(tokens)]
    _check_values(key, operator, values)
    return Requirement(key, operator, frozenset(values))


def _identifier(tokens: list[str]) -> str:
    token = tokens.pop()
    if not _is_identifier(token):
        raise _unreadable(f"found '{token}', expected: identifier")
    return token


def _value_list(tokens: list[str]) -> list[str]:
    opening = tokens.pop()
    if opening != "(":
        raise _unreadable(f"found '{opening}' expected: '('")
    if tokens[-1] not in (",", ")") and not _is_identifier(tokens[-1]):
        raise _unreadable(f"found '{tokens[-1]}', expected: ',', ')' or identifier")
    values: list[str] = []
    while True:
        is_named = _is_identifier(tokens[-1])
        values.append(tokens.pop() if is_named else "")
        separator = tokens.pop()
        if separator == ")":
            return values
        if separator != ",":
            expected = "',' or ')'" if is_named else "',', or identifier"
            raise _unreadable(f"found '{separator}', expected: {expected}")


def _unreadable(problem: str) -> BadRequest:
    return BadRequest(f"unable to parse requirement: {problem}")


def _check_values(key: str, operator: Operator, values: list[str]) -> None:
    """Reports invalid values in sorted order, at most ten, so that the reply stays in proportion to the request."""
    found: list[str] = []
    for index, value in enumerate(sorted(set(values))):
        if len(found) >= 10:
            break
        if operator in (Operator.GREATER, Operator.LESS) and int64(value) is None:
            needed = "for 'Gt', 'Lt' operators, the value must be an integer"
            found.append(invalid(f"values[{index}]", value, [needed]))
        problems = problems_of_value(value)
        if problems:
            found.append(invalid(f"values[{index}][{key}]", value, problems))
    if found:
        raise _unreadable(found[0] if len(found) == 1 else f"[{', '.join(found)}]")
