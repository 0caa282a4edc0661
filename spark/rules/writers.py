"""Which writer counts, per cluster and minute: the one with most rows whose commit (or its absence) and end are known;
ties: the writer of the minute before, else the smaller name."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass

from spark.pipeline.batches import Batch, minute_of
from spark.pipeline.lineage import ANY
from spark.tables.sample_files import HOUR


@dataclass(frozen=True, slots=True, order=True)
class Count:
    """One writer's known rows of one cluster in one minute (since the epoch)."""

    cluster: str
    minute: int
    writer: str
    known: int


Chosen = Mapping[tuple[str, int], str]
"""(cluster, minute) -> the writer that counts."""


def chosen_of(counts: Iterable[Count], before: Chosen) -> dict[tuple[str, int], str]:
    """`before`: who counted in the minute before the first one, where that is known."""
    by_minute: dict[tuple[str, int], list[Count]] = {}
    for count in sorted(counts):
        by_minute.setdefault((count.cluster, count.minute), []).append(count)
    chosen = dict(before)
    for (cluster, minute), rivals in by_minute.items():
        most = max(rival.known for rival in rivals)
        best = [rival.writer for rival in rivals if rival.known == most]
        last = chosen.get((cluster, minute - 1))
        chosen[cluster, minute] = last if last in best else best[0]
    return {key: chosen[key] for key in by_minute}


def chosen_before(batch: Batch, clusters_at: Callable[[str, int], Iterable[str]]) -> Chosen:
    """Who counted in the minute before the batch; `clusters_at`: the clusters of an hour's folder that have a sample in
    a minute."""
    first, before = batch.hours[0].start, batch.before
    if before is None or before.is_lost or before.record is None or before.start + HOUR != first:
        return {}
    minute, writers = minute_of(first) - 1, before.record.writers
    clusters = clusters_at(before.folder, minute) if ANY in writers else writers
    return {(cluster, minute): writers.get(cluster, writers.get(ANY, "")) for cluster in clusters}
