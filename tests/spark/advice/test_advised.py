"""What follows from replays whose figures are given."""

from dataclasses import replace

import pytest

from spark.advice.advised import Advice, advised, calibration_in_words
from spark.advice.candidates import tried_of
from spark.advice.finding import Severity
from spark.advice.hpa import draft_of
from spark.advice.presets import Preset, best_of, replay_in_words
from spark.advice.recommendation import Reads
from spark.figures.agreement import Agreement
from spark.trials.calibration import Calibration, Figures
from spark.trials.hpa_file import GivenHpa
from spark.trials.trial import Trial, Untried
from tests.support.history.advised_groups import UTC
from tests.support.history.recommendations import faults_of
from tests.support.history.report_groups import group, hours, saturated, topic
from tests.support.hpas import external, hpa

BUSY = replace(
    group("billing", topic(of=hours(production=lambda _: 40), threshold=10**9), capacity=saturated(60, 50)),
    agreement=Agreement(max_wait_seconds=120),
)
DRAFT = draft_of(BUSY, UTC)
TRIED = tried_of(DRAFT)
GOOD = Figures(
    minutes=1000,
    wait_p50=1.0,
    wait_p95=50.0,
    wait_p99=60.0,
    wait_max=70.0,
    minutes_above=0,
    replica_hours=100.0,
    changes_a_day=10.0,
    lag_p95=500.0,
)
PROMISED = next(at for at, it in enumerate(TRIED) if it.candidate.rule is not None)
LATE_TOPIC = topic(of=hours(production=lambda _: 40), threshold=10**9, seconds_above=90_000.0)
LATE = replace(GOOD, minutes_above=51, replica_hours=10.0)
FITS = Calibration(50.0, 60, GOOD, GOOD, misfit="")


def with_cost(**hours: float) -> Advice:
    """All cost 100 replica-hours, but for the first that goes by what is named."""
    of_all = [GOOD] * len(TRIED)
    for name, cost in hours.items():
        first = next(at for at, it in enumerate(TRIED) if it.hpa is not None and it.hpa.reads is Reads[name])
        of_all[first] = replace(GOOD, replica_hours=cost)
    return advised(DRAFT, TRIED, Trial(FITS, tuple(of_all), keda=GOOD, oracle=GOOD))


def said(*figures: Figures, others: Figures = LATE, calibration: Calibration = FITS) -> Advice:
    """`figures`: of the first candidates; all others are late."""
    of_all = (*figures, *[others] * (len(TRIED) - len(figures)))
    return advised(DRAFT, TRIED, Trial(calibration, of_all, keda=GOOD, oracle=GOOD))


def test_the_cheapest_that_keeps_the_wait_in_95_of_100_minutes_is_recommended() -> None:
    at_the_limit = replace(GOOD, minutes_above=50, replica_hours=80.0)
    advice = said(GOOD, at_the_limit)

    assert advice.expected == at_the_limit
    assert advice.hpa == TRIED[1].hpa


@pytest.mark.parametrize(
    ("costs", "reads"),
    [
        ({"REQUIRED_REPLICAS": 90.0}, Reads.REQUIRED_REPLICAS),
        ({"REQUIRED_REPLICAS": 90.0, "REPLICAS": 91.0}, Reads.REPLICAS),
        ({"REQUIRED_REPLICAS": 90.0, "LAG": 80.0}, Reads.LAG),
        ({"REQUIRED_REPLICAS": 99.0}, Reads.LAG),
    ],
    ids=["the promise", "as much, but simpler", "a lag", "hardly less"],
)
def test_recommended_is_the_cheapest_whatever_it_goes_by(costs: dict[str, float], reads: Reads) -> None:
    assert with_cost(**costs).hpa.reads is reads


def test_who_is_to_apply_an_hpa_on_a_promise_is_told_of_its_rule() -> None:
    late = replace(BUSY, topics=(replace(BUSY.topics[0], above=LATE_TOPIC.above),))
    draft = draft_of(late, UTC)
    promise, lag = (
        advised(draft, TRIED, Trial(FITS, tuple(costs), keda=GOOD, oracle=GOOD)).findings[0].to_do
        for costs in (
            [replace(GOOD, replica_hours=9.0 if at == PROMISED else 100.0) for at in range(len(TRIED))],
            [GOOD] * len(TRIED),
        )
    )

    assert promise == "Add the recommended rule to the adapter's settings, then apply the recommended HPA."
    assert lag == "Apply the recommended HPA."


