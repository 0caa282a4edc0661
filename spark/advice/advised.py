"""Pure: what a group's replays showed -> the HPA that is recommended, or why there is none."""

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from zoneinfo import ZoneInfo

from adapter.verdicts.causes import Verdict
from adapter.verdicts.controllers import DEFAULT_FLAGS
from spark.advice.candidates import (
    CHANGES_A_DAY,
    TOO_LARGE,
    Tried,
    candidate_of_preset,
    is_too_large,
    question_of,
    tried_of,
)
from spark.advice.demand import Load
from spark.advice.finding import Finding, Severity
from spark.advice.hpa import GROW, Draft, draft_of
from spark.advice.presets import Preset, presets_for
from spark.advice.recommendation import Number, Recommendation, Target
from spark.figures import formatting
from spark.figures.model import Group
from spark.tables.topic_parts import Names
from spark.trials.calibration import Calibration, Figures
from spark.trials.hpa_file import GivenHpa
from spark.trials.trial import NEARLY, Question, Trial, Untried, cheapest

KEPT_ENOUGH = 0.95
"""Of the minutes; with less in the replay, the wait is not kept."""
NO_HPA = "No HPA is recommended for it: see why below."
APPLY, APPLY_BOTH = (
    "apply the recommended HPA",
    "add the recommended rule to the adapter's settings, then apply the recommended HPA",
)
UNKNOWN = Untried("What it would have done was not replayed")

Answers = Mapping[Names, Trial | Untried]
"""By cluster and group."""
Ask = Callable[[Mapping[Names, Question]], Answers]


@dataclass(frozen=True, slots=True)
class Compared:
    """A line of the comparison."""

    name: str
    figures: Figures
    is_recommended: bool = False


@dataclass(frozen=True, slots=True)
class Comparison:
    calibration: Calibration
    lines: tuple[Compared, ...] = ()
    """What is recommended, what was there, the HPAs of today, KEDA's defaults, an oracle. Empty: what happened is not
    reproduced."""
    others: tuple[Compared, ...] = ()
    """The rest, by cost."""


@dataclass(frozen=True, slots=True)
class Advice:
    load: Load
    hpa: Recommendation
    findings: tuple[Finding, ...]
    """Worst first."""
    expected: Figures | None = None
    """Of the recommended HPA; None where it has no target."""
    replayed: Comparison | None = None
    """None: nothing was replayed."""
    presets: tuple[Preset, ...] = ()
    """All five."""


def advice_for_all(
    groups: Sequence[Group], ask: Ask, zone: ZoneInfo, given: Mapping[Names, Sequence[GivenHpa]]
) -> list[Advice]:
    """`ask` has the candidates replayed; `given`: the HPAs that groups have today."""
    drafts = [draft_of(group, zone, has_hpa=bool(given.get(key_of(group)))) for group in groups]
    tried = [tried_of(draft, given.get(key_of(draft.group), ())) for draft in drafts]
    questions = [question_of(draft, each) for draft, each in zip(drafts, tried, strict=True)]
    asked = {key_of(draft.group): it for draft, it in zip(drafts, questions, strict=True) if it is not None}
    answers = ask(asked) if asked else {}
    return [
        advised(draft, each, answers.get(key_of(draft.group), UNKNOWN))
        for draft, each in zip(drafts, tried, strict=True)
    ]


def key_of(group: Group) -> Names:
    return group.cluster, group.name


def advised(draft: Draft, tried: Sequence[Tried], trial: Trial | Untried) -> Advice:
    if not tried:
        return _refused(draft, draft.refusal or draft.hpa.target.reason, None)
    if isinstance(trial, Untried):
        return _refused(draft, _why_untried(draft, trial), None)
    if trial.calibration.misfit:
        why = f"The replay does not reproduce what happened: {trial.calibration.misfit}."
        return _refused(draft, why, Comparison(trial.calibration))
    able = {at: it.hpa for at, it in enumerate(tried) if it.hpa is not None}
    chosen = cheapest(
        [trial.candidates[at] for at in able], [hpa.reads for hpa in able.values()], KEPT_ENOUGH, CHANGES_A_DAY
    )
    place = None if chosen is None else list(able)[chosen]
    todays = _enough_today(tried, trial, math.inf if place is None else NEARLY * trial.candidates[place].replica_hours)
    if todays is not None:
        why = _why_todays(draft, tried[todays], trial.candidates[todays])
        refused = _refused(draft, why, _compared(tried, trial, None))
        return replace(refused, findings=_asking(draft.findings, f"Keep {tried[todays].name}: see why below."))
    if place is None:
        best = max(trial.candidates[at].kept_share for at in able)
        return _refused(draft, _why_none(draft, len(able), best), _compared(tried, trial, None))
    hpa, expected = able[place], trial.candidates[place]
    hpa = replace(hpa, down=replace(hpa.down, window_seconds=_window(draft, tried, trial, hpa)))
    findings = (*_with_hpa(draft, hpa, expected), *_many_changes(expected, draft))
    presets = _presets(draft, hpa, tried, trial)
    return Advice(draft.load, hpa, findings, expected, _compared(tried, trial, place), presets)


