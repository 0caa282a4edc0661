"""Pure: the metrics that are served, and how each folds the partitions that a label selector chooses.

A selector's requirements come in, values with their labels and the time of their oldest part go out. The HPA adds all
items of a reply, so whatever must not be added is one item.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from difflib import get_close_matches
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from adapter.errors import MetricUnknown, NothingChosen, ValueUnavailable
from adapter.settings import SERVED_NAMES, MetricKind, NamedMetric, Settings
from adapter.snapshot import Flags, State
from adapter.store import ClusterView

Rows = NDArray[np.intp]

LISTED = frozenset({MetricKind.LAG, MetricKind.UNCOMMITTED_PARTITIONS})
"""Without a selector these are listings: one bad group does not hide the others."""
IN_WORDS = {
    MetricKind.LAG: "lag",
    MetricKind.RECORDS_LAG_MAX: "largest lag",
    MetricKind.LEAD_MIN: "lead",
    MetricKind.UNCOMMITTED_PARTITIONS: "number of uncommitted partitions",
}


class Requirement(Protocol):
    """One requirement of a label selector; the selector's grammar is not our business."""

    @property
    def key(self) -> str: ...
    @property
    def only(self) -> frozenset[str] | None:
        """The only values that match, where the requirement names them."""

    def matches(self, value: str | None) -> bool:
        """Whether the label's value fits; None: the label is absent."""


class Clock(Protocol):
    def monotonic(self) -> float: ...
    def time(self) -> float: ...


class Views(Protocol):
    """Where the newest views come from."""

    @property
    def version(self) -> int: ...
    @property
    def views(self) -> tuple[ClusterView, ...]: ...


@dataclass(frozen=True, slots=True)
class MetricValue:
    labels: Mapping[str, str]
    value: int
    measured_at: float
    """When its oldest part was received, in seconds since the epoch."""


@dataclass(frozen=True, slots=True)
class Reading:
    """An answer, and how long it may be given again: while the version stands and the clock is before `valid_until`."""

    metric: str
    values: tuple[MetricValue, ...]
    warnings: tuple[str, ...]
    version: int
    valid_until: float
    """In seconds of the monotonic clock: when its oldest part becomes too old."""


@dataclass(frozen=True, slots=True)
class Exactly:
    """A requirement of our own: a named metric's group, cluster and topics."""

    key: str
    only: frozenset[str]

    def matches(self, value: str | None) -> bool:
        return value in self.only


@dataclass(frozen=True, slots=True)
class Chosen:
    """The rows of one cluster that a question is about."""

    view: ClusterView
    rows: Rows
    groups: tuple[str, ...]
    """The groups that fit, with or without rows."""


@dataclass(frozen=True, slots=True)
class Served:
    """A name under which something is served."""

    name: str
    kind: MetricKind
    own: NamedMetric | None = None

    def requirements(self) -> tuple[Requirement, ...]:
        if self.own is None:
            return ()
        named = {"cluster": (self.own.cluster,), "group": (self.own.group,), "topic": self.own.topics or (None,)}
        return tuple(
            Exactly(key, frozenset(value for value in values if value is not None))
            for key, values in named.items()
            if None not in values
        )

    @property
    def gives_topics(self) -> bool:
        return self.own is not None and self.own.topics is not None


