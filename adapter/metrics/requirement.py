"""One requirement of a label selector, as a query or a named metric has it."""

import re
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from enum import StrEnum


class Operator(StrEnum):
    """Operators by their notation between key and value."""

    EXISTS = ""
    ABSENT = "!"
    EQUALS = "="
    DOUBLE_EQUALS = "=="
    NOT_EQUALS = "!="
    IN = "in"
    NOT_IN = "notin"
    GREATER = ">"
    LESS = "<"


@dataclass(frozen=True, slots=True)
class Requirement:
    """EXISTS and ABSENT have no values, IN and NOT_IN any number, the others one."""

    key: str
    operator: Operator
    values: Collection[str] = frozenset()
    """A set, or a tuple that is only kept: it takes less memory."""

    @property
    def only(self) -> frozenset[str] | None:
        """The only matching values, if the requirement lists them."""
        return frozenset(self.values) if self.operator in _LISTS_VALUES else None

    def matches(self, value: str | None) -> bool:
        """Whether the label's value (None if absent) meets the requirement."""
        match self.operator:
            case Operator.EQUALS | Operator.DOUBLE_EQUALS | Operator.IN:
                return value in self.values
            case Operator.NOT_EQUALS | Operator.NOT_IN:
                return value not in self.values
            case Operator.EXISTS:
                return value is not None
            case Operator.ABSENT:
                return value is None
            case Operator.GREATER | Operator.LESS:
                number = None if value is None else int64(value)
                (text,) = self.values
                limit = int64(text)
                if number is None or limit is None:
                    return False
                return number > limit if self.operator is Operator.GREATER else number < limit


def written(requirements: Sequence[Requirement]) -> str:
    """Returns them as a label selector."""
    return ",".join(map(_written, requirements))


def _written(one: Requirement) -> str:
    match one.operator:
        case Operator.EXISTS:
            return one.key
        case Operator.ABSENT:
            return f"!{one.key}"
        case Operator.IN | Operator.NOT_IN:
            return f"{one.key} {one.operator} ({','.join(sorted(one.values))})"
    return f"{one.key}{one.operator}{','.join(one.values)}"


_LISTS_VALUES = frozenset({Operator.EQUALS, Operator.DOUBLE_EQUALS, Operator.IN})
_INTEGER = re.compile(r"[+-]?[0-9]{1,300}")


def int64(text: str) -> int | None:
    """Parses like Go's ParseInt: ASCII digits, any leading zeros, within 64 bits."""
    if not _INTEGER.fullmatch(text):
        return None
    number = int(text)
    return number if -(2**63) <= number < 2**63 else None