@pytest.mark.parametrize(
    ("idle_hours", "asks"),
    [
        (0, "Start its consumers."),
        (12, "Start its consumers, or apply the recommended HPA, which starts them when messages wait."),
    ],
    ids=["one replica or more", "down to none"],
)
def test_an_hpa_starts_consumers_only_if_it_may_go_down_to_none(idle_hours: int, asks: str) -> None:
    """Of two days, so many hours without production, and a last one without a member."""
    of = hours(production=lambda hour: 0.0 if hour < idle_hours else 40.0, lag=lambda hour: 900.0 * (hour == 47))
    of.members_min[47] = of.members_max[47] = 0
    alone = replace(BUSY, topics=(topic(of=of, threshold=10**9),), hours=of)
    draft = draft_of(alone, UTC)
    tried = tried_of(draft)
    advice = advised(draft, tried, Trial(FITS, tuple([GOOD] * len(tried)), keda=GOOD, oracle=GOOD))
    (without,) = (it for it in advice.findings if it.code == "lag_without_members")

    assert advice.hpa.min_replicas.value == (0 if idle_hours else 1)
    assert (advice.expected, without.to_do) == (GOOD, asks)


def test_one_that_changes_the_replicas_often_gives_way_to_a_dearer_one() -> None:
    advice = said(replace(GOOD, changes_a_day=49.0), replace(GOOD, replica_hours=200.0))

    assert advice.hpa.down.window_seconds.value == 3600
    assert "With 300 s, the replicas change 49 times a day in the replay." in advice.hpa.down.window_seconds.reason
    assert "many_changes" not in {it.code for it in advice.findings}


def test_the_reason_for_a_longer_window_is_about_the_candidates_that_were_replayed() -> None:
    """Lower targets are tried with the longer window alone."""
    advice = said(LATE, LATE, GOOD)

    assert advice.hpa == TRIED[2].hpa
    assert advice.hpa.down.window_seconds.reason == (
        "Every candidate with a shorter window fails to keep the wait in the replay, changes the replicas more than 48 "
        "times a day, or needs no fewer replica-hours."
    )


def test_where_all_change_often_the_calmest_is_recommended_with_a_doubt() -> None:
    advice = said(replace(GOOD, changes_a_day=90.0), replace(GOOD, changes_a_day=60.0, replica_hours=300.0))
    (doubt,) = (it for it in advice.findings if it.code == "many_changes")

    assert advice.expected is not None
    assert advice.expected.changes_a_day == 60
    assert (doubt.severity, "60 times a day" in doubt.words, "replica" in doubt.to_do) == (Severity.NOTE, True, True)


def test_where_none_keeps_the_wait_none_is_recommended_and_all_are_shown() -> None:
    advice = said()

    assert (advice.hpa.target.value, advice.expected) == (None, None)
    assert advice.hpa.target.reason.endswith(
        "Allow a longer wait, or run 1 replica all the time, enough for the busiest five minutes."
    )
    assert "keeps it in 94.9\u202f% of them" in advice.hpa.target.reason
    assert advice.replayed is not None
    assert (len(advice.replayed.lines), len(advice.replayed.others)) == (3, len(TRIED))
    assert not any(line.is_recommended for line in (*advice.replayed.lines, *advice.replayed.others))


def test_where_not_even_a_promise_keeps_a_wait_that_is_too_short_for_a_lag_both_are_said() -> None:
    draft = draft_of(replace(BUSY, agreement=Agreement(max_wait_seconds=30)), UTC)
    tried = tried_of(draft)
    late = Trial(FITS, tuple([LATE] * len(tried)), keda=GOOD, oracle=GOOD)
    reason = advised(draft, tried, late).hpa.target.reason.replace("\u202f", " ")

    assert reason.startswith("No HPA on lag keeps a wait of 30 s: ")
    assert reason.endswith(
        "An HPA on required replicas, replayed over the group's own minutes, keeps it in 94.9 % of them."
    )