class Metrics:
    """Answers questions about the newest views, from memory."""

    def __init__(self, settings: Settings, store: Views, clock: Clock) -> None:
        own = [Served(metric.name, metric.value, metric) for metric in settings.metrics]
        self._served = [*(Served(name, kind) for name, kind in SERVED_NAMES.items()), *own]
        self._by_name = {served.name.lower(): served for served in self._served}
        self._max_age = settings.collection.max_age
        self._several_clusters = len(settings.clusters) > 1
        self._store = store
        self._clock = clock

    @property
    def names(self) -> tuple[str, ...]:
        """What discovery lists: fixed while the process lives."""
        return tuple(served.name for served in self._served)

    @property
    def version(self) -> int:
        return self._store.version

    def read(self, metric: str, requirements: Sequence[Requirement]) -> Reading:
        """The answer to a question; raises MetricUnknown, NothingChosen or ValueUnavailable."""
        served = self._by_name.get(metric.lower())
        if served is None:
            raise MetricUnknown(self._unknown(metric))
        version, views = self._store.version, self._store.views
        asked = (*served.requirements(), *requirements)
        if not asked and served.kind in LISTED:
            return self._listing(served, views, version)
        chosen = self._choose(served, views, asked)
        return self._answer(served, chosen, version, warnings=())

    # -- choosing --------------------------------------------------------------------------------

    def _choose(self, served: Served, views: Sequence[ClusterView], asked: Sequence[Requirement]) -> list[Chosen]:
        fitting = [view for view in views if _fits("cluster", view.cluster, asked)]
        for view in fitting:
            if view.silence is not None:
                raise ValueUnavailable(f"groups of cluster {view.cluster} are not known yet: {view.silence}")
        chosen = [_chosen(view, asked, stale_too=served.gives_topics) for view in fitting]
        for one in chosen:
            self._refuse_missing_topics(one, served, asked)
        if not any(len(one.rows) for one in chosen):
            self._refuse_unread(served, chosen)
            raise NothingChosen(self._nothing(served, views, asked))
        self._refuse_unread(served, chosen)
        return chosen

    def _refuse_missing_topics(self, chosen: Chosen, served: Served, asked: Sequence[Requirement]) -> None:
        for group in chosen.groups:
            given = served.own.topics or () if served.own else ()
            missing = chosen.view.missing.get(group, ())
            # A named metric without topics of its own answers for what the group's rule gives.
            counted = [topic for topic in missing if topic in given] if given else missing
            gone = [topic for topic in counted if _fits("topic", topic, asked)]
            if gone:
                raise NothingChosen(
                    f"topic {gone[0]} of group {group} does not exist in cluster {chosen.view.cluster}"
                    f"{_hint(gone[0], chosen.view.topics, 'its topics are')}"
                )

    def _refuse_unread(self, served: Served, chosen: Sequence[Chosen]) -> None:
        for one in chosen:
            for group in one.groups:
                if group in one.view.unread:
                    raise ValueUnavailable(self._not_known(served, one.view, group, one.view.unread[group]))

    def _unknown(self, metric: str) -> str:
        return f"no metric {metric[:80]!r} is served here; served are {', '.join(self.names)}"

    def _nothing(self, served: Served, views: Sequence[ClusterView], asked: Sequence[Requirement]) -> str:
        values = {"cluster": [view.cluster for view in views]}
        values["group"] = [group for view in views for group in view.layout.groups]
        values["topic"] = sorted({topic for view in views for topic in view.topics})
        for requirement in asked:
            known = values.get(requirement.key)
            if known is not None and requirement.only and not requirement.only & set(known):
                name = min(requirement.only)
                return (
                    f"no {requirement.key} {name[:249]!r} is known{_hint(name, known, f'known {requirement.key}s are')}"
                )
        if not values["group"]:
            return "no consumer group is known"
        groups = [r for r in asked if r.key == "group" and r.only]
        whose = f"group {min(groups[0].only or ())!r} has" if groups else "no group has"
        what = "nothing" if groups else "anything"
        why = " (a partition needs a commit, or a rule that names group and topics)" if served.kind in LISTED else ""
        return f"{whose} {what} to fold for {served.name} that the selector chooses{why}"

    # -- folding ---------------------------------------------------------------------------------

    def _answer(self, served: Served, chosen: Sequence[Chosen], version: int, warnings: tuple[str, ...]) -> Reading:
        now = self._clock.monotonic()
        counted = [self._counted(served.kind, one) for one in chosen]
        for one in counted:
            self._refuse_bad_rows(served, one, now)
        if not any(len(one.rows) for one in counted):
            raise NothingChosen(f"no chosen partition has a commit, so there is no {IN_WORDS[served.kind]} to tell")
        oldest = min(float(one.view.snapshot.received[one.rows].min()) for one in counted if len(one.rows))
        values = tuple(self._fold(served.kind, counted, self._clock.time() - now))
        return Reading(served.name, values, warnings, version, valid_until=oldest + self._max_age)

    def _counted(self, kind: MetricKind, chosen: Chosen) -> Chosen:
        """`lead_min` leaves rows without commit out, once it is known that they have none."""
        if kind is not MetricKind.LEAD_MIN:
            return chosen
        known, has_commit = chosen.view.values.is_known[chosen.rows], chosen.view.values.has_commit[chosen.rows]
        return Chosen(chosen.view, chosen.rows[~known | has_commit], chosen.groups)

    def _refuse_bad_rows(self, served: Served, chosen: Chosen, now: float) -> None:
        bad = self._bad(chosen, now)
        if not len(bad):
            return
        received = chosen.view.snapshot.received[bad]
        row = int(bad[int(received.argmin())])
        raise ValueUnavailable(self._why(served, chosen.view, row, now))

    def _bad(self, chosen: Chosen, now: float) -> Rows:
        """The rows that cannot be told: never known, contradictory, or too old."""
        snapshot, values = chosen.view.snapshot, chosen.view.values
        good = values.is_known[chosen.rows] & (now - snapshot.received[chosen.rows] <= self._max_age)
        return chosen.rows[~good]

    def _why(self, served: Served, view: ClusterView, row: int, now: float) -> str:
        snapshot = view.snapshot
        group, partition = view.layout.groups[view.layout.group[row]], view.layout.name(row)
        if snapshot.state[row] == State.AHEAD:
            reason = f"committed {snapshot.committed[row]} is beyond the log end {snapshot.log_end[row]}"
            return self._not_known(served, view, group, f"{partition}: {reason}")
        reason = snapshot.cause_of(row).text or "no cycle has ended since"
        if not view.values.is_known[row]:
            return self._not_known(served, view, group, f"{partition}: {reason}")
        age = now - float(snapshot.received[row])
        return (
            f"{self._whose(served, view, group)} is {age:.0f} s old, limit {self._max_age:g} s: {partition}: {reason}"
        )

    def _not_known(self, served: Served, view: ClusterView, group: str, reason: str) -> str:
        return f"{self._whose(served, view, group)} is not known: {reason}"

    def _whose(self, served: Served, view: ClusterView, group: str) -> str:
        where = f" in cluster {view.cluster}" if self._several_clusters else ""
        return f"{IN_WORDS[served.kind]} of group {group}{where}"

    def _fold(self, kind: MetricKind, counted: Sequence[Chosen], to_epoch: float) -> Iterator[MetricValue]:
        filled = [one for one in counted if len(one.rows)]
        if kind is MetricKind.LAG:
            yield from (item for one in filled for item in _sums(one, to_epoch))
        elif kind is MetricKind.UNCOMMITTED_PARTITIONS:
            yield from (item for one in filled for item in _uncommitted(one, to_epoch))
        else:
            yield _extreme(kind, filled, to_epoch)

    # -- listings --------------------------------------------------------------------------------

    def _listing(self, served: Served, views: Sequence[ClusterView], version: int) -> Reading:
        """All groups of all clusters; what has no number is left out and named in a warning."""
        now = self._clock.monotonic()
        warnings: list[str] = []
        told: list[Chosen] = []
        for view in views:
            everything = _chosen(view, (), stale_too=False)
            good, left_out = self._without_bad_groups(served, everything, now)
            told.append(good)
            warnings.extend(left_out)
            if view.silence is not None:
                warnings.append(f"groups of cluster {view.cluster} may be missing: {view.silence}")
        if any(len(one.rows) for one in told):
            return self._answer(served, told, version, tuple(warnings))
        if warnings:
            raise ValueUnavailable("; ".join(warnings[:3]))
        raise NothingChosen(self._nothing(served, views, ()))

    def _without_bad_groups(self, served: Served, chosen: Chosen, now: float) -> tuple[Chosen, list[str]]:
        view = chosen.view
        bad = self._bad(chosen, now)
        codes, first = np.unique(view.layout.group[bad], return_index=True)
        problems = [self._why(served, view, int(bad[row]), now) for row in first]
        problems += [self._not_known(served, view, group, why) for group, why in view.unread.items()]
        problems += [f"group {group} lacks topic {topics[0]}" for group, topics in view.missing.items()]
        hidden = [
            code for code, group in enumerate(view.layout.groups) if group in view.unread or group in view.missing
        ]
        kept = ~np.isin(view.layout.group[chosen.rows], np.concatenate([codes, np.array(hidden, dtype=np.int32)]))
        return Chosen(view, chosen.rows[kept], chosen.groups), problems


