"""The known values of all groups as Prometheus's text format, in pieces, so that they are never in memory as a whole.

prometheus_client would keep each sample as an object and the whole text beside it."""

from collections import Counter
from collections.abc import Callable, Iterator
from itertools import accumulate, groupby, islice
from typing import NamedTuple

import numpy as np

from adapter.cluster.groups import Phase
from adapter.columns import Indexes, Offsets, Seconds
from adapter.conditions import SERIES, Conditions
from adapter.errors import AdapterError
from adapter.metrics.definitions import DEFINITIONS
from adapter.metrics.query import Known, Metrics
from adapter.metrics.requirement import Operator, Requirement
from adapter.metrics.store import ClusterView
from adapter.overview import figures
from adapter.overview.exposition import LINES_AT_ONCE, Labels, labels_of, lines_of
from adapter.overview.figures import Figure, Part, parts_of
from adapter.settings.models import Level, Series

OMITTED = "kafka_lag_adapter_series_omitted_groups"
CONTENT_TYPE = "text/plain; version=0.0.4; charset=utf-8"


_Samples = tuple[Labels, Seconds]
"""Labels, and the value of each."""


class Family(NamedTuple):
    name: str
    help: str
    figure: Figure
    level: Level | None = None
    """None: as the settings say."""
    kind: str = "gauge"


_OF_BOTH = (
    Family(
        "kafka_consumergroup_lag_seconds",
        "For how long the oldest waiting message has waited; absent while only a lower bound is known.",
        figures.WAIT,
    ),
    Family(
        "kafka_consumergroup_lag_seconds_lower_bound",
        "For how long the oldest waiting message has waited at least.",
        figures.LEAST_WAIT,
    ),
    Family("kafka_consumergroup_production_rate", "Messages produced per second.", figures.PRODUCTION),
    Family("kafka_consumergroup_consumption_rate", "Messages consumed per second.", figures.CONSUMPTION),
    Family(
        "kafka_consumergroup_seconds_to_data_loss",
        "When retention deletes the first message that was not consumed; absent while nothing can be lost.",
        figures.SECONDS_TO_LOSS,
    ),
    Family(
        "kafka_consumergroup_uncommitted_partitions",
        "Partitions for which the group has no commit.",
        figures.UNCOMMITTED,
    ),
)
FAMILIES = {
    "own": (
        Family("kafka_consumergroup_lag", "Messages that the group has not consumed.", figures.LAG),
        Family("kafka_consumergroup_committed_offset", "Committed offsets, summed up.", figures.COMMITTED),
        Family("kafka_consumergroup_log_end_offset", "Log ends, summed up.", figures.LOG_END),
        Family("kafka_consumergroup_log_start_offset", "Log starts, summed up.", figures.LOG_START),
        *_OF_BOTH,
    ),
    "kafka_exporter": (
        Family("kafka_consumergroup_lag", "Messages that the group has not consumed.", figures.LAG),
        # Gauges whose names end in `_sum` look like parts of a histogram.
        Family("kafka_consumergroup_lag_sum", "The same per topic.", figures.LAG, Level.TOPIC, "untyped"),
        Family("kafka_consumergroup_current_offset", "Committed offsets.", figures.COMMITTED),
        Family(
            "kafka_consumergroup_current_offset_sum", "The same per topic.", figures.COMMITTED, Level.TOPIC, "untyped"
        ),
        *_OF_BOTH,
    ),
}
_GROUP_LABELS = {"own": "group", "kafka_exporter": "consumergroup"}
_OF_TOPICS: tuple[tuple[str, str, Callable[[ClusterView], Offsets], Callable[[Seconds], float] | None], ...] = (
    ("kafka_topic_partition_current_offset", "Log ends.", lambda view: view.snapshot.log_end, None),
    ("kafka_topic_partition_oldest_offset", "Log starts.", lambda view: view.snapshot.log_start, None),
    ("kafka_topic_partitions", "Partitions of the topic.", lambda view: view.snapshot.log_end, len),
)
"""Name, help, column, and what makes a topic's value of its partitions; None: their sum, if not each has its own."""
_SHAPED = tuple(each for each in DEFINITIONS if each.is_shaped)
_BY_GROUP = 3 + len(_SHAPED)
"""Series that each group has at most, whatever the level."""


