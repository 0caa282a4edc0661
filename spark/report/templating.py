"""The templates of the report (`templates/`), and the filters that they format values with."""

from collections.abc import Callable
from functools import cache
from importlib import resources

from jinja2 import Environment, FunctionLoader, StrictUndefined
from markupsafe import Markup

from spark.advice.assessment import Report
from spark.advice.hpa import expected_in_words
from spark.figures import formatting
from spark.report.fields import OVERVIEW, numbers_of, steps_of, target_of, window_of
from spark.report.wording import MOST_SKIPPED, at_a_glance, coverage_in_words, range_in_words

Escape = Callable[[str], str]


def filled(template: str, escape: Escape, report: Report, **values: object) -> str:
    """The template's text; `escape` is applied to each value that the template inserts."""
    return (
        _environment(escape)
        .get_template(template)
        .render(
            report=report,
            data=report.data,
            range=range_in_words(report),
            at_a_glance=at_a_glance(report),
            coverage=coverage_in_words(report),
            skipped=report.data.skipped,
            most_skipped=MOST_SKIPPED,
            summary=OVERVIEW,
            **values,
        )
    )


@cache
def _environment(escape: Escape) -> Environment:
    environment = Environment(
        autoescape=True,
        finalize=lambda value: value if isinstance(value, Markup) else Markup(escape(str(value))),  # noqa: S704
        keep_trailing_newline=True,
        loader=FunctionLoader(_source),
        lstrip_blocks=True,
        trim_blocks=True,
        undefined=StrictUndefined,
    )
    names = ("change", "count", "duration", "known_plural", "moment", "name", "plural", "rate", "share")
    environment.filters |= {name: getattr(formatting, name) for name in names}
    environment.filters |= {
        "expected": expected_in_words,
        "numbers": numbers_of,
        "per": _per,
        "steps": steps_of,
        "target": target_of,
        "window": window_of,
    }
    return environment


def _source(name: str) -> str:
    # Not by its path: spark-submit --py-files imports this package from a zip file.
    return resources.files(__package__).joinpath("templates", name).read_text(encoding="utf-8")


def _per(part: float, whole: float) -> float | None:
    return part / whole if whole > 0 else None
