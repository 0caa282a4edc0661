"""Decides which rows a cycle needs and how the settings treat them.

A group's rows are all partitions of the topics with commits, and of those that a rule, a named metric or the selector
of an HPA names for it."""

from collections.abc import Callable, Collection, Container, Iterable, Mapping
from dataclasses import dataclass, fields, replace

import numpy as np

from adapter.columns import NEVER
from adapter.lag.layout import Layout
from adapter.lag.snapshot import Snapshot
from adapter.lag.values import Treatment
from adapter.settings.models import Isolation, Rule, Settings

CYCLES_BEFORE_DROPPED = 3
"""Consecutive responses that must lack a topic before its commits count as gone; one proves nothing."""

NO_TOPICS: frozenset[str] = frozenset()
NO_RULE = Rule(groups=".*")
"""For a group without one."""

MayName = Callable[[str, str], bool]
Absences = Mapping[str, int]
"""Topic -> the number of consecutive responses without the group's commits for it."""
Asked = Mapping[str, tuple[str, ...]]
"""Group -> the topics that the selectors of HPAs name for it, sorted."""


@dataclass(frozen=True, slots=True)
class AskedTopics:
    """Topics of a group that the selector of one HPA names."""

    namespace: str
    """Of the HPA: rules and tenancy decide what it may read."""
    cluster: str | None
    """None: every cluster."""
    group: str
    topics: tuple[str, ...]
    """Sorted. A set takes 216 bytes, and there may be thousands."""
    of_members: bool = False
    """Whether the values of the group's members are asked for."""
    of_partitions: bool = False
    """Whether the number of partitions matters, and not only their values."""


def topics_for(cluster: str, asked: Iterable[AskedTopics], may_name: MayName) -> dict[str, tuple[str, ...]]:
    """Returns group -> the topics that HPAs ask for in this cluster, where `may_name(group, namespace)`."""
    topics: dict[str, tuple[str, ...]] = {}
    for each in asked:
        if each.cluster in {None, cluster} and may_name(each.group, each.namespace):
            others = topics.get(each.group)
            topics[each.group] = tuple(sorted({*others, *each.topics})) if others else each.topics
    return topics


def groups_of_members(cluster: str, asked: Iterable[AskedTopics], may_name: MayName) -> frozenset[str]:
    """Returns the groups for whose members HPAs ask in this cluster, where `may_name(group, namespace)`."""
    return _groups(cluster, (each for each in asked if each.of_members), may_name)


def groups_of_partitions(cluster: str, asked: Iterable[AskedTopics], may_name: MayName) -> frozenset[str]:
    """Returns the groups whose number of partitions HPAs follow in this cluster, where `may_name(group, namespace)`."""
    return _groups(cluster, (each for each in asked if each.of_partitions), may_name)


def _groups(cluster: str, asked: Iterable[AskedTopics], may_name: MayName) -> frozenset[str]:
    here = (each for each in asked if each.cluster in {None, cluster})
    return frozenset(each.group for each in here if may_name(each.group, each.namespace))


class Watching:
    """The settings of one cluster: the rule of each group, and the topics listed for it."""

    def __init__(self, settings: Settings, cluster: str) -> None:
        self._settings = settings
        self.cluster = cluster
        self.interval = settings.collection.interval
        self.max_age = settings.collection.max_age
        self.watches_topic = settings.collection.topics.watches
        self._given: dict[str, Given] = {}
        self._is_only_cluster = len(settings.clusters) == 1
        only = settings.clusters[0].name if self._is_only_cluster else None
        self.by_metrics: dict[str, frozenset[str]] = {}
        for metric in settings.metrics:
            if (metric.cluster or only) == cluster:
                self.by_metrics[metric.group] = self.by_metrics.get(metric.group, NO_TOPICS).union(metric.topics or ())
        self._judged = {each.group for each in settings.metrics if each.judges_movement}
        self.judges_movement = bool(self._judged) or any(rule.judges_movement for rule in settings.rules)
        """Whether it matters for any group whether its commits move."""
        listed = (rule.group for rule in settings.rules if rule.group is not None and rule.topics is not None)
        self._listed_groups = frozenset(self.by_metrics).union(listed)
        self.named_groups = self._listed_groups
        """Groups that are read whether Kafka lists them or not."""
        self._asked: Asked = {}
        self._wanted: Asked = {}
        """What of it the settings leave to selectors."""
        self.asked: Mapping[str, frozenset[str]] = {}
        """Group -> the topics that the selectors of HPAs name for it, of those that exist."""

    def ask(self, asked: Asked, is_known: Callable[[str], bool], topics: Container[str]) -> bool:
        """Returns whether this changes what is read: groups that are known, and existing `topics`."""
        if asked is not self._asked:
            self._asked = asked
            groups = filter(self._is_left_to_selectors, asked)
            self._wanted = {group: tuple(filter(self.watches_topic, asked[group])) for group in groups}
        readable = {
            group: existing
            for group, names in self._wanted.items()
            if is_known(group) and (existing := frozenset(name for name in names if name in topics))
        }
        if readable == self.asked:
            return False
        self.asked, self.named_groups = readable, self._listed_groups | readable.keys()
        return True

    def _is_left_to_selectors(self, group: str) -> bool:
        """A rule that names the group and its topics needs no selector; other topics are outside of a rule's."""
        rule = self._settings.rule_for(group) or NO_RULE
        return self._settings.collection.groups.watches(group) and (rule.topics is None or rule.group is None)

    def remembers(self, group: str) -> bool:
        """Whether the settings or an HPA name the group, so that it is remembered when Kafka forgets it."""
        return group in self._asked or group in self.by_metrics or self.given(group).rule.group is not None

    def watches_group(self, group: str) -> bool:
        return group in self.named_groups or self._settings.collection.groups.watches(group)

    def is_judged(self, group: str) -> bool:
        """Whether it matters whether the group's commits move."""
        return group in self._judged or self.given(group).rule.judges_movement

    def counts_from_start(self, group: str, *, is_named: bool) -> bool:
        """Whether the whole log counts without a commit. `is_named`: a selector names the topic with the group."""
        return self.given(group).rule.counts_from_start(is_named=is_named)

    def isolation_of(self, group: str) -> Isolation:
        return self.given(group).rule.isolation

    def forget_others(self, groups: Collection[str]) -> None:
        """Drop what is cached for deleted groups; otherwise the cache grows without bound."""
        self._given = {group: self._given[group] for group in groups if group in self._given}

    def required_topics(self, group: str, *, is_known: bool) -> frozenset[str]:
        """Topics without which the group has no value. A rule names no cluster: it applies wherever the group is."""
        if self._is_only_cluster or is_known:
            return self.given(group).topics_by_name
        return self.by_metrics.get(group, NO_TOPICS)

    def given(self, group: str) -> "Given":
        """Cached: a cycle needs it for every group, and the settings may have thousands of rules."""
        given = self._given.get(group)
        if given is None:
            rule = self._settings.rule_for(group) or NO_RULE
            of_rule = rule.topic_names
            by_name = self.by_metrics.get(group, NO_TOPICS) | (NO_TOPICS if rule.group is None else of_rule)
            # The groups of a rule share its topics.
            given = self._given[group] = Given(rule, by_name, by_name | of_rule if by_name else of_rule)
        return given


