"""Checks as lines for people, with colours where a terminal shows them, and as JSON for programs."""

from collections.abc import Iterator, Mapping, Sequence
from itertools import groupby
from operator import attrgetter
from typing import Any

from rich.text import Text

from adapter.errors import one_line, some_of
from apiservice.doctor.check import Check, Outcome

SIGNS = {Outcome.OK: "√", Outcome.WARNING: "‼", Outcome.FAILED: "\N{MULTIPLICATION SIGN}", Outcome.SKIPPED: "-"}
COLOURS = {Outcome.OK: "green", Outcome.WARNING: "yellow", Outcome.FAILED: "red", Outcome.SKIPPED: "dim"}
MOST_SUBJECTS = 5


def lines_of(checks: Sequence[Check]) -> Iterator[Text]:
    for category, in_category in groupby(checks, key=lambda check: check.code.category):
        yield Text(f"{category.value}\n{'-' * len(category)}", style="bold")
        of_category = [*in_category]
        whys = {check.detail for check in of_category}
        if len(whys) == 1 and all(check.outcome is Outcome.SKIPPED for check in of_category):
            yield Text(f"{SIGNS[Outcome.SKIPPED]} {one_line(whys.pop())}", style="dim")
        else:
            yield from (line for alike in _alike(of_category) for line in _lines(alike))
        yield Text()
    counts = {outcome: sum(check.outcome is outcome for check in checks) for outcome in Outcome}
    words = {Outcome.WARNING: "warning" if counts[Outcome.WARNING] == 1 else "warnings"}
    said = (f"{SIGNS[each]} {count} {words.get(each, each)}" for each, count in counts.items() if count)
    yield Text(", ".join(said) or "nothing was checked")


def document_of(checks: Sequence[Check]) -> Mapping[str, Any]:
    return {"status": status_of(checks).value, "checks": [_fields(check) for check in checks]}


def status_of(checks: Sequence[Check]) -> Outcome:
    """Returns the worst of failed, warning and ok."""
    found = {check.outcome for check in checks}
    return next((each for each in (Outcome.FAILED, Outcome.WARNING) if each in found), Outcome.OK)


def _alike(checks: Sequence[Check]) -> Iterator[list[Check]]:
    """Yields neighbours that one line can show: the good and the skipped of one code with the same words."""
    for _, of_code in groupby(sorted(checks, key=attrgetter("code.name")), key=attrgetter("code")):
        shown: dict[tuple[object, ...], list[Check]] = {}
        for check in of_code:
            is_quiet = check.outcome in {Outcome.OK, Outcome.SKIPPED}
            shown.setdefault((check.outcome, check.detail, "" if is_quiet else check.subject), []).append(check)
        yield from shown.values()


def _lines(alike: Sequence[Check]) -> Iterator[Text]:
    first = alike[0]
    code, outcome = first.code, first.outcome
    names = some_of([check.subject for check in alike if check.subject], MOST_SUBJECTS, ", ")
    line = Text(f"{SIGNS[outcome]} ", style=COLOURS[outcome])
    line.append(f"{code.name} {code.claim}", style="dim" if outcome is Outcome.SKIPPED else "default")
    line.append(f" ({one_line(names)})" if names else "", style="dim")
    if outcome in {Outcome.OK, Outcome.SKIPPED}:
        line.append(f": {one_line(first.detail)}" if first.detail else "", style="dim")
        yield line
        return
    yield line
    yield Text(f"    {one_line(first.detail)}")
    yield Text(f"    {code.remedy}\n    {code.link}", style="dim")


def _fields(check: Check) -> Mapping[str, str]:
    code, is_bad = check.code, check.outcome in {Outcome.FAILED, Outcome.WARNING}
    return {
        "code": code.name,
        "category": code.category.value,
        "outcome": check.outcome.value,
        "claim": code.claim,
        "subject": check.subject,
        "detail": check.detail,
        "remedy": code.remedy if is_bad else "",
        "link": code.link,
    }