class GroupSeries:
    """`settings` returns those in force; None: there are no series."""

    def __init__(
        self, metrics: Callable[[], Metrics], settings: Callable[[], Series | None], conditions: Conditions
    ) -> None:
        self._metrics, self._settings, self._conditions = metrics, settings, conditions

    def written(self) -> Iterator[bytes] | None:
        """Returns the pieces of the text, each computed when it is taken; None if there are no series."""
        settings = self._settings()
        if settings is None:
            self._conditions.forget(name=SERIES.name)
            return None
        return self._pieces(self._metrics(), settings)

    def _pieces(self, metrics: Metrics, settings: Series) -> Iterator[bytes]:
        known = metrics.known()
        shown, omitted = _bounded(known, settings)
        self._note(len(shown), omitted, settings)
        yield from _Writer(metrics, known, shown, settings).pieces()
        text = (
            f"# HELP {OMITTED} Groups left out because of series.limit.\n# TYPE {OMITTED} gauge\n{OMITTED} {omitted}\n"
        )
        yield text.encode()

    def _note(self, shown: int, omitted: int, settings: Series) -> None:
        if omitted:
            message = f"{omitted} of {shown + omitted} groups have none: series.limit is {settings.limit}"
            self._conditions.fails(SERIES, "Limited", message)
        else:
            self._conditions.holds(SERIES)


class _Writer:
    """Writes one exposition: all parts of it are of the same views."""

    def __init__(self, metrics: Metrics, known: Known, shown: set[tuple[str, str]], settings: Series) -> None:
        self._metrics, self._known, self._shown = metrics, known, shown
        self._settings = settings
        is_shown = shown.__contains__
        self._parts = list(parts_of(known, lambda cluster, group: is_shown((cluster, group))))
        self._labels: dict[Level, list[Labels]] = {}
        """Of each part's items."""
        self._group_label = _GROUP_LABELS[settings.dialect]

    def pieces(self) -> Iterator[bytes]:
        for family in FAMILIES[self._settings.dialect]:
            yield from _written(family.name, family.help, self._of_items(family), family.kind)
        if self._settings.dialect == "kafka_exporter":
            yield from self._topics()
        yield from _written("kafka_consumergroup_members", "Members of the group.", _columns(self._members()))
        text = "1 while members join, leave or take over partitions, otherwise 0."
        yield from _written("kafka_consumergroup_rebalancing", text, _columns(self._are_rebalancing()))
        text = "1 if the lag of the group is known; 0 if a read of it is refused."
        yield from _written("kafka_consumergroup_known", text, _columns(self._are_known()))
        for definition in _SHAPED:
            name = definition.served_name
            yield from _written(name, f"The {definition.help} by the group's rule.", _columns(self._shaped(name)))

    def _of_items(self, family: Family) -> Iterator[_Samples]:
        level = family.level or self._settings.by
        labels = self._labels.setdefault(level, [])
        for at, part in enumerate(self._parts):
            if at == len(labels):  # one part after the other, so that the thread rests between them
                labels.append(labels_of(self._labels_of(part, level)))
            yield labels[at], family.figure.of(part, level)

    def _labels_of(self, part: Part, level: Level) -> Iterator[str]:
        layout, first = part.view.layout, part.rows[part.starts(level)]
        pairs = zip(layout.group[first].tolist(), layout.topic[first].tolist(), strict=True)
        before, text = None, ""
        for pair, partition in zip(pairs, layout.partition[first].tolist(), strict=True):
            if pair != before:
                before, text = pair, self._of_group(part.view.cluster, layout.groups[pair[0]])
                text = text if level is Level.GROUP else f'{text},topic="{_escaped(layout.topics[pair[1]])}"'
            yield f'{text},partition="{partition}"' if level is Level.PARTITION else text

    def _of_group(self, cluster: str, group: str) -> str:
        return f'{self._of_cluster(cluster)},{self._group_label}="{_escaped(group)}"'

    def _of_cluster(self, cluster: str) -> str:
        return f'{self._settings.cluster_label}="{_escaped(cluster)}"'

    def _members(self) -> Iterator[tuple[str, float]]:
        for one in self._known.chosen:
            cluster = one.view.cluster
            counts = ((group, one.view.members_of(group)) for group in one.groups if (cluster, group) in self._shown)
            yield from ((self._of_group(cluster, group), each.members) for group, each in counts if each is not None)

    def _are_rebalancing(self) -> Iterator[tuple[str, float]]:
        for one in self._known.chosen:
            cluster, statuses = one.view.cluster, one.view.statuses
            for group in (group for group in one.groups if (cluster, group) in self._shown and group in statuses):
                if (phase := statuses[group].phase) is not Phase.UNKNOWN:
                    yield self._of_group(cluster, group), float(phase is Phase.MOVING)

    def _are_known(self) -> Iterator[tuple[str, float]]:
        known = {
            (one.view.cluster, one.view.layout.groups[code])
            for one in self._known.chosen
            for code in {one.totals.group[entry] for entry in one.entries}
        }
        for place in sorted(self._shown & (known | self._known.left_out.keys())):
            yield self._of_group(*place), float(place in known)

    def _shaped(self, name: str) -> Iterator[tuple[str, float]]:
        """Yields the values of the groups whose rule shapes them, as reads return them."""
        for cluster, group in sorted(self._shown.difference(self._known.left_out)):
            if self._metrics.is_shaped(group):
                labels = (("cluster", cluster), ("group", group))
                asked = [Requirement(key, Operator.IN, frozenset({value})) for key, value in labels]
                try:
                    reading = self._metrics.read(name, asked)
                except AdapterError:
                    continue
                yield from ((self._of_group(cluster, group), each.milli / 1000) for each in reading.values)

    def _topics(self) -> Iterator[bytes]:
        """Writes what kafka_exporter shows of topics, of those that a shown group reads."""
        rows: dict[ClusterView, list[Indexes]] = {one.view: [] for one in self._known.chosen}
        for part in self._parts:
            rows[part.view].append(part.rows)
        of_views = [(view, np.concatenate(parts)) for view, parts in rows.items() if parts]
        for name, text, column, fold in _OF_TOPICS:
            samples = (sample for view, rows in of_views for sample in self._of_topics(view, rows, column(view), fold))
            yield from _written(name, text, _columns(samples))

    def _of_topics(
        self, view: ClusterView, rows: Indexes, column: Offsets, fold: Callable[[Seconds], float] | None
    ) -> Iterator[tuple[str, float]]:
        layout = view.layout
        table = np.full(layout.table_size, np.nan)
        # Groups that read committed messages alone see an earlier end.
        np.fmax.at(table, layout.place[rows], column[rows].astype(np.float64))
        for topic, span in layout.bases.items():
            text, values = f'{self._of_cluster(view.cluster)},topic="{_escaped(topic)}"', table[span]
            if fold is None and self._settings.by is Level.PARTITION:
                yield from ((f'{text},partition="{number}"', value) for number, value in enumerate(values.tolist()))
            elif not np.isnan(values).any():
                yield text, float((fold or np.sum)(values))


