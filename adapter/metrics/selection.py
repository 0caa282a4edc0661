"""Selects the part of a cluster's view that a query covers."""

from collections import Counter
from collections.abc import Collection, Sequence, Set
from dataclasses import dataclass, replace
from difflib import get_close_matches
from functools import cache, partial, reduce
from heapq import nlargest
from itertools import chain, takewhile
from operator import and_

import numpy as np

from adapter.columns import Indexes
from adapter.lag.layout import Layout
from adapter.lag.totals import Totals, totals_of
from adapter.metrics.requirement import Requirement
from adapter.metrics.store import ClusterView

MOST_COMPARED = 200


@dataclass(frozen=True, slots=True)
class Selection:
    view: ClusterView
    totals: Totals
    entries: Sequence[int]
    groups: Sequence[str]
    """The matching groups, with or without entries."""
    rows: Indexes | None = None
    """Those of `totals`, sorted; None: all."""

    def rows_of(self, entry: int) -> Indexes:
        layout = self.view.layout
        span = layout.pairs[layout.groups[self.totals.group[entry]], layout.topics[self.totals.topic[entry]]]
        if self.rows is None:
            return np.arange(span.start, span.stop)
        return self.rows[slice(*np.searchsorted(self.rows, (span.start, span.stop)))]


def fits(key: str, value: str | None, asked: Sequence[Requirement]) -> bool:
    return all(requirement.matches(value) for requirement in asked if requirement.key == key)


def selection_of(view: ClusterView, asked: Sequence[Requirement], *, stale_too: bool) -> Selection:
    """Selects per group and topic; per partition only if the query is about partitions.

    What is read only because an HPA names it is selected only by a query that names the group, alone, and topics."""
    labels = {"cluster", "group", "topic", "partition"}
    if not all(requirement.matches(None) for requirement in asked if requirement.key not in labels):
        return Selection(view, view.totals, (), ())
    is_exact = len(named(asked, "group") or ()) == 1 and named(asked, "topic") is not None
    fitting = [group for group in _candidates(view, asked) if fits("group", group, asked)]
    groups = [group for group in fitting if is_exact or not view.is_only_asked(group)]
    totals, rows = view.totals, None
    if any(requirement.key == "partition" for requirement in asked):
        rows = _rows(view, groups, asked)
        totals = totals_of(view.snapshot, view.treatment, view.values, rows)
    entries = list(chain.from_iterable(totals.spans.get(view.layout.codes[group], ()) for group in groups))
    entries = [entry for entry in entries if stale_too or not totals.is_stale[entry]]
    topics, of_entry = view.layout.topics, totals.topic
    is_asked, was_committed = totals.is_asked, totals.was_committed
    # A topic that the reader may not see is not shown by its size either.
    entries = [
        e for e in entries if not is_asked[e] or (is_exact and (was_committed[e] or topics[of_entry[e]] in view.topics))
    ]
    # Many groups may read the same topics, so each name is matched once.
    topic_fits = cache(lambda code: fits("topic", topics[code], asked))
    entries = [entry for entry in entries if topic_fits(of_entry[entry])]
    return Selection(view, totals, entries, groups, rows)


def effort_of(view: ClusterView, asked: Sequence[Requirement]) -> int:
    """Returns an upper bound of the cost of `selection_of`: one step per group and topic to compare, and one per ten
    partitions.

    A name that does not exist costs as much as everything, because the error lists similar names."""
    repeats = Counter(requirement.key for requirement in asked)
    return _entries_to_read(view, asked) * max(repeats.values(), default=1)


