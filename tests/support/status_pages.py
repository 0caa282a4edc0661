"""Status pages by hand, and names that attack the page that shows them."""

from collections.abc import Mapping, Sequence
from typing import Any

from adapter.conditions import VALUES, Conditions
from adapter.metrics.definitions import SERVED
from adapter.metrics.problems import Problem, Reason
from adapter.metrics.query import Metrics
from adapter.metrics.store import ClusterView
from adapter.overview.trends import LagTrends
from adapter.settings.models import Settings
from apiservice.autoscalers.autoscaler import Autoscaler, autoscaler_of
from apiservice.status_page.page import Page, Sources, page_of
from apiservice.status_page.rendering import html_of
from tests.support.kubernetes.fakes import MEASURED_AT
from tests.support.kubernetes.hpas import external, hpa
from tests.support.samples import Key, Row, SteppedClock, row, settings, store_of, view

HOSTILE = (
    "<script>document.title='hit'</script>",
    "<img src=x onerror=\"document.title='hit'\">",
    "\"><svg/onload=document.title='hit'>",
    "' autofocus onfocus='document.title=1' x='",
    "</style></title><script>document.title='hit'</script>",
    "<a href=\"javascript:document.title='hit'\">me</a>",
    "javascript:document.title='hit'",
    "<iframe src=//127.0.0.1:9/></iframe><link rel=stylesheet href=//127.0.0.1:9/>",
    "<!--",
    "{{ 7 * 7 }}{% raw %}",
    "&lt;b&gt;&#60;script&#62;",
    "right to left \u202e gnp.exe",
    "line\nfeed\ttab\rreturn\x1b[31mred\x00nul",
    "no character \udcff",
    "../../readyz",
    "..",
    "?output=json#fragment",
    "long" * 400,
)
PLAIN = tuple(f"plain-{number}" for number in range(len(HOSTILE)))


def autoscalers(*documents: dict[str, Any]) -> tuple[Autoscaler, ...]:
    found = (autoscaler_of(each, set(SERVED)) for each in documents)
    return tuple(each for each in found if each is not None)


def sources(
    *views: ClusterView,
    given: Settings | None = None,
    hpas: Sequence[Autoscaler] = (),
    trends: LagTrends | None = None,
    conditions: Conditions | None = None,
) -> Sources:
    used, clock = given or settings(), SteppedClock()
    return Sources(
        Metrics(used, store_of(*views), clock),
        used,
        conditions or Conditions(lambda: MEASURED_AT),
        hpas,
        trends or LagTrends(),
        clock,
        "kafka-lag-adapter-0",
        "0.1.0",
    )


def page(rows: Mapping[Key, Row], namespace: str | None = None, **parts: Any) -> Page:  # noqa: ANN401 - as `sources`
    return page_of(sources(view(rows, settings=parts.get("given")), **parts), namespace)


def page_with_names(names: Sequence[str]) -> bytes:
    """Each name is a group, a topic, a namespace, an HPA, what it scales, a label's value, part of a broker's words and
    of a condition."""
    rows: dict[Key, Row] = {(name, f"{name} topic", 0): row(5, 10) for name in names}
    rows |= {(f"{name} silent", name, 0): row(5, 10).aged(95).unknown(f"broker 1 at {name}:9092") for name in names}
    why = [Problem(Reason.NOT_READ_SINCE, f"broker 2 at {name}:9092", "main", f"{name} unread") for name in names]
    documents = [
        hpa(name, external(group=name, topic=name), namespace=name, conditions=[_said(name)]) for name in names
    ]
    conditions = Conditions(lambda: MEASURED_AT)
    for name in names:
        conditions.fails(VALUES, "Partial", f"broker 3 at {name}:9092 is silent", cluster=name)
    given = sources(view(rows, problems=why), hpas=autoscalers(*documents), conditions=conditions)
    return html_of(page_of(given, None)) + html_of(page_of(given, names[0]))


def _said(name: str) -> dict[str, str]:
    return {"type": "ScalingActive", "status": "False", "reason": name, "message": f"503: {name}"}
