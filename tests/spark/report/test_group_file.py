"""The file that `--groups` names: what it says for which group, and how a bad one is refused."""

from datetime import UTC, datetime
from pathlib import Path
from zoneinfo import ZoneInfo

import pytest

from spark.errors import Unusable
from spark.figures.agreement import Agreement
from spark.report.group_file import Agreements, agreed, parts_in

FILE = """
groups:
  - group: billing
    owner: Payments
    maxWait: 5m
    threshold: 500
    thresholds: {orders: 9000}
    pauses:
      - {days: [Sat, Sun]}
      - {days: [Mon], from: '22:00', to: '06:00'}
  - groups: 'batch-.*'
    cluster: eu
    owner: Analysts
"""


@pytest.fixture
def agreements(tmp_path: Path) -> Agreements:
    file = tmp_path / "groups.yaml"
    file.write_text(FILE)
    return Agreements(Agreement(90.0, None), parts_in(file), zone=ZoneInfo("Europe/Berlin"))


def test_the_first_entry_about_a_group_counts_and_the_flags_for_all_it_leaves_out(agreements: Agreements) -> None:
    billing, batch, other = (
        agreements.of(*key, 10.0) for key in (("main", "billing"), ("eu", "batch-1"), ("main", "batch-1"))
    )

    assert (billing.max_wait_seconds, billing.owner) == (300, "Payments")
    assert (billing.threshold_of("orders"), billing.threshold_of("returns")) == (9000, 500)
    assert (batch.max_wait_seconds, batch.owner, batch.threshold_of("x")) == (90, "Analysts", None)
    assert other == Agreement(90.0, None)


@pytest.mark.parametrize(
    ("hour", "is_paused"),
    [
        ("2026-11-13T22:00Z", False),  # Friday, 23:00 in Berlin
        ("2026-11-13T23:00Z", True),  # Saturday
        ("2026-11-15T22:00Z", True),  # Sunday, 23:00
        ("2026-11-15T23:00Z", False),  # Monday
        ("2026-11-16T20:00Z", False),
        ("2026-11-16T21:00Z", True),  # Monday, 22:00
        ("2026-11-17T04:00Z", True),  # Tuesday, 05:00
        ("2026-11-17T05:00Z", False),
        ("2026-11-17T21:00Z", False),
    ],
)
def test_a_pause_is_one_of_local_time_and_may_pass_midnight(
    agreements: Agreements, hour: str, *, is_paused: bool
) -> None:
    when = datetime.fromisoformat(hour).astimezone(UTC)

    assert agreements.of("main", "billing", 10.0).has_pause(when) is is_paused


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("- a", "groups.yaml: must be a mapping with `groups`"),
        ("groups: [{owner: a}]", r"groups.yaml: groups\[0\]: needs either `group`, a name, or `groups`"),
        ("groups: [{group: a, maxwait: 5m}]", r"\[0\].maxwait: is not a known key; did you mean 'maxWait'"),
        ("groups: [{group: a, maxWait: 5}]", r"groups\[0\].maxWait: is 5; must be a duration such as"),
        ("groups: [{group: a, maxWait: 0s}]", r"groups\[0\].maxWait: "),
        ("groups: [{group: a, threshold: 0}]", r"groups\[0\].threshold: is 0; must be at least 1"),
        ("groups: [{group: a, thresholds: {b: 0}}]", r"groups\[0\].thresholds.b: is 0; must be at least 1"),
        ("groups: [{group: a, pauses: [{days: [Mo]}]}]", r"groups\[0\].pauses\[0\].days\[0\]: is 'Mo'"),
        ("groups: [{group: a, pauses: [{from: '25:00'}]}]", r"groups\[0\].pauses\[0\].from: '25:00' must be a time"),
        ("groups: [{groups: '('}]", r"groups\[0\].groups: '\(' is not a regular expression"),
        ("groups: [", "groups.yaml: "),
    ],
)
def test_a_bad_file_is_refused_with_the_place_of_every_problem(tmp_path: Path, text: str, said: str) -> None:
    (tmp_path / "groups.yaml").write_text(text)

    with pytest.raises(Unusable, match=said):
        parts_in(tmp_path / "groups.yaml")


def test_a_file_that_is_not_there_is_refused(tmp_path: Path) -> None:
    with pytest.raises(Unusable, match=r"none\.yaml: No such file"):
        parts_in(tmp_path / "none.yaml")


@pytest.mark.parametrize(
    ("max_wait", "interval", "seconds"),
    [(None, 10, 60), (None, 60, 90), (None, 600, 510), ("45s", 60, 45), ("5m", 10, 300)],
)
def test_a_wait_that_nobody_agreed_on_is_none_that_samples_are_too_rare_for(
    max_wait: str | None, interval: float, seconds: float
) -> None:
    agreement = agreed(max_wait, None, None).of("main", "billing", interval)

    assert (agreement.max_wait_seconds, agreement.has_wait) == (seconds, max_wait is not None)


def test_a_wait_in_the_file_counts_however_rare_samples_are(agreements: Agreements) -> None:
    billing, batch = (agreements.of(*key, 600.0) for key in (("main", "billing"), ("eu", "batch-1")))

    assert (billing.max_wait_seconds, batch.max_wait_seconds) == (300, 510)


@pytest.mark.parametrize(
    ("max_wait", "said"),
    [("soon", "--max-wait: is 'soon'; must be a duration"), ("0s", "--max-wait: is '0s'; must be above 0")],
)
def test_a_bad_flag_is_refused(max_wait: str, said: str) -> None:
    with pytest.raises(Unusable, match=said):
        agreed(max_wait, None, None)