def _enough_today(tried: Sequence[Tried], trial: Trial, most_hours: float) -> int | None:
    """Returns the place of an HPA of today that keeps the wait, changes the replicas seldom enough, and costs so many
    replica-hours at most."""
    for at, (it, figures) in enumerate(zip(tried, trial.candidates, strict=True)):
        is_good = figures.kept_share >= KEPT_ENOUGH and figures.changes_a_day <= CHANGES_A_DAY
        if it.is_todays and is_good and figures.replica_hours <= most_hours:
            return at
    return None


def _why_todays(draft: Draft, it: Tried, figures: Figures) -> str:
    return (
        f"Keep {it.name}: replayed over the group's own minutes, it keeps a wait of {draft.wait} in "
        f"{formatting.share(figures.kept_share)} of them, and no other HPA does so at a noticeably lower cost."
    )


def _why_none(draft: Draft, number: int, best: float) -> str:
    """`number`: of the HPAs that were replayed; `best`: the largest share of minutes in which one keeps the wait."""
    kept = formatting.share(best)
    if draft.hpa.target.value is None:
        return (
            f"{draft.hpa.target.reason} An HPA on required replicas, replayed over the group's own minutes, keeps it "
            f"in {kept} of them."
        )
    return (
        f"No HPA keeps a wait of {draft.wait}: replayed over the group's own minutes, the best of {number} keeps it in "
        f"{kept} of them. Allow a longer wait, or {draft.instead}"
    )


def _presets(draft: Draft, hpa: Recommendation, tried: Sequence[Tried], trial: Trial) -> tuple[Preset, ...]:
    """With what the replay showed. `hpa`: the recommended one, which they change where no lag is a target; such presets
    are not replayed."""
    if draft.hpa.target.value is None:
        return presets_for(draft.group, draft.load, hpa, draft.zone)
    return tuple(_judged(preset, tried, trial) for preset in draft.presets)


def _judged(preset: Preset, tried: Sequence[Tried], trial: Trial) -> Preset:
    candidate = candidate_of_preset(preset)
    for it, figures in zip(tried, trial.candidates, strict=True):
        if it.candidate == candidate:
            fits = preset.looks_like_it and figures.kept_share >= KEPT_ENOUGH
            return replace(preset, replayed=figures, fits=fits)
    return preset


def _refused(draft: Draft, why: str, comparison: Comparison | None) -> Advice:
    hpa = replace(draft.hpa, target=Target(None, why))
    return Advice(draft.load, hpa, _without_hpa(draft, why), None, comparison, draft.presets)


def _why_untried(draft: Draft, trial: Untried) -> str:
    reason = f"{TOO_LARGE[0].upper()}{TOO_LARGE[1:]}" if is_too_large(draft.group) else trial.reason
    return f"{reason}, so no HPA was replayed, and what was not replayed is not recommended."


def _with_hpa(draft: Draft, hpa: Recommendation, expected: Figures) -> tuple[Finding, ...]:
    """What an HPA helps against asks for it."""
    apply = APPLY if hpa.rule is None else APPLY_BOTH
    kept = f"replayed, it keeps a wait of {draft.wait} in {formatting.share(expected.kept_share)} of the minutes."
    return tuple(replace(it, asks=_asks_with_hpa(it, apply, kept, hpa.min_replicas.value)) for it in draft.findings)


def _asks_with_hpa(it: Finding, apply: str, kept: str, least: int) -> str | None:
    """An HPA starts the first replica only where it may go down to none; otherwise Kubernetes disables it at none."""
    sentence = f"{apply[0].upper()}{apply[1:]}"
    match it.code:
        case Verdict.ABOVE_THRESHOLD if it.may_return:
            return f"If it returns, {apply}."
        case Verdict.ABOVE_THRESHOLD if not it.is_over:
            return f"{sentence}."
        case Verdict.FALLING_BEHIND:
            return f"{sentence}: {kept}"
        case Verdict.LAG_WITHOUT_MEMBERS if least == 0 and not it.is_over:
            return f"Start its consumers, or {apply}, which starts them when messages wait."
    return it.asks