def _fits(key: str, value: str | None, asked: Sequence[Requirement]) -> bool:
    return all(requirement.matches(value) for requirement in asked if requirement.key == key)


def _chosen(view: ClusterView, asked: Sequence[Requirement], *, stale_too: bool) -> Chosen:
    """The rows whose labels fit. Work is per group and per name, not per partition, as far as the question allows."""
    layout = view.layout
    labels = {"cluster", "group", "topic", "partition"}
    if not all(requirement.matches(None) for requirement in asked if requirement.key not in labels):
        return Chosen(view, np.empty(0, dtype=np.intp), ())
    groups = _groups(view, asked)
    if len(groups) == len(layout.groups):
        rows = np.arange(len(layout))
    else:
        spans = [layout.spans[group] for group in groups]
        rows = np.concatenate([np.empty(0, dtype=np.intp), *(np.arange(span.start, span.stop) for span in spans)])
    counts = np.ones(len(rows), dtype=bool)
    if not stale_too:
        counts &= ~(view.treatment.is_outside[rows] | view.treatment.is_abandoned[rows])
    for key, column, names in (("topic", layout.topic, layout.topics), ("partition", layout.partition, None)):
        if any(requirement.key == key for requirement in asked):
            counts &= _fitting(key, column[rows], names, asked)
    return Chosen(view, rows[counts], groups)


