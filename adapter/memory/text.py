"""The memory as a text: a JSON list with one line for each group, so that a line that cannot be read costs itself."""

import json
from collections.abc import Mapping
from dataclasses import replace
from itertools import starmap
from typing import Annotated

from pydantic import Field, TypeAdapter, ValidationError

from adapter.columns import LARGEST_OFFSET, NO_COMMIT
from adapter.lag.saturation import BusyWindow
from adapter.memory.value import GroupMemory, LastCommit, Reads, TopicMemory, until

MOST_BYTES = 800_000
"""An object in Kubernetes has at most 1 MiB. This is enough for about 30,000 partitions."""
MOST_LINE_BYTES = MOST_BYTES // 8

Key = tuple[str, str]
"""Cluster and group."""

_Time = Annotated[int, Field(ge=0)]
_Readings = tuple[tuple[_Time, Annotated[int, Field(ge=NO_COMMIT, le=LARGEST_OFFSET)], bool], ...]
_Topics = dict[str, tuple[str, _Readings]]
_Reads = tuple[frozenset[str], _Time, _Time | None]
_Number = Annotated[float, Field(ge=0, le=1e15, allow_inf_nan=False)]
_Windows = tuple[tuple[_Time, _Number, _Number, _Number, _Time], ...]
_LINE = TypeAdapter(tuple[str, str, _Topics, _Reads | None, _Windows] | tuple[str, str, _Topics, _Reads | None])
"""Groups without windows have none."""


def loads(text: str, now: float) -> tuple[dict[Key, GroupMemory], list[str]]:
    """Returns what the lines say, and the beginnings of those that cannot be read."""
    found: dict[Key, GroupMemory] = {}
    bad: list[str] = []
    for line in (line.removesuffix(",") for line in text.splitlines() if line not in {"[", "]"}):
        try:
            cluster, group, topics, reads, *windows = _LINE.validate_json(line)
        except ValidationError:
            bad.append(line[:80])
            continue
        found[cluster, group] = GroupMemory(
            {name: TopicMemory(id_, tuple(starmap(LastCommit, own))) for name, (id_, own) in topics.items()},
            reads and Reads(*reads),
            tuple(starmap(BusyWindow, *windows)) if windows else (),
        )
    return until(now, found), bad


def dumps(memory: Mapping[Key, GroupMemory]) -> tuple[str, list[Key]]:
    """Returns the text, and the groups that have no room: those seen last, because Kafka may still report them.

    What members can read is written last, where there is room, because it can be learned again."""
    lines: dict[Key, str] = {}
    left_out: list[Key] = []
    room = MOST_BYTES
    in_order = sorted(memory.items(), key=lambda item: (item[1].seen_at, item[0]))
    for key, group in in_order:
        line = _line(key, replace(group, windows=()))
        if len(line) > min(room, MOST_LINE_BYTES):
            left_out.append(key)
            continue
        room -= len(line) + len(",\n")
        lines[key] = line
    for key, group in in_order:
        if group.windows and key in lines:
            line = _line(key, group)
            longer = len(line) - len(lines[key])
            if longer > room or len(line) > MOST_LINE_BYTES:
                left_out.append(key)
                continue
            room -= longer
            lines[key] = line
    return "[\n" + ",\n".join(lines.values()) + "\n]", left_out


def _line(key: Key, group: GroupMemory) -> str:
    # Without an id, a topic that was created again meanwhile would be taken for the same one.
    topics = {
        name: (topic.topic_id, [(*reading[:2], int(reading.has_marker)) for reading in topic.commits])
        for name, topic in group.topics.items()
        if topic.topic_id
    }
    reads = group.reads and (sorted(group.reads.topics), group.reads.seen_at, group.reads.outdated_since)
    windows = [
        (int(begin), round(seconds, 1), float(f"{rate:.6g}"), float(f"{messages:.6g}"), commits)
        for begin, seconds, rate, messages, commits in group.windows
    ]
    return json.dumps([*key, topics, reads, *([windows] if windows else [])], separators=(",", ":"))