@dataclass(frozen=True, slots=True)
class Given:
    """What the settings say of a group."""

    rule: Rule
    topics_by_name: frozenset[str]
    """Topics that count even if Kafka does not know the group, and that are never stale."""
    topics: frozenset[str]
    """These, and those of a matching rule with a regular expression."""


def still_committed(
    before: Absences, seen: Collection[str], forgotten: Collection[str] = (), *, can_vanish: bool
) -> Absences:
    """Returns the group's committed topics after a response that contains `seen`.

    `can_vanish` means that the group is listed, so its responses are complete. `forgotten` topics are kept unchanged
    although they are not in `seen`."""
    if forgotten:
        return before if before.keys() >= set(seen) else {**dict.fromkeys(seen, 0), **before}
    if len(seen) == len(before) and all(topic in before and not before[topic] for topic in seen):
        return before
    seen = frozenset(seen)
    absent = {topic: count + can_vanish for topic, count in before.items() if topic not in seen}
    kept = {topic: max(count, 1) for topic, count in absent.items() if count < CYCLES_BEFORE_DROPPED}
    return {**dict.fromkeys(seen, 0), **kept}


def treatment_of(
    layout: Layout,
    watching: Watching,
    members_read: Mapping[str, frozenset[str]],
    only_asked: Collection[tuple[str, str]] = (),
) -> Treatment:
    """Returns how the rules treat each row; `members_read` maps groups to the topics that their members read.

    `only_asked` has groups and topics with rows only because the selectors of HPAs name them."""
    treatment = Treatment(*(np.zeros(len(layout), dtype=bool) for _ in fields(Treatment)))
    for (group, topic), rows in layout.pairs.items():
        given = watching.given(group)
        is_asked = (group, topic) in only_asked
        treatment.counts_from_start[rows] = watching.counts_from_start(group, is_named=False)
        treatment.counts_before_first[rows] = is_asked and watching.counts_from_start(group, is_named=True)
        treatment.is_asked[rows] = is_asked
        treatment.is_outside[rows] = given.rule.topics is not None and topic not in given.rule.topic_names
        is_read = topic in members_read.get(group, (topic,)) or topic in given.topics_by_name
        treatment.is_abandoned[rows] = not is_read
    return treatment


def updated_treatment(
    treatment: Treatment, snapshot: Snapshot, described_at: Mapping[str, float], in_doubt: Collection[str]
) -> Treatment:
    """Returns the treatment of this cycle: a topic whose commits moved after its group's description is being read.

    `described_at` has the time of each description; the descriptions of groups `in_doubt` may be wrong."""
    rows, layout = np.flatnonzero(treatment.is_abandoned), snapshot.layout
    if not len(rows):
        return treatment
    described = np.array([described_at.get(group, NEVER) for group in layout.groups])
    has_moved = snapshot.moved_at[rows] > described[layout.group[rows]]
    unread = rows[~np.isin(layout.pair[rows], layout.pair[rows[has_moved]])]
    is_doubtful = np.array([group in in_doubt for group in layout.groups], dtype=bool)[layout.group[unread]]
    is_abandoned, is_in_doubt = np.zeros((2, len(layout)), dtype=bool)
    is_abandoned[unread[~is_doubtful]] = is_in_doubt[unread[is_doubtful]] = True
    return replace(treatment, is_abandoned=is_abandoned, is_in_doubt=is_in_doubt)