def _groups(view: ClusterView, asked: Sequence[Requirement]) -> tuple[str, ...]:
    named = [requirement.only for requirement in asked if requirement.key == "group" and requirement.only is not None]
    candidates = view.layout.groups
    if named:
        candidates = tuple(sorted(group for group in frozenset.intersection(*named) if group in view.layout.spans))
    return tuple(group for group in candidates if _fits("group", group, asked))


def _fitting(key: str, column: NDArray[np.int32], names: tuple[str, ...] | None, asked: Sequence[Requirement]) -> Flags:
    codes, where = np.unique(column, return_inverse=True)
    texts = (names[code] if names is not None else str(code) for code in codes)
    return np.array([_fits(key, text, asked) for text in texts], dtype=bool)[where]


def _sums(chosen: Chosen, to_epoch: float) -> Iterator[MetricValue]:
    layout, rows = chosen.view.layout, chosen.rows
    starts = np.flatnonzero(np.diff(layout.group[rows], prepend=-1) | np.diff(layout.topic[rows], prepend=-1))
    sums = np.add.reduceat(chosen.view.values.lag[rows], starts)
    oldest = np.minimum.reduceat(chosen.view.snapshot.received[rows], starts)
    for row, lag, received in zip(rows[starts], sums, oldest, strict=True):
        labels = {**_group_labels(chosen.view, int(row)), "topic": layout.topics[layout.topic[row]]}
        yield MetricValue(labels, int(lag), float(received) + to_epoch)


def _uncommitted(chosen: Chosen, to_epoch: float) -> Iterator[MetricValue]:
    layout, rows = chosen.view.layout, chosen.rows
    starts = np.flatnonzero(np.diff(layout.group[rows], prepend=-1))
    counts = np.add.reduceat(~chosen.view.values.has_commit[rows], starts, dtype=np.int64)
    oldest = np.minimum.reduceat(chosen.view.snapshot.received[rows], starts)
    for row, count, received in zip(rows[starts], counts, oldest, strict=True):
        yield MetricValue(_group_labels(chosen.view, int(row)), int(count), float(received) + to_epoch)


def _extreme(kind: MetricKind, filled: Sequence[Chosen], to_epoch: float) -> MetricValue:
    """One item for everything chosen, with the labels that all of it shares."""
    if kind is MetricKind.RECORDS_LAG_MAX:
        value = max(int(one.view.values.lag[one.rows].max()) for one in filled)
    else:
        value = min(int(one.view.values.lead[one.rows].min()) for one in filled)
    oldest = min(float(one.view.snapshot.received[one.rows].min()) for one in filled)
    return MetricValue(_shared_labels(filled), value, oldest + to_epoch)


def _shared_labels(filled: Sequence[Chosen]) -> dict[str, str]:
    if len(filled) > 1:
        return {}
    layout, rows = filled[0].view.layout, filled[0].rows
    labels = {"cluster": filled[0].view.cluster}
    if layout.group[rows[0]] == layout.group[rows[-1]]:
        labels["group"] = layout.groups[layout.group[rows[0]]]
    if np.all(layout.topic[rows] == layout.topic[rows[0]]):
        labels["topic"] = layout.topics[layout.topic[rows[0]]]
    return labels


def _group_labels(view: ClusterView, row: int) -> dict[str, str]:
    return {"cluster": view.cluster, "group": view.layout.groups[view.layout.group[row]]}


def _hint(name: str, known: Sequence[str] | frozenset[str], introduction: str) -> str:
    """A few names like the one that was not found; never a list of thousands."""
    near = get_close_matches(name, list(known)[:200], n=3) or sorted(known)[:3]
    return f"; {introduction} {', '.join(near)}{', …' if len(known) > len(near) else ''}" if near else ""
