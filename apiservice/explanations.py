"""Why a group has its lag, and what the HPAs that ask for it make of that: gathered, as text, and as JSON."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict, dataclass
from typing import Any

from fastapi import APIRouter, Response

from adapter.clock import Clock
from adapter.errors import one_line
from adapter.metrics.query import LAG, Metrics
from adapter.metrics.selection import named
from adapter.overview.explanation import Explanation, PartitionLine, explanations_of
from adapter.settings.models import Settings
from apiservice.api_group import EXTERNAL
from apiservice.autoscalers.arithmetic import Arithmetic, HpaLine, line_of
from apiservice.autoscalers.autoscaler import Autoscaler
from apiservice.http.replies import encoded, json_reply
from apiservice.metrics_api.reads import Replies
from apiservice.pods.values import PodsOf

Explain = Callable[[str, str | None], "Explained"]
"""The group, and the namespace of the reader; None: a reader of everything. Raises Refused."""
HEADINGS = ("PARTITION", "STATE", "COMMITTED", "END", "LAG", "AGE", "OWNER", "WHY")


@dataclass(frozen=True, slots=True)
class Explained:
    groups: tuple[Explanation, ...]
    hpas: tuple[HpaLine, ...]


def explained(
    group: str,
    metrics: Metrics,
    settings: Settings,
    clock: Clock,
    autoscalers: Sequence[Autoscaler],
    namespace: str | None = None,
    pods_in: PodsOf = lambda _: None,
) -> Explained:
    """Raises NoMatch if no cluster knows the group, and ValueUnavailable if one may."""
    asking = [each for each in autoscalers if namespace in {None, each.namespace} and _asks(each, group, metrics)]
    groups = explanations_of(group, metrics, settings, clock, namespace, is_asked=bool(asking))
    return Explained(groups, tuple(line_of(each, metrics, pods_in) for each in asking))


def _asks(autoscaler: Autoscaler, group: str, metrics: Metrics) -> bool:
    own = (metrics.named_groups.get(each.name.lower(), (None, ""))[1] for each in autoscaler.metrics)
    return any(group in (named(each.selector, "group") or ()) for each in autoscaler.metrics) or group in own


def text_of(what: Explained) -> str:
    parts = [*map(_of_group, what.groups), *map(_of_hpa, what.hpas)]
    return "\n\n".join("\n".join(lines) for lines in parts) + "\n"


def document_of(what: Explained) -> dict[str, Any]:
    return asdict(what)


def _of_group(one: Explanation) -> Iterator[str]:
    yield one_line(one.summary)
    yield ""
    yield f"rule: {one_line(one.rule)}"
    for served in one.served:
        yield f"{served.metric}: {served.value or one_line(served.refusal)}"
    yield ""
    rows = [HEADINGS, *map(_cells, one.partitions)]
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    for row in rows:
        yield "  ".join(f"{cell:<{width}}" for cell, width in zip(row, widths, strict=True)).rstrip()


def _cells(line: PartitionLine) -> tuple[str, ...]:
    numbers = (line.committed, line.log_end, line.lag)
    age = "-" if line.age is None else f"{line.age:.0f}s"
    name = f"{line.topic}/{line.partition}"
    shown = ("-" if number is None else str(number) for number in numbers)
    return one_line(name), line.state, *shown, age, one_line(line.owner) or "-", one_line(line.why)


def _of_hpa(hpa: HpaLine) -> Iterator[str]:
    yield f"HPA {hpa.namespace}/{hpa.name} scales {hpa.scales} from {hpa.minimum} to {hpa.maximum} replicas"
    for read in hpa.values:
        target = f"target {read.target_type} {read.target}"
        of_pods = "" if read.pods is None else f" of {_counted(read.pods, 'pod')}"
        yield f"  reads {read.metric}: {read.value or one_line(read.refusal)}{of_pods} ({target})"
        if read.pods not in {None, hpa.current}:
            yield "  which is not followed, because not every replica has a value"
    if hpa.has_other_metrics:
        yield "  also reads metrics that are not this adapter's, which may ask for more replicas"
    if hpa.arithmetic is not None:
        yield from _of_arithmetic(hpa.arithmetic, hpa.current)
    yield f"  its status: {_counted(hpa.current, 'replica')} now, {hpa.desired} desired"
    for condition in hpa.conditions:
        yield f"  {condition.type} {condition.status}: {condition.reason}: {one_line(condition.message)}"


def _of_arithmetic(steps: Arithmetic, current: int) -> Iterator[str]:
    if steps.ratio is not None:
        ratio = f"{steps.ratio:.3g}" if steps.ratio < 100 else f"{steps.ratio:.0f}"
        yield f"  ratio of value and target with {_counted(current, 'replica')}: {ratio}"
    yield f"  by the metric and the tolerance: {steps.asked}"
    for before, after, what in (
        (steps.asked, steps.by_policies, "the policies of one period"),
        (steps.by_policies, steps.by_range, "minReplicas and maxReplicas"),
        (steps.by_range, steps.desired, "the stabilization windows"),
    ):
        if after != before:
            yield f"  {what} make it {after}"
    yield f"  so a controller that has just started desires {steps.desired}"


def _counted(count: int, what: str) -> str:
    return f"{count} {what}{'' if count == 1 else 's'}"


def routes(explain: Explain, replies: Replies) -> APIRouter:
    """For readers of everything, and below the API group for those who may read the lag in a namespace."""
    router = APIRouter()

    async def answer(group: str, namespace: str | None, output: str) -> Response:
        def made() -> Response:
            what = explain(group, namespace)
            if output == "json":
                return json_reply(encoded(document_of(what)))
            content_type = {"content-type": "text/plain; charset=utf-8"}
            return json_reply(text_of(what).encode("utf-8", "backslashreplace"), headers=content_type)

        # A group may have very many partitions.
        return await replies.thread.result(made)

    @router.get("/explain/{group:path}")
    async def for_everything(group: str, output: str = "text") -> Response:
        return await answer(group, None, output)

    @router.get(f"{EXTERNAL.path}/namespaces/{{namespace}}/{LAG}/{{group:path}}")
    async def in_namespace(namespace: str, group: str, output: str = "text") -> Response:
        return await answer(group, namespace, output)

    return router