def _without_hpa(draft: Draft, why: str) -> tuple[Finding, ...]:
    """What to do is said at once, if that is known."""
    known = next((it for it in (draft.instead, GROW) if it in why), None)
    asks = NO_HPA if known is None else f"No HPA is recommended, see why below; {known[0].lower()}{known[1:]}"
    return _asking(draft.findings, asks)


def _asking(findings: Sequence[Finding], asks: str) -> tuple[Finding, ...]:
    """Where an HPA is what a finding would ask for."""
    return tuple(
        replace(it, asks=asks) if it.code == Verdict.ABOVE_THRESHOLD and it.asks is None else it for it in findings
    )


def _compared(tried: Sequence[Tried], trial: Trial, place: int | None) -> Comparison:
    """`place`: of the recommended one."""
    lines = [
        Compared(it.name, figures, at == place)
        for at, (it, figures) in enumerate(zip(tried, trial.candidates, strict=True))
    ]
    beside = (
        *(line for line in lines if line.is_recommended),
        Compared("as it was", trial.today),
        *(line for line, it in zip(lines, tried, strict=True) if it.is_todays),
        Compared("KEDA's defaults", trial.keda),
        Compared("an oracle that knows the next minute", trial.oracle),
    )
    others = sorted((line for line in lines if line not in beside), key=lambda it: it.figures.replica_hours)
    return Comparison(trial.calibration, beside, tuple(others))


def _window(draft: Draft, tried: Sequence[Tried], trial: Trial, hpa: Recommendation) -> Number:
    """With the reason, where the same HPA with the draft's window changes the replicas too often."""
    given, window = draft.hpa.down.window_seconds, hpa.down.window_seconds
    same = replace(hpa, down=replace(hpa.down, window_seconds=given))
    hasty = next((at for at, it in enumerate(tried) if it.hpa == same), None)
    if hasty is None or trial.candidates[hasty].changes_a_day <= CHANGES_A_DAY or window.value == given.value:
        return window
    return Number(
        window.value,
        f"With {given.value} s, the replicas change {round(trial.candidates[hasty].changes_a_day)} times a day in the "
        f"replay. Each change is a rebalance, and {CHANGES_A_DAY} a day are acceptable.",
    )


def _many_changes(expected: Figures, draft: Draft) -> tuple[Finding, ...]:
    """A finding, or none."""
    if expected.changes_a_day <= CHANGES_A_DAY:
        return ()
    words = (
        f"The recommended HPA would change the replicas {round(expected.changes_a_day)} times a day, the fewest of all "
        "that were replayed and keep the wait, and each change is a rebalance."
    )
    asks = f"Allow a longer wait, or {draft.instead}"
    return (Finding("many_changes", Severity.NOTE, "The recommended HPA changes the replicas often", words, asks),)


def expected_in_words(advice: Advice) -> str:
    """What the recommended HPA would have done; empty where there is none."""
    expected, comparison = advice.expected, advice.replayed
    if expected is None or comparison is None:
        return ""
    replicas, was = formatting.decimal(expected.replicas_mean), comparison.calibration.observed
    return (
        f"Replayed over {formatting.plural(expected.minutes, 'minute')} of the group's own history: a message waits up "
        f"to {_waited(expected.wait_p95)} in {formatting.share(0.95)} of them, {_waited(expected.wait_max)} at most; "
        f"{replicas} replica{'' if replicas == '1' else 's'} on average ({formatting.decimal(was.replicas_mean)} as it "
        f"was), with {formatting.plural(round(expected.changes_a_day), 'change')} a day."
    )


def calibration_in_words(advice: Advice) -> str:
    """How well the replay reproduces what happened; empty where nothing was replayed."""
    if advice.replayed is None:
        return ""
    it = advice.replayed.calibration
    was, again = it.observed, it.replayed
    said = (
        f"The members that really were there, replayed: a wait p95 of {formatting.duration(again.wait_p95)}, "
        f"observed {formatting.duration(was.wait_p95)}; p50 {formatting.duration(again.wait_p50)}, observed "
        f"{formatting.duration(was.wait_p50)}; {formatting.plural(again.minutes_above, 'minute')} above the promise, "
        f"observed {formatting.count(was.minutes_above)}."
    )
    return f"{said} {it.doubt}".rstrip()


def _waited(seconds: float) -> str:
    """The replay sees nothing between its steps."""
    return formatting.duration(max(seconds, DEFAULT_FLAGS.sync_seconds))
