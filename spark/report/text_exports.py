"""Pure: the report as CSV and as Markdown: the same figures as the page."""

import csv
import io
import re

from spark.advice.assessment import Report
from spark.report.fields import FIELDS, fields_of
from spark.report.json_export import known
from spark.report.templating import filled

_FORMULA = re.compile(r"(^|;)(?=[=+\-@\t\r\n'])")
"""Where a spreadsheet would begin a cell with a formula; in many languages, semicolons separate its cells."""


def csv_of(report: Report) -> str:
    """One row per group and topic; an empty cell: not known."""
    text = io.StringIO(newline="")
    writer = csv.DictWriter(text, FIELDS)
    writer.writeheader()
    for standing in report.standings:
        for topic in standing.group.topics:
            writer.writerow({name: _cell(known(value)) for name, value in fields_of(standing, topic).items()})
    return text.getvalue()


def _cell(value: object) -> object:
    """What a spreadsheet would take for a formula gets an apostrophe, and so does what begins with one."""
    if isinstance(value, str):
        return _FORMULA.sub(r"\1'", value)
    return "" if value is None else value


def markdown_of(report: Report) -> str:
    return filled("report.md.j2", markdown, report)


def markdown(text: str) -> str:
    """On one line, with everything escaped that Markdown or HTML in it would take for its own."""
    shown = "".join(character if character.isprintable() or character == "\u202f" else "\ufffd" for character in text)
    shown = shown.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")
    return re.sub(r"([\\`*_\[\]|#~])", r"\\\1", shown)
