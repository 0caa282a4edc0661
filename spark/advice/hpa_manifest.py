"""Pure: a recommendation as a file to apply, with the reason for every number and every doubt as a comment.

Group names may hold any characters: what is no legal label value gets a named metric, and what is no legal file name
another one, never one that two groups share.
"""

import hashlib
import re
import textwrap
from collections import Counter
from collections.abc import Sequence

from spark.advice.advised import Advice, expected_in_words
from spark.advice.presets import Preset
from spark.advice.recommendation import Behavior, Number
from spark.figures.model import Group
from spark.trials.hpa_file import METRIC

PLACEHOLDER = "your-consumer"
NO_TARGET = "no-target-recommended"
"""Where there is none: kube-apiserver refuses it, as it is no quantity."""
_LABEL_VALUE = re.compile(r"(?:[A-Za-z0-9](?:[-A-Za-z0-9_.]{0,61}[A-Za-z0-9])?)?")
_WIDTH = 110


def is_label_value(text: str) -> bool:
    return _LABEL_VALUE.fullmatch(text) is not None


def hpa_yaml(group: Group, advice: Advice, fitting: Preset | None, name: str) -> str:
    """The file's text; `name` is the object's, a legal one."""
    names = (group.cluster, group.name, *(topic.name for topic in group.topics))
    lines = [
        *_comment(
            f"Recommended from the lag history of group {quoted(group.name)} on cluster {quoted(group.cluster)}."
        ),
        *_comment(f"Before applying: put your own Deployment's name in the place of {PLACEHOLDER}."),
        *_doubts(advice, fitting),
        "apiVersion: autoscaling/v2",
        "kind: HorizontalPodAutoscaler",
        "metadata:",
        f"  name: {quoted(name)}",
        "spec:",
        "  scaleTargetRef:",
        "    apiVersion: apps/v1",
        "    kind: Deployment",
        f"    name: {PLACEHOLDER}",
        *(line for name, number in advice.hpa.replicas for line in _number("  ", name, number)),
        "  metrics:",
        "    - type: External",
        "      external:",
        "        metric:",
        *(_selected(group) if all(map(is_label_value, names)) else _named(group, name)),
        "        target:",
        "          # replicas = ceil(lag / averageValue), over all items the selector gives.",
        "          type: AverageValue",
        *_comment(_target_in_words(advice), "          "),
        f'          averageValue: "{advice.hpa.target.value or NO_TARGET}"',
        "  behavior:",
        *(line for name, behavior in advice.hpa.behaviors for line in _behavior(name, behavior)),
    ]
    return "\n".join(lines) + "\n"


def file_names(groups: Sequence[Group]) -> tuple[str, ...]:
    """One legal name (no ending) for each group, also legal as an object's name; no two alike, whatever the groups."""
    plain = [_slug(group.name) for group in groups]
    times = Counter(plain)
    names = [
        slug
        if slug and slug == group.name and times[slug] == 1
        else f"{slug[:40].rstrip('-') or 'group'}-{_hash(group, 8)}"
        for slug, group in zip(plain, groups, strict=True)
    ]
    again = Counter(names)
    return tuple(
        name if again[name] == 1 else f"group-{_hash(group, 40)}" for name, group in zip(names, groups, strict=True)
    )


def quoted(text: str) -> str:
    """As a YAML string on one line, of printable ASCII alone."""
    return '"' + "".join(_escaped(character) for character in text) + '"'


def _escaped(character: str) -> str:
    code = ord(character)
    if character in '"\\':
        return "\\" + character
    if 0x20 <= code < 0x7F:
        return character
    return f"\\x{code:02x}" if code < 0x100 else f"\\u{code:04x}" if code < 0x10000 else f"\\U{code:08x}"


def _slug(name: str) -> str:
    """Of lower-case letters, digits and `-`: legal in every file system, and as an object's name."""
    return re.sub(r"[^a-z0-9]+", "-", name.lower())[:50].strip("-")


def _hash(group: Group, digits: int) -> str:
    named = f"{group.cluster}\0{group.name}".encode("utf-8", "surrogatepass")
    return hashlib.sha256(named).hexdigest()[:digits]


def _selected(group: Group) -> list[str]:
    lines = [
        f"          name: {METRIC}",
        "          selector:",
        "            matchLabels:",
        f"              cluster: {quoted(group.cluster)}",
        f"              group: {quoted(group.name)}",
    ]
    if len(group.topics) == 1:
        return [*lines, f"              topic: {quoted(group.topics[0].name)}"]
    return [
        *lines,
        "            matchExpressions: # members work for all these topics, so their lags are added",
        "              - key: topic",
        "                operator: In",
        f"                values: [{', '.join(quoted(topic.name) for topic in group.topics)}]",
    ]


def _named(group: Group, name: str) -> list[str]:
    metric = f"{name}-backlog"
    settings = [
        "metrics:",
        f"  - name: {metric}",
        "    value: lag",
        f"    cluster: {quoted(group.cluster)}",
        f"    group: {quoted(group.name)}",
        f"    topics: [{', '.join(quoted(topic.name) for topic in group.topics)}]",
    ]
    return [
        "          # A name here is no legal label value, so the adapter's settings must give the metric a name:",
        *(f"          # | {line}" for line in settings),
        f"          name: {metric}",
    ]


def _target_in_words(advice: Advice) -> str:
    target = advice.hpa.target
    if target.value is not None:
        return f"{target.reason} {expected_in_words(advice)}"
    return (
        f"No target is recommended. {target.reason} Put in your own number: as it is, kube-apiserver refuses this file."
    )


def _doubts(advice: Advice, fitting: Preset | None) -> list[str]:
    lines = []
    if fitting is not None:
        lines += _comment(
            f"Looks like: {fitting.name}. {fitting.why} {fitting.extra}".rstrip()
            + " The report has the values of this preset."
        )
    if advice.findings:
        lines.append("# Doubts and findings:")
        for finding in advice.findings:
            lines += _comment(f"- [{finding.severity.word}] {finding.words}")
    return lines


def _number(indent: str, key: str, number: Number) -> list[str]:
    return [*_comment(number.reason, indent), f"{indent}{key}: {number.value}"]


def _behavior(key: str, behavior: Behavior) -> list[str]:
    lines = [f"    {key}:", *_number("      ", "stabilizationWindowSeconds", behavior.window_seconds)]
    lines += ["      selectPolicy: Max", "      policies:"]
    for kind, number in behavior.policies:
        lines += [*_comment(number.reason, "        "), f"        - type: {kind}", f"          value: {number.value}"]
        lines.append(f"          periodSeconds: {behavior.period_seconds}")
    return lines


def _comment(text: str, indent: str = "") -> list[str]:
    """Wrapped, and of printable characters alone: a name in it must not end the comment."""
    safe = "".join(
        character if character.isprintable() else " " if character == "\u202f" else _escaped(character)
        for character in text
    )
    start = f"{indent}# "
    return textwrap.wrap(
        safe, _WIDTH + 2, initial_indent=start, subsequent_indent=start, break_long_words=False, break_on_hyphens=False
    )
