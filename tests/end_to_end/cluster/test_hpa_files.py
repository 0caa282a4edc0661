"""A real kube-apiserver takes the HPAs that a report recommends, and those of all five presets, as they are. It refuses
those without a target, which nobody should apply unread."""

from collections.abc import Iterator
from dataclasses import replace
from zoneinfo import ZoneInfo

import pytest
import yaml

from local.kubernetes.control_plane import ControlPlane
from spark.advice.hpa_files.hpa_manifest import NO_TARGET, file_names, hpa_yaml
from spark.figures.agreement import Agreement
from spark.figures.model import Group, Lag
from spark.figures.periods import periods
from tests.support.history.advised_groups import advice_for
from tests.support.history.report_groups import group, hours, saturated, span, topic

BERLIN = ZoneInfo("Europe/Berlin")
WEEK = 7 * 24
FAR = 10**7
"""A threshold that nothing reaches."""
BACKLOG = hours(WEEK, lag=lambda hour: 9e6 / (1 + hour))
FIRST_LOAD = replace(topic("imports", BACKLOG), lag=Lag(9, 5, 9, 9, 9e6, 9e6, 5, *span(BACKLOG)))
GROUPS = (
    group("steady", topic("orders", hours(WEEK)), capacity=saturated(60)),
    group(
        "only-at-night", topic("exports", hours(WEEK, lambda hour: 90.0 * (hour % 24 < 2)), FAR), capacity=saturated(9)
    ),
    group(
        "bursts",
        topic("clicks", hours(WEEK, lambda hour: 900.0 if hour % 3 else 10.0), FAR),
        capacity=saturated(60, 800),
    ),
    group("first-load", FIRST_LOAD, capacity=saturated(60, 3000)),
    group("two-topics", topic("orders"), topic("returns"), capacity=saturated(60)),
    group("Billing Service/eu: \"'#\n\t{}", topic("orders"), capacity=saturated(60)),
    replace(
        group("promised", topic("orders", hours(WEEK), FAR), capacity=saturated(60)),
        agreement=Agreement(max_wait_seconds=45),
    ),
)
WITHOUT_TARGET = (
    group("daily-peaks", topic("orders", hours(WEEK, lambda hour: 500.0 if hour % 24 == 11 else 20.0))),
    group("stuck", topic("mail", hours(lag=lambda hour: 900.0 * hour, consumed=0.0))),
    group("one-sample", topic("orders", hours(1, samples=1, expected_samples=1, members_max=0))),
    group("nothing-known", topic("orders", periods(hours(1).start))),
    group("-" * 255, topic("orders")),
    group("группа", topic("orders")),
)


def files(groups: tuple[Group, ...]) -> Iterator[tuple[str, str]]:
    """What is recommended for each, and each of its presets; a word for it, and the file's text."""
    for number, name in enumerate(file_names(groups)):
        advice = advice_for(groups[number])
        yield f"{name}, recommended", hpa_yaml(groups[number], advice, None, name)
        for preset in advice.presets:
            text = hpa_yaml(groups[number], replace(advice, hpa=preset.hpa), preset, name)
            yield f"{name}, {preset.name}", text


def refusals(plane: ControlPlane, texts: dict[str, str]) -> dict[str, str]:
    """What kube-apiserver says against them: every field is to be known, nothing is kept."""
    path = "/apis/autoscaling/v2/namespaces/default/horizontalpodautoscalers?dryRun=All&fieldValidation=Strict"
    answers = {word: plane.request("POST", path, yaml.safe_load(text)) for word, text in texts.items()}
    return {word: body.decode() for word, (status, body) in answers.items() if status != 201}


def test_kube_apiserver_takes_every_recommended_hpa_and_every_preset(control_plane: ControlPlane) -> None:
    texts = dict(files(GROUPS))

    assert len(texts) == 6 * len(GROUPS)
    assert 'tolerance: "0"' in texts["promised, recommended"]
    assert refusals(control_plane, texts) == {}


def test_kube_apiserver_takes_a_file_without_a_target_only_with_a_number_in_its_place(
    control_plane: ControlPlane,
) -> None:
    texts = dict(files(WITHOUT_TARGET))
    refused = refusals(control_plane, texts)

    assert len(texts) == 6 * len(WITHOUT_TARGET)
    assert refused.keys() == texts.keys()
    assert all("quantities must match the regular expression" in said for said in refused.values())
    assert refusals(control_plane, {word: text.replace(NO_TARGET, "500") for word, text in texts.items()}) == {}


@pytest.mark.parametrize(("old", "new"), [("averageValue:", "averageValu:"), ("maxReplicas: ", "maxReplicas: -")])
def test_kube_apiserver_would_have_refused_a_wrong_one(control_plane: ControlPlane, old: str, new: str) -> None:
    (word, text), *_ = files(GROUPS[:1])

    assert refusals(control_plane, {word: text.replace(old, new)}).keys() == {word}