def test_where_the_past_is_not_reproduced_nothing_is_recommended_and_the_reason_is_named() -> None:
    other = replace(FITS, replayed=replace(GOOD, wait_p95=90.0), misfit="members came and went")
    advice = said(GOOD, calibration=other)

    assert advice.hpa.target.value is None
    assert advice.hpa.target.reason == "The replay does not reproduce what happened: members came and went."
    assert "a wait p95 of 1\u202fmin 30\u202fs, observed 50\u202fs" in calibration_in_words(advice)


def test_where_waits_are_off_by_no_more_than_samples_show_it_is_said_beside_the_figures() -> None:
    nearly = replace(FITS, replayed=replace(GOOD, wait_p95=70.0))

    assert calibration_in_words(said(GOOD)).endswith("observed 0.")
    assert "observed 0. The wait p95 is off by 20\u202fs." in calibration_in_words(said(GOOD, calibration=nearly))


def test_what_was_not_replayed_is_not_recommended() -> None:
    advice = advised(DRAFT, TRIED, Untried("The history holds no minutes of the group"))

    assert (advice.hpa.target.value, advice.replayed) == (None, None)
    assert advice.hpa.target.reason.startswith("The history holds no minutes of the group, so no HPA was replayed")


def test_what_was_there_and_the_references_stand_beside_the_recommended_one() -> None:
    advice = said(GOOD)
    assert advice.replayed is not None
    names = [line.name for line in advice.replayed.lines]

    assert names == [TRIED[0].name, "as it was", "KEDA's defaults", "an oracle that knows the next minute"]


def beside_todays(todays: Figures) -> Advice:
    """All HPAs cost 100 replica-hours, but for the one that the group has today."""
    tried = tried_of(DRAFT, [GivenHpa("mine.yaml", hpa(external(average="1000"), most=12))])
    figures = [todays if it.is_todays else GOOD for it in tried]
    return advised(DRAFT, tried, Trial(FITS, tuple(figures), keda=GOOD, oracle=GOOD))


def test_the_hpa_of_today_stands_beside_what_was_there() -> None:
    comparison = beside_todays(replace(GOOD, replica_hours=103.0)).replayed
    assert comparison is not None

    assert comparison.lines[2].name == "your HPA (mine.yaml)"
    assert all(line.name != "your HPA (mine.yaml)" for line in comparison.others)


@pytest.mark.parametrize(
    ("max_wait", "name"), [(30.0, "your HPA (mine.yaml, for a wait of 30\u202fs)"), (None, "your HPA (mine.yaml)")]
)
def test_an_hpa_of_today_that_keeps_another_wait_than_the_groups_is_called_so(
    max_wait: float | None, name: str
) -> None:
    mine = GivenHpa("mine.yaml", hpa(external(average="1"), most=12), max_wait=max_wait)
    (todays,) = (it for it in tried_of(DRAFT, [mine]) if it.is_todays)

    assert todays.name == name


@pytest.mark.parametrize("cost", [50.0, 100.0, 101.0])
def test_an_hpa_of_today_that_keeps_the_wait_for_as_little_is_kept(cost: float) -> None:
    advice = beside_todays(replace(GOOD, replica_hours=cost))

    assert (advice.hpa.target.value, advice.expected) == (None, None)
    assert advice.hpa.target.reason.startswith("Keep your HPA (mine.yaml): replayed over the group's own minutes,")
    assert advice.replayed is not None
    assert not any(line.is_recommended for line in (*advice.replayed.lines, *advice.replayed.others))


def test_a_lag_above_its_threshold_asks_for_the_hpa_of_today_where_that_is_kept() -> None:
    draft = draft_of(replace(BUSY, topics=(LATE_TOPIC,)), UTC)
    tried = tried_of(draft, [GivenHpa("mine.yaml", hpa(external(average="1000"), most=12))])
    trial = Trial(FITS, (GOOD,) * len(tried), keda=GOOD, oracle=GOOD)

    assert [it.to_do for it in advised(draft, tried, trial).findings] == ["Keep your HPA (mine.yaml): see why below."]


@pytest.mark.parametrize(
    "todays",
    [LATE, replace(GOOD, changes_a_day=49.0), replace(GOOD, replica_hours=103.0)],
    ids=["late", "restless", "dearer"],
)
def test_an_hpa_of_today_that_does_less_well_gives_way_to_another(todays: Figures) -> None:
    assert beside_todays(todays).expected == GOOD


@pytest.mark.parametrize("part", ["down after 3600", "metric replicas", "preset high inertia", "preset low inertia"])
def test_targets_behaviors_replicas_and_presets_are_tried(part: str) -> None:
    assert any(part in it.name for it in TRIED)
    assert len(TRIED) <= 13


