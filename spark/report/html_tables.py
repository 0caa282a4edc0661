"""Pure: the tables of the page."""

from collections.abc import Sequence
from functools import partial
from zoneinfo import ZoneInfo

import numpy as np

from spark.advice.assessment import Report, Standing
from spark.advice.finding import Severity
from spark.advice.hpa import Behavior, Recommendation, expected_in_words
from spark.advice.spans import local_days, weeks_of
from spark.figures import formatting
from spark.figures.model import Group, Topic
from spark.report.svg_parts import escaped

MOST_SECTIONS = 100
"""Groups with charts; all groups stand in the tables, the JSON and the HPA files."""
MOST_SKIPPED = 50
MOST_DAYS = 31


def table(heads: Sequence[str], rows: Sequence[Sequence[str]], numbers: set[int], wide: set[int] | None = None) -> str:
    """Cells are finished HTML; `numbers` are the columns to align by their digits."""
    head = "".join(
        f'<th class="n">{name}</th>' if at in numbers else f"<th>{name}</th>" for at, name in enumerate(heads)
    )
    labels = [name.replace("<br/>", " ") for name in heads]
    body = "".join(
        "<tr>" + "".join(_cell(cell, at, numbers, wide or set(), labels[at]) for at, cell in enumerate(row)) + "</tr>"
        for row in rows
    )
    return f'<div class="scroll"><table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table></div>'


def attention_table(report: Report) -> str:
    rows = [_attention(standing, number) for number, standing in enumerate(report.standings)]
    heads = (
        "",
        "Group",
        "Why, and what to do",
        "Lag p95, messages",
        "Lag max, messages",
        "Time above threshold",
        "Production, busiest hour",
        "Members / partitions",
        "HPA min&#8211;max",
    )
    return table(heads, rows, {3, 4, 5, 6, 7, 8}, {2})


def _attention(standing: Standing, number: int) -> Sequence[str]:
    group, advice = standing.group, standing.advice
    hpa = advice.hpa
    name = escaped(standing.called)
    if number < MOST_SECTIONS:
        name = f'<a href="#{anchor_of(standing)}">{name}</a>'
    top = advice.findings[0] if advice.findings and advice.findings[0].severity > Severity.NOTE else None
    outside = " outside its planned pauses" if group.agreement.pauses else ""
    why = escaped(f"{top.brief}." if top else f"Nothing needs attention{outside}.")
    to_do = f'<br/><span class="soft">{escaped(top.to_do)}</span>' if top and top.to_do else ""
    return (
        f'<span class="badge {class_of(standing.severity)}">{standing.severity.word}</span>',
        (
            f"{name}"
            f'<br/><span class="soft">{escaped(", ".join(topic.name for topic in group.topics[:3]))}'
            f"{f' and {len(group.topics) - 3} more' if len(group.topics) > 3 else ''}</span>"
        ),
        why + to_do,
        *map(_two_lines, figures_of(standing)),
        f"{hpa.min_replicas.value}&#8211;{hpa.max_replicas.value}",
    )


def anchor_of(standing: Standing) -> str:
    """By the group's name, so that a link to it leads to the same group in the next report."""
    return f"group-{standing.file}"


def class_of(severity: Severity) -> str:
    """The CSS class of its badge."""
    return ("fine", "note", "watch", "act")[severity]


def advice_table(standing: Standing) -> str:
    rows = [
        (f'<code class="field">{key}</code>', value, escaped(why))
        for key, value, why in numbers_of(standing.advice.hpa)
    ]
    return (
        f'<h3>Recommended HPA <span class="soft">&#8211; <a href="hpa/{escaped(standing.file)}.yaml">'
        f"hpa/{escaped(standing.file)}.yaml</a></span></h3>"
        + table(("Field", "Value", "Reason"), rows, {1}, {2})
        + (f"<p>{escaped(words)}</p>" if (words := expected_in_words(standing.advice)) else "")
    )


