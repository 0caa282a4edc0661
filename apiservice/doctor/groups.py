"""Decides what is wrong with the groups and topics that settings and HPAs name, by what a read of their lag returns."""

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from adapter.errors import some_of
from adapter.lag.rules import AskedTopics
from adapter.metrics.problems import Problem, Reason, Refused, is_hidden
from adapter.metrics.query import LAG, Metrics
from adapter.metrics.requirement import Operator, Requirement
from adapter.metrics.store import ClusterView
from adapter.overview.lines import Attention, GroupLine, lines_of
from adapter.settings.models import Settings
from apiservice.doctor import codes
from apiservice.doctor.check import Check, Code, Outcome, chained, judged, passed, skipped, warned

_CHAIN = (codes.RIGHTS, codes.GROUPS, codes.TOPICS, codes.LAG)
_CODES = {
    Reason.TOPIC_HIDDEN: codes.RIGHTS,
    Reason.CLUSTER_UNKNOWN: codes.GROUPS,
    Reason.GROUP_UNKNOWN: codes.GROUPS,
    Reason.TOPIC_UNKNOWN: codes.TOPICS,
    Reason.TOPIC_MISSING: codes.TOPICS,
}
_UNREAD = {
    Attention.NO_MEMBERS: "nobody reads them",
    Attention.STUCK: "no commit moves, although the group has members",
}


@dataclass(frozen=True, slots=True)
class NamedGroup:
    cluster: str | None
    """None: any cluster."""
    group: str
    topics: tuple[str, ...]
    origin: str
    """Where it is named, such as `rules[0]`."""

    @property
    def subject(self) -> str:
        return f"group {self.group}, {self.origin}"

    @property
    def selector(self) -> Sequence[Requirement]:
        cluster = () if self.cluster is None else (self.cluster,)
        labels = {"cluster": cluster, "group": (self.group,), "topic": self.topics}
        return [Requirement(key, Operator.IN, frozenset(values)) for key, values in labels.items() if values]


def named_in(settings: Settings, asked: Mapping[str, Collection[AskedTopics]]) -> list[NamedGroup]:
    """`asked`: HPA -> what it asks for."""
    rules = [(at, rule.group, rule.topics or ()) for at, rule in enumerate(settings.rules) if rule.group is not None]
    return [
        *(NamedGroup(None, group, topics, f"rules[{at}]") for at, group, topics in rules),
        *(
            NamedGroup(each.cluster, each.group, each.topics or (), f"metrics[{at}]")
            for at, each in enumerate(settings.metrics)
        ),
        *(
            NamedGroup(each.cluster, each.group, each.topics, f"HPA {hpa}")
            for hpa, topics in asked.items()
            for each in topics
        ),
    ]


def checks_of(named: Sequence[NamedGroup], metrics: Metrics) -> Iterator[Check]:
    if not named:
        yield from (_any_group(view) for view in metrics.views_for(None))
    for each in named:
        yield from _of_group(each, metrics)
    lines = {(line.cluster, line.group): line for line in lines_of(metrics.known())}
    for each in _once(named):
        for view in (view for view in metrics.views_for(None) if each.cluster in {None, view.cluster}):
            if each.group in view.codes:
                subject = f"group {each.group} in cluster {view.cluster}"
                yield judged(codes.STALE, subject, _abandoned(view, each.group), Outcome.WARNING)
                yield _unread(subject, lines.get((view.cluster, each.group)))


def _once(named: Sequence[NamedGroup]) -> Iterator[NamedGroup]:
    yield from {(each.cluster, each.group): each for each in named}.values()


def _any_group(view: ClusterView) -> Check:
    if view.codes:
        return passed(codes.RIGHTS, f"cluster {view.cluster}", f"{len(view.codes):,} groups can be read")
    text = "no group can be read: there is none, or the login may describe none"
    return warned(codes.RIGHTS, f"cluster {view.cluster}", text)


def _of_group(named: NamedGroup, metrics: Metrics) -> Iterator[Check]:
    try:
        metrics.read(LAG, named.selector)
    except Refused as refusal:
        by_code = {_code_of(problem): problem.text for problem in reversed(refusal.problems)}
        broken = min(by_code, key=_CHAIN.index)
        yield from chained(_CHAIN, named.subject, broken, by_code[broken])
        return
    for check in chained(_CHAIN, named.subject, None, ""):
        is_assumed = any(named.group in view.assumed for view in metrics.views_for(None))
        if check.code is codes.GROUPS and is_assumed:
            yield warned(check.code, named.subject, "Kafka does not know the group yet: all its messages count as lag")
        else:
            yield check


def _code_of(problem: Problem) -> Code:
    if is_hidden(problem.text):
        return codes.RIGHTS
    # A topic that no Metadata has had yet; it counts as missing only after several.
    is_unseen = problem.reason is Reason.NOT_READ_YET and problem.topic and problem.partition is None
    return codes.TOPICS if is_unseen else _CODES.get(problem.reason, codes.LAG)


def _abandoned(view: ClusterView, group: str) -> str:
    layout, span = view.layout, view.layout.spans[group]
    rows = np.arange(span.start, span.stop)
    left = np.unique(layout.topic[rows[view.treatment.is_abandoned[rows]]]).tolist()
    named = some_of([layout.topics[code] for code in left], separator=", ")
    return f"no member reads {named}, so the commits for it do not count" if left else ""


def _unread(subject: str, line: GroupLine | None) -> Check:
    if line is None or line.lag is None:
        return skipped(codes.READ, subject, f"{codes.LAG.name}: its lag is not known")
    why = _UNREAD.get(line.attention)
    return judged(codes.READ, subject, f"{line.lag:,} messages wait, and {why}" if why else "", Outcome.WARNING)