DAILY = hours(168, lambda hour: 60.0 if hour % 24 in {7, 8} else 8.0)
CLOCK_DRAFT = draft_of(
    replace(
        group("billing", topic(of=DAILY, threshold=10**9), capacity=saturated(60, 50)),
        agreement=Agreement(max_wait_seconds=120),
    ),
    UTC,
)
CLOCK_TRIED = tried_of(CLOCK_DRAFT)


def scheduled() -> int:
    """The place of the preset known peaks."""
    return next(at for at, it in enumerate(CLOCK_TRIED) if "known peaks" in it.name)


def known_peaks_with(figures: Figures) -> Preset:
    of_all = [figures if at == scheduled() else GOOD for at in range(len(CLOCK_TRIED))]
    advice = advised(CLOCK_DRAFT, CLOCK_TRIED, Trial(FITS, tuple(of_all), keda=GOOD, oracle=GOOD))
    return next(preset for preset in advice.presets if preset.name == "known peaks")


def test_a_schedule_is_replayed_hour_by_hour_and_never_recommended_as_an_hpa() -> None:
    it = CLOCK_TRIED[scheduled()]

    assert it.hpa is None
    assert it.candidate.least_by_hour is not None
    assert [it.candidate.least_by_hour[hour] for hour in range(6, 10)] == [1, 2, 2, 1]


def test_a_preset_fits_only_where_it_keeps_the_wait_in_the_replay() -> None:
    kept, late = (known_peaks_with(figures) for figures in (GOOD, replace(GOOD, minutes_above=390)))

    assert (kept.looks_like_it, kept.fits, late.looks_like_it, late.fits) == (True, True, True, False)
    assert best_of((late,)) is None
    assert replay_in_words(kept).replace("\u202f", " ") == (
        "Replayed, it keeps the wait in 100 % of the minutes, with 100 replica-hours and 10 changes a day."
    )
    assert replay_in_words(late).replace("\u202f", " ") == "Replayed, it keeps the wait in 61 % of the minutes only."


def test_no_preset_fits_where_no_hpa_is_recommended() -> None:
    advice = said(others=LATE)

    assert advice.hpa.target.value is None
    assert len(advice.presets) == 5
    assert [(it.fits, it.replayed) for it in advice.presets] == [(False, None)] * 5


def test_presets_of_an_hpa_that_was_not_on_the_lag_were_not_replayed() -> None:
    short = draft_of(replace(BUSY, agreement=Agreement(max_wait_seconds=30)), UTC)
    tried = tried_of(short)
    advice = advised(short, tried, Trial(FITS, (GOOD,) * len(tried), keda=GOOD, oracle=GOOD))

    assert advice.hpa.reads is Reads.REQUIRED_REPLICAS
    assert {(it.hpa.reads, it.fits) for it in advice.presets} == {(Reads.REQUIRED_REPLICAS, False)}
    assert {replay_in_words(it) for it in advice.presets if it.looks_like_it} == {"It was not replayed."}


@pytest.mark.parametrize(
    ("name", "faults"),
    [
        ("as the preset known peaks", []),
        ("all the time", []),
        ("as the preset low inertia", ["another one is cheaper"]),
    ],
)
def test_only_what_could_be_recommended_shows_that_another_one_is_cheaper(name: str, faults: list[str]) -> None:
    """A schedule and replicas without an HPA are there to be compared with."""
    daily = hours(168, lambda hour: 60.0 if hour % 24 in {9, 10, 11} else 8.0)
    of = group("billing", topic(of=daily, threshold=10**9), capacity=saturated(60, 50))
    draft = draft_of(replace(of, agreement=Agreement(max_wait_seconds=120)), UTC)
    tried = tried_of(draft)
    trial = Trial(FITS, (GOOD,) * len(tried), keda=GOOD, oracle=GOOD)
    advice = advised(draft, tried, trial)
    assert advice.replayed is not None
    others = tuple(
        replace(line, figures=replace(GOOD, replica_hours=10.0)) if line.name.endswith(name) else line
        for line in advice.replayed.others
    )
    assert others != advice.replayed.others

    assert list(faults_of(replace(advice, replayed=replace(advice.replayed, others=others)))) == faults
