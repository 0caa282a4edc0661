"""The page's HTML. Every value that the template inserts is escaped, and characters that could mislead are numbers."""

import base64
import hashlib
import re
from functools import cache
from importlib import resources

from jinja2 import Environment, FunctionLoader, StrictUndefined
from markupsafe import Markup

from adapter.clock import utc_text
from adapter.conditions import ConditionStatus
from adapter.overview.cells import duration
from adapter.overview.lines import Attention
from apiservice.status_page.drawing import HEIGHT, WIDTH
from apiservice.status_page.page import Page, unexpected

REFRESH_SECONDS = 30
LONGEST = 500
"""Characters of a name or a message. An HPA's message may have thousands, and a page hundreds of them."""
COLOURS = {
    Attention.UNKNOWN: "act",
    Attention.NO_MEMBERS: "act",
    Attention.STUCK: "act",
    Attention.GROWING: "watch",
    Attention.LAGGING: "note",
    Attention.NONE: "fine",
}
"""Those of the reports."""


def html_of(page: Page) -> bytes:
    text = _environment().get_template("status.html.j2").render(page=page, refresh=REFRESH_SECONDS)
    return text.encode()


@cache
def security_policy() -> str:
    """Returns the Content-Security-Policy: nothing but the page's own style sheet."""
    digest = base64.b64encode(hashlib.sha256(_style_sheet().encode()).digest()).decode()
    own = f"default-src 'none'; style-src 'sha256-{digest}'; img-src data:"
    return f"{own}; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"


def shown(text: str) -> str:
    """Returns what can be printed; anything else, such as marks that turn the direction of text, becomes its number."""
    half = LONGEST // 2
    text = text if len(text) <= LONGEST else f"{text[:half]} … {text[-half:]}"
    return "".join(each if each.isprintable() else each.encode("unicode_escape").decode() for each in text)


@cache
def _environment() -> Environment:
    environment = Environment(
        autoescape=True,
        # Markup is what the template's own macros made.
        finalize=lambda value: shown(value) if isinstance(value, str) and not isinstance(value, Markup) else value,
        loader=FunctionLoader(_source),
        lstrip_blocks=True,
        trim_blocks=True,
        undefined=StrictUndefined,
    )
    environment.filters |= {"duration": duration, "time": utc_text, "unexpected": unexpected}
    environment.globals |= {
        "Attention": Attention,
        "TRUE": ConditionStatus.TRUE,
        "colours": COLOURS,
        "height": HEIGHT,
        "style": Markup(_style_sheet()),  # noqa: S704 - our own file
        "width": WIDTH,
    }
    return environment


@cache
def _style_sheet() -> str:
    """Without its blanks."""
    return re.sub(r": +", ":", re.sub(r"\s*([{};,])\s*", r"\1", _source("status.css")))


def _source(name: str) -> str:
    return resources.files(__package__).joinpath("templates", name).read_text(encoding="utf-8")
