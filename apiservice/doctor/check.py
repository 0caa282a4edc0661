"""A check: what it claims, and what was found of it."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from enum import StrEnum


class Category(StrEnum):
    """In the order in which they are shown: a later one rests on earlier ones."""

    SETTINGS = "settings"
    KAFKA = "kafka"
    GROUPS = "groups"
    KUBERNETES = "kubernetes"
    HPA = "hpa"


class Outcome(StrEnum):
    OK = "ok"
    WARNING = "warning"
    FAILED = "failed"
    SKIPPED = "skipped"


@dataclass(frozen=True, slots=True)
class Code:
    """A check's identity; it never changes its meaning."""

    name: str
    """`KLA`, the number of its category, and two more digits."""
    claim: str
    """What holds if all is well, as a sentence without its full stop."""
    remedy: str
    """What to do if it does not, in one sentence."""

    @property
    def category(self) -> Category:
        return tuple(Category)[int(self.name[3]) - 1]

    @property
    def link(self) -> str:
        return f"docs/codes/{self.name}.md"


@dataclass(frozen=True, slots=True)
class Check:
    code: Code
    outcome: Outcome
    subject: str = ""
    """What it is about, such as a server or an HPA."""
    detail: str = ""
    """What was found, or why it was skipped; names no secret."""


def passed(code: Code, subject: str = "", detail: str = "") -> Check:
    return Check(code, Outcome.OK, subject, detail)


def failed(code: Code, subject: str, detail: str) -> Check:
    return Check(code, Outcome.FAILED, subject, detail)


def warned(code: Code, subject: str, detail: str) -> Check:
    return Check(code, Outcome.WARNING, subject, detail)


def skipped(code: Code, subject: str, why: str) -> Check:
    return Check(code, Outcome.SKIPPED, subject, why)


def judged(code: Code, subject: str, problem: str, outcome: Outcome = Outcome.FAILED) -> Check:
    """Returns a check that holds if there is no problem, and otherwise has this outcome."""
    return Check(code, outcome, subject, problem) if problem else passed(code, subject)


def chained(codes: Sequence[Code], subject: str, broken: Code | None, detail: str) -> Iterator[Check]:
    """Yields the checks of a chain, in which each one needs those before it and the broken one fails."""
    reached = codes if broken is None else codes[: codes.index(broken)]
    yield from (passed(code, subject) for code in reached)
    if broken is not None:
        yield failed(broken, subject, detail)
        yield from (skipped(code, subject, f"{broken.name} failed") for code in codes[len(reached) + 1 :])