def _entries_to_read(view: ClusterView, asked: Sequence[Requirement]) -> int:
    layout, totals, keys = view.layout, view.totals, {requirement.key for requirement in asked}
    everything = len(layout.groups) + len(totals)
    if named(asked, "group") is None:
        return everything + (len(layout) // 10 if "partition" in keys else 0)
    groups = _candidates(view, asked)
    names_no_topic = any(one.key == "topic" and one.only and not one.only & view.topics for one in asked)
    if not groups or names_no_topic:
        return everything
    effort = len(groups) + sum(len(totals.spans.get(layout.codes[group], ())) for group in groups)
    spans = [layout.spans[group] for group in groups] if "partition" in keys else []
    return effort + int(sum(span.stop - span.start for span in spans)) // 10


def where_known(chosen: Sequence[Selection]) -> list[Selection]:
    """A rule names no cluster: if one of the selected clusters knows the group, it is not assumed in the others.

    Nor does the selector of an HPA: a topic counts where the group has commits for it, otherwise where it once had."""
    known = {group for one in chosen for group in one.groups if group not in one.view.assumed}
    chosen = [
        without_groups(one, {group for group in one.view.assumed & known if not one.view.is_only_asked(group)})
        for one in chosen
    ]
    if len(chosen) < 2 or not any(one.totals.is_asked[entry] for one in chosen for entry in one.entries):
        return chosen
    best: dict[str, tuple[bool, bool]] = {}
    for one in chosen:
        for entry in one.entries:
            topic, claim = _claim(one, entry)
            best[topic] = min(claim, best.get(topic, claim))
    return [replace(one, entries=[e for e in one.entries if _claim(one, e) in best.items()]) for one in chosen]


def _claim(chosen: Selection, entry: int) -> tuple[str, tuple[bool, bool]]:
    """Returns the entry's topic, and what makes it count there, the stronger the smaller."""
    totals = chosen.totals
    is_asked = totals.is_asked[entry]
    return chosen.view.layout.topics[totals.topic[entry]], (is_asked, is_asked and not totals.was_committed[entry])


def without_groups(chosen: Selection, groups: Set[str]) -> Selection:
    names, of_entry = chosen.view.layout.groups, chosen.totals.group
    kept = [entry for entry in chosen.entries if names[of_entry[entry]] not in groups]
    return replace(chosen, entries=kept, groups=[group for group in chosen.groups if group not in groups])


def _candidates(view: ClusterView, asked: Sequence[Requirement]) -> Sequence[str]:
    groups = named(asked, "group")
    if groups is None:
        return list(view.codes)
    return sorted(group for group in groups if group in view.codes)


def _likeliest(name: str, known: Collection[str]) -> list[str]:
    """Returns the names to compare letter by letter, which takes long: those that begin or end most like this one."""
    if len(known) <= MOST_COMPARED:
        return list(known)
    half = len(name) // 2
    # A mistake leaves one half of the name as it is.
    alike = [each for each in known if each.startswith(name[:half]) or each.endswith(name[half:])]
    return nlargest(MOST_COMPARED, alike, key=partial(_ends_in_common, name))


def _ends_in_common(one: str, other: str) -> int:
    """Returns the number of letters that both begin with, and of those that both end with."""
    beginnings, ends = zip(one, other, strict=False), zip(reversed(one), reversed(other), strict=False)
    return sum(len(list(takewhile(lambda pair: pair[0] == pair[1], pairs))) for pairs in (beginnings, ends))


def named(asked: Sequence[Requirement], key: str) -> frozenset[str] | None:
    """Returns the only values of a label that can match; None if the query names none."""
    values = [one.only for one in asked if one.key == key and one.only is not None]
    return reduce(and_, values) if values else None


def _rows(view: ClusterView, groups: Sequence[str], asked: Sequence[Requirement]) -> Indexes:
    spans = [view.layout.spans[group] for group in groups]
    rows = np.concatenate([np.empty(0, dtype=np.intp), *(np.arange(span.start, span.stop) for span in spans)])
    return of_partitions(view.layout, rows, asked)


def of_partitions(layout: Layout, rows: Indexes, asked: Sequence[Requirement]) -> Indexes:
    """Returns the rows whose partitions a query covers."""
    about_partitions = [requirement for requirement in asked if requirement.key == "partition"]
    numbers, where = np.unique(layout.partition[rows], return_inverse=True)
    names = map(str, numbers.tolist())
    is_wanted = np.array([all(one.matches(name) for one in about_partitions) for name in names], dtype=bool)
    fitting: Indexes = rows[is_wanted[where]]
    return fitting


def hint(name: str, known: Collection[str], introduction: str) -> str:
    near = get_close_matches(name, _likeliest(name, known), n=3) or sorted(known)[:3]
    return f"; {introduction} {', '.join(near)}{', …' if len(known) > len(near) else ''}" if near else ""