def numbers_of(hpa: Recommendation) -> list[tuple[str, str, str]]:
    """Field, value and reason of every number of an HPA."""
    rows = [
        ("averageValue", target_of(hpa), hpa.target.reason),
        ("minReplicas", str(hpa.min_replicas.value), hpa.min_replicas.reason),
        ("maxReplicas", str(hpa.max_replicas.value), hpa.max_replicas.reason),
    ]
    for name, behavior in (("scaleUp", hpa.up), ("scaleDown", hpa.down)):
        rows.append((f"{name} window", f"{behavior.window_seconds.value}\u202fs", behavior.window_seconds.reason))
        per = f"{behavior.period_seconds}\u202fs"
        rows += [(f"{name} step", f"{step} / {per}", reason) for step, reason in _steps_of(behavior)]
    return rows


def target_of(hpa: Recommendation) -> str:
    return "none" if hpa.target.value is None else formatting.count(hpa.target.value)


def _steps_of(behavior: Behavior) -> list[tuple[str, str]]:
    """Each policy's step, as `4 pods` or `100 %`, and its reason."""
    return [
        (formatting.plural(number.value, "pod") if kind == "Pods" else f"{number.value}\u202f%", number.reason)
        for kind, number in behavior.policies
    ]


def presets_table(standing: Standing) -> str:
    rows = []
    for preset in standing.presets:
        hpa = preset.hpa
        badge = ' <span class="badge fine">fits</span>' if preset.fits else ""
        rows.append(
            (
                f"{escaped(preset.name)}{badge}",
                target_of(hpa),
                f"{hpa.min_replicas.value}&#8211;{hpa.max_replicas.value}",
                f"{hpa.up.window_seconds.value}\u202fs / {hpa.down.window_seconds.value}\u202fs",
                _steps(hpa),
                escaped(f"{preset.why} {preset.extra}".strip()),
            )
        )
    chosen = (
        f' <span class="soft">&#8211; this group looks like: {escaped(standing.fitting.name)}</span>'
        if standing.fitting
        else ""
    )
    heads = ("Preset", "averageValue", "min&#8211;max", "Window up / down", "Step up, down", "What the data says")
    return f"<h3>Presets{chosen}</h3>" + table(heads, rows, {1, 2, 3}, {5})


def figures_of(standing: Standing) -> tuple[str, ...]:
    """Lag p95, largest lag, time above the threshold, busiest hour, members and partitions."""
    group, load = standing.group, standing.advice.load
    lags = [topic.lag for topic in group.topics if topic.lag]
    return (
        formatting.with_wait(group.hours, sum(lag.p95 for lag in lags) if lags else None),
        formatting.with_wait(group.hours, group.largest_lag),
        formatting.duration(group.seconds_above),
        formatting.rate(load.peak),
        f"{formatting.count(load.members_max)} / {load.partitions}",
    )


def _two_lines(words: str) -> str:
    """What is in brackets at the end has a line of its own."""
    first, _, second = escaped(words).partition(" (")
    return f'{first}<br/><span class="soft">{second.removesuffix(")")}</span>' if second else first


def weeks_table(topic: Topic) -> str:
    """Empty where there is no earlier week."""
    weeks = weeks_of(topic.hours)
    if weeks is None:
        return ""
    (last, before), lag = weeks, partial(formatting.with_wait, topic.hours)
    rows = [
        (name, _two_lines(formatted(new)), _two_lines(formatted(old)), formatting.change(new, old))
        for name, formatted, new, old in (
            ("Production, mean", formatting.rate, last.production_rate, before.production_rate),
            ("Production, busiest hour", formatting.rate, last.busiest_rate, before.busiest_rate),
            ("Lag p95, median hour", lag, last.lag_p95, before.lag_p95),
            ("Lag, largest", lag, last.lag_max, before.lag_max),
            ("Hours seen", formatting.count, last.hours, before.hours),
        )
    ]
    return table(("Week against week", "Last 7 days", "7 days before", "Change"), rows, {1, 2, 3})