def _bounded(known: Known, settings: Series) -> tuple[set[tuple[str, str]], int]:
    """Returns the cluster and group of those whose series are within the limit, and the number of the others.

    They are the first ones by name, so that they stay the same, and whole groups, so that no sum lacks a part."""
    families, by = FAMILIES[settings.dialect], settings.by
    of_level = Counter(family.level for family in families)
    of_topics = len(_OF_TOPICS) if settings.dialect == "kafka_exporter" else 0
    sizes = dict.fromkeys((place for place in known.left_out if place[1]), _BY_GROUP)
    for one in known.chosen:
        sizes |= {(one.view.cluster, group): _BY_GROUP for group in one.groups}
        for code, entries in groupby(one.entries, key=one.totals.group.__getitem__):
            lengths = [len(one.rows_of(entry)) for entry in entries]
            topics, partitions = len(lengths), sum(lengths)
            items = {Level.GROUP: 1, Level.TOPIC: topics, Level.PARTITION: partitions}[by]
            size = items * of_level[None] + topics * of_level[Level.TOPIC]
            size += of_topics * (partitions if by is Level.PARTITION else topics)
            sizes[one.view.cluster, one.view.layout.groups[code]] = _BY_GROUP + size
    places = sorted(sizes)
    shown = {
        place
        for place, end in zip(places, accumulate(map(sizes.__getitem__, places)), strict=True)
        if end <= settings.limit
    }
    return shown, len(places) - len(shown)


def _columns(samples: Iterator[tuple[str, float]]) -> Iterator[_Samples]:
    while part := list(islice(samples, LINES_AT_ONCE)):
        yield labels_of(labels for labels, _ in part), np.array([value for _, value in part], dtype=np.float64)


def _written(name: str, text: str, samples: Iterator[_Samples], kind: str = "gauge") -> Iterator[bytes]:
    yield f"# HELP {name} {text}\n# TYPE {name} {kind}\n".encode()
    for labels, column in samples:
        yield from lines_of(name, labels, column)


def _escaped(name: str) -> str:
    """Names may have any bytes; those that are no characters are written as numbers."""
    text = name.encode("utf-8", "backslashreplace").decode()
    return text.replace("\\", "\\\\").replace("\n", "\\n").replace('"', '\\"')
