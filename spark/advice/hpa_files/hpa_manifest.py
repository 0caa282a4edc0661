"""Pure: a recommendation as a file to apply, with the reason for every number and every doubt as a comment.

Group names may hold any characters: what is no legal label value gets a named metric, and what is no legal file name
another one, never one that two groups share.
"""

import hashlib
import re
from collections import Counter
from collections.abc import Sequence

from spark.advice.advised import Advice, expected_in_words
from spark.advice.hpa_files.adapter_settings import keys_of, metric_name, named_metric, rule_of
from spark.advice.hpa_files.yaml_text import comment, quoted
from spark.advice.presets import Preset, replay_in_words
from spark.advice.recommendation import Behavior, Number, Reads, Recommendation
from spark.figures.model import Group
from spark.trials.hpa_file import SETTINGS

PLACEHOLDER = "your-consumer"
NO_TARGET = "no-target-recommended"
"""Where there is none: kube-apiserver refuses it, as it is no quantity."""
_LABEL_VALUE = re.compile(r"(?:[A-Za-z0-9](?:[-A-Za-z0-9_.]{0,61}[A-Za-z0-9])?)?")


def is_label_value(text: str) -> bool:
    return _LABEL_VALUE.fullmatch(text) is not None


def hpa_yaml(group: Group, advice: Advice, fitting: Preset | None, name: str) -> str:
    """The file's text; `name` is the object's, a legal one."""
    hpa = advice.hpa
    names = (group.cluster, group.name, *(topic.name for topic in group.topics))
    is_selected = all(map(is_label_value, names))
    lines = [
        *comment(f"Recommended from the lag history of group {quoted(group.name)} on cluster {quoted(group.cluster)}."),
        *comment(f"Before applying: put your own Deployment's name in the place of {PLACEHOLDER}."),
        *_settings(group, hpa, None if is_selected else name),
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
        *(line for key, number in hpa.replicas for line in _number("  ", key, number)),
        "  metrics:",
        "    - type: External",
        "      external:",
        "        metric:",
        *(_selected(group, hpa.reads) if is_selected else _named(name, hpa)),
        "        target:",
        *_division(hpa.reads),
        "          type: AverageValue",
        *comment(_target_in_words(advice), "          "),
        f'          averageValue: "{hpa.target.value or NO_TARGET}"',
        "  behavior:",
        *(line for key, behavior in hpa.behaviors for line in _behavior(key, behavior)),
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


def _slug(name: str) -> str:
    """Of lower-case letters, digits and `-`: legal in every file system, and as an object's name."""
    return re.sub(r"[^a-z0-9]+", "-", name.lower())[:50].strip("-")


def _hash(group: Group, digits: int) -> str:
    named = f"{group.cluster}\0{group.name}".encode("utf-8", "surrogatepass")
    return hashlib.sha256(named).hexdigest()[:digits]


def _settings(group: Group, hpa: Recommendation, name: str | None) -> list[str]:
    """What the adapter must know first. `name`: of the HPA, where no selector can name the group."""
    if name is not None:
        why = "A name here is no legal label value, so the adapter's settings must give the metric a name:"
        lines = named_metric(group, hpa, metric_name(name, hpa.reads))
    elif lines := rule_of(group, hpa):
        why = (
            "First, the adapter's settings need this rule. If one of their rules matches the group already, add the "
            "last line to that one instead: only the first rule that matches counts."
        )
    else:
        return []
    reasons = [line for key, value, reason in keys_of(hpa) for line in comment(f"{key} {value}: {reason}")]
    return [*comment(why), *(f"{SETTINGS}{line}" for line in lines), *reasons]


def _selected(group: Group, reads: Reads) -> list[str]:
    lines = [
        f"          name: {reads.metric}",
        "          selector:",
        "            matchLabels:",
        f"              cluster: {quoted(group.cluster)}",
        f"              group: {quoted(group.name)}",
    ]
    if reads is not Reads.LAG:
        return lines  # the rule names the topics
    if len(group.topics) == 1:
        return [*lines, f"              topic: {quoted(group.topics[0].name)}"]
    return [
        *lines,
        "            matchExpressions: # members work for all these topics, so their lags are added",
        "              - key: topic",
        "                operator: In",
        f"                values: [{', '.join(quoted(topic.name) for topic in group.topics)}]",
    ]


def _named(name: str, hpa: Recommendation) -> list[str]:
    return [f"          name: {metric_name(name, hpa.reads)}"]


def _division(reads: Reads) -> list[str]:
    if reads is not Reads.LAG:
        return []
    return ["          # replicas = ceil(lag / averageValue), over all items that match the selector."]


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
        lines += comment(
            f"Fits the preset {fitting.name}: {fitting.why} "
            + (f"{fitting.extra} " if fitting.extra else "")
            + f"{replay_in_words(fitting)} The report has its values."
        )
    if advice.findings:
        lines.append("# Doubts and findings:")
        for finding in advice.findings:
            lines += comment(f"- [{finding.severity.word}] {finding.words}")
    return lines


def _number(indent: str, key: str, number: Number) -> list[str]:
    return [*comment(number.reason, indent), f"{indent}{key}: {number.value}"]


def _behavior(key: str, behavior: Behavior) -> list[str]:
    lines = [f"    {key}:"]
    if behavior.tolerance is not None:
        lines += [*comment(behavior.tolerance.reason, "      "), f'      tolerance: "{behavior.tolerance.value}"']
    lines += _number("      ", "stabilizationWindowSeconds", behavior.window_seconds)
    lines += ["      selectPolicy: Max", "      policies:"]
    for kind, number in behavior.policies:
        lines += [*comment(number.reason, "        "), f"        - type: {kind}", f"          value: {number.value}"]
        lines.append(f"          periodSeconds: {behavior.period_seconds}")
    return lines