def days_table(topic: Topic, group: Group, zone: ZoneInfo) -> str:
    waiting = partial(formatting.with_wait, topic.hours)
    days = local_days(topic.hours, group.silent, group.interval_seconds, zone)[-MOST_DAYS:]
    rows = [
        (
            str(day.day),
            *(_two_lines(waiting(lag)) for lag in (day.lag_p50, day.lag_p95, day.lag_max)),
            *(formatting.count(number) for number in (day.produced, day.consumed)),
            *(formatting.rate(_share(number, day.covered_seconds)) for number in (day.produced, day.consumed)),
            formatting.count(day.hours) + (f" of {day.hours + day.missing}" if day.missing else ""),
            formatting.share(_share(day.samples, day.expected)),
        )
        for day in days
    ]
    heads = (
        f"Day ({escaped(zone.key)})",
        "Lag p50, median hour",
        "Lag p95, worst hour",
        "Lag max",
        "Messages produced",
        "Messages consumed",
        "Production",
        "Consumption",
        "Hours seen",
        "Samples seen",
    )
    return table(heads, rows, set(range(1, 10)))


def coverage_in_words(report: Report) -> list[str]:
    coverage, skipped = report.coverage, report.findings.skipped
    return [
        (
            f"{formatting.share(coverage.share)} of the expected samples of a lag were seen: "
            f"{formatting.count(coverage.samples)} of {formatting.count(coverage.expected_samples)}, "
            "a sample being one topic of one group."
        ),
        (
            f"{formatting.plural(coverage.missing_hours, 'hour')} between the first and the last sample "
            f"{'has' if coverage.missing_hours == 1 else 'have'} no sample of any group; "
            f"{formatting.plural(coverage.late_samples, 'sample')} came after a gap of any length."
        ),
        (
            f"{formatting.plural(coverage.resets, 'reset')} of log ends, "
            f"{formatting.plural(coverage.rewinds, 'rewind')} of commits, "
            f"{formatting.plural(coverage.recreations, 'partition')} begun anew because the topic was made again."
        ),
        f"{formatting.plural(len(skipped), 'file')} of the history {'was' if len(skipped) == 1 else 'were'} skipped.",
    ]


def coverage_table(report: Report) -> str:
    coverage, skipped = report.coverage, report.findings.skipped
    gaps = [
        tuple(escaped(formatting.moment(at, report.findings.zone)) for at in gap)
        for gap in coverage.gaps[:MOST_SKIPPED]
    ]
    files = [(f"<code>{escaped(it.path)}</code>", escaped(it.reason)) for it in skipped[:MOST_SKIPPED]]
    more = len(skipped) - len(files)
    return (
        '<section><div class="head"><h2>Coverage</h2></div>'
        + "".join(f"<p>{escaped(line)}</p>" for line in coverage_in_words(report))
        + (table(("Hours without a sample from", "until"), gaps, set()) if gaps else "")
        + (table(("Skipped file", "Reason"), files, set(), {1}) if files else "")
        + (f'<p class="soft">{formatting.plural(more, "file")} more in report.json.</p>' if more > 0 else "")
        + "</section>"
    )


def _steps(hpa: Recommendation) -> str:
    said = (
        f"{' or '.join(step for step, _ in _steps_of(behavior))} / {behavior.period_seconds}\u202fs"
        for behavior in (hpa.up, hpa.down)
    )
    return escaped(", ".join(said))


def _cell(cell: str, at: int, numbers: set[int], wide: set[int], label: str) -> str:
    """`label`: the column's head, which a narrow page shows beside the cell."""
    name = (
        "n" if at in numbers else "wide" if at in wide else "tag" if cell.startswith('<span class="badge') else "name"
    )
    return f'<td class="{name}" data-label="{label}">{cell}</td>'


def _share(part: float, whole: float) -> float | None:
    return part / whole if whole > 0 and not np.isnan(part) else None
