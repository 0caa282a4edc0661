"""What an HPA on the required number would have done beside another one, next to a few lines of plain Python."""

import itertools
from collections.abc import Sequence
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from prometheus_client import CollectorRegistry, generate_latest

from apiservice.autoscalers.annotations import SHADOW, SHADOW_GROUP, shadow_wish_of
from apiservice.autoscalers.autoscaler import Autoscaler, autoscaler_of
from apiservice.autoscalers.shadow import Look, Shadow, looked
from apiservice.autoscalers.shadower import Shadower, groups_selected
from tests.adapter.metrics.test_required import EVENLY, HINTED, Reader, by_rule, moving
from tests.support import samples
from tests.support.kubernetes.hpas import LAG, external, hpa

CPU: dict[str, Any] = {"type": "Resource", "resource": {"name": "cpu", "target": {"type": "Utilization"}}}
ORDERS = external(group="billing", topic="orders")
STEP = 15.0


def look(at: int, required: int | None, replicas: int = 3, arriving: float | None = 0.0, **other: float | None) -> Look:
    values: dict[str, float | None] = {"capacity": 10.0, "wait": 1.0, "lag": 0.0, **other}
    return Look(STEP * at, replicas, required, arriving, **values)


def followed(looks: Sequence[Look]) -> Shadow:
    shadow = None
    for each in looks:
        shadow = looked(shadow, each)
    assert shadow is not None
    return shadow


def plainly(looks: Sequence[Look]) -> tuple[list[int], float]:
    """The replicas that would be, and the backlog at the end."""
    replicas, backlog = [looks[0].replicas], looks[0].lag or 0.0
    numbers = [looks[0].replicas]
    for at, each in enumerate(looks[1:], 1):
        starting = [numbers[i] for i in range(at) if looks[i].at > each.at - 40]
        reading = min([replicas[-1], *starting])
        backlog = max(backlog + (each.arriving or 0.0) * STEP - reading * 10.0 * STEP, 0.0)
        numbers.append(numbers[-1] if each.required is None else each.required)
        replicas.append(max(n for i, n in enumerate(numbers) if looks[i].at > each.at - 300))
    return replicas, backlog


@given(
    st.lists(st.tuples(st.none() | st.integers(0, 20), st.integers(0, 20), st.floats(0, 300)), min_size=1, max_size=60)
)
def test_the_shadow_is_that_of_plain_python(course: list[tuple[int | None, int, float]]) -> None:
    looks = [look(at, required, replicas, arriving) for at, (required, replicas, arriving) in enumerate(course)]
    shadow = followed(looks)
    replicas, backlog = plainly(looks)

    assert shadow.would_be.replicas == replicas[-1]
    assert shadow.would_be.changes == sum(a != b for a, b in itertools.pairwise(replicas))
    assert shadow.would_be.replica_seconds == pytest.approx(STEP * sum(replicas[:-1]))
    assert shadow.actual.replica_seconds == STEP * sum(each.replicas for each in looks[:-1])
    assert shadow.backlog == pytest.approx(backlog)


def test_too_few_replicas_would_let_messages_wait() -> None:
    """Three members read 30 messages/s of 50 for a minute: 1,200 more wait, for 40 s."""
    shadow = followed([look(at, 3, arriving=50.0) for at in range(5)])

    assert (shadow.backlog, shadow.expected_wait, shadow.observed_wait) == (1200.0, 40.0, 1.0)


def test_what_is_not_known_is_not_shown_and_changes_no_replicas() -> None:
    shadow = followed([look(0, 5), look(1, None, arriving=1.0, capacity=None, wait=None)])

    assert (shadow.would_be.replicas, shadow.expected_wait, shadow.observed_wait) == (3, None, None)


def test_while_the_rates_are_unknown_nothing_is_expected_and_then_what_really_waits() -> None:
    """What would have come and been read in between is not known."""
    unknown = [look(at, 3, arriving=None, lag=5000.0) for at in (2, 3)]
    shadow = followed([look(0, 3, arriving=50.0), look(1, 3, arriving=50.0), *unknown])
    again = looked(shadow, look(4, 3, arriving=50.0, lag=700.0, wait=20.0))

    assert (shadow.backlog, shadow.expected_wait) == (None, None)
    assert (again.backlog, again.expected_wait) == (700.0, 20.0)
    assert looked(again, look(5, 3, arriving=50.0)).backlog == 1000.0


def test_what_waits_is_expected_only_from_when_the_lag_is_known() -> None:
    unknown = followed([look(0, 3, lag=None, wait=None), look(1, 3, arriving=50.0, lag=None, wait=None)])
    known = looked(unknown, look(2, 3, arriving=50.0, lag=900.0, wait=30.0))

    assert (unknown.backlog, unknown.expected_wait) == (None, None)
    assert (known.backlog, known.expected_wait) == (900.0, 30.0)
    assert looked(known, look(3, 3, arriving=50.0)).backlog == 1200.0


# -- which HPAs --------------------------------------------------------------------------------------------


def shadowed(*metrics: dict[str, Any], **annotations: str) -> Autoscaler | None:
    made = hpa("consumer", *metrics)
    made["metadata"]["annotations"] = {SHADOW: "true", **annotations}
    return autoscaler_of(made, {LAG})


@pytest.mark.parametrize(
    ("metrics", "annotations"), [([ORDERS], {}), ([CPU], {SHADOW_GROUP: "billing"}), ([], {SHADOW_GROUP: "billing"})]
)
def test_any_hpa_can_have_a_shadow(metrics: list[dict[str, Any]], annotations: dict[str, str]) -> None:
    found = shadowed(*metrics, **annotations)

    assert found is not None
    assert shadow_wish_of(found.annotations, groups_selected(found)) == "billing"


@pytest.mark.parametrize(
    ("metrics", "annotations", "problem"),
    [
        ([CPU], {}, "shadow-group must"),
        ([ORDERS, external(group="mail")], {}, "shadow-group must"),
        ([ORDERS], {SHADOW: "yes"}, 'must be "true" or "false"'),
    ],
)
def test_an_annotation_that_cannot_be_meant_is_refused(
    metrics: list[dict[str, Any]], annotations: dict[str, str], problem: str
) -> None:
    found = shadowed(*metrics, **annotations)

    assert found is not None
    with pytest.raises(ValueError, match=problem):
        shadow_wish_of(found.annotations, groups_selected(found))


def series(reader: Reader, *hpas: Autoscaler | None) -> dict[str, float]:
    """What is shown after three looks, by the last parts of the names and the sources."""
    shadower = Shadower(lambda: [each for each in hpas if each], lambda: reader.metrics, reader.clock.monotonic)
    registry = CollectorRegistry()
    registry.register(shadower)
    for _ in range(3):
        shadower.turn()
        reader.clock.seconds += STEP
    lines = [line for line in generate_latest(registry).decode().splitlines() if not line.startswith("#")]
    found = {}
    for line in lines:
        labels, value = line.rsplit(" ", 1)
        name = labels.removeprefix("kafka_lag_adapter_shadow_").partition("{")[0]
        found[f"{name} {labels.split('source=')[1][1:-2]}"] = float(value)
    return found


def test_what_would_be_is_shown_beside_what_is() -> None:
    shown = series(Reader(HINTED, moving(HINTED, EVENLY), replicas=1), shadowed(ORDERS))

    assert (shown["replicas required"], shown["replicas actual"]) == (4, 1)
    assert (shown["changes_total required"], shown["changes_total actual"]) == (1, 0)
    assert (shown["replica_seconds_total required"], shown["replica_seconds_total actual"]) == (75, 30)
    assert shown["wait_seconds actual"] == 0
    # 360 messages/s, and one member that reads 100 until the others have started.
    assert shown["wait_seconds required"] == pytest.approx(260 * 30 / 100)


def test_a_replica_reads_as_much_as_all_consumers_in_it() -> None:
    """360 messages/s, and a replica of two consumers that read 100 each."""
    rule = {"group": "billing", "topics": ["orders"], "objective": {"maxWait": "30s", "capacityHint": 100}}
    settings = samples.settings(rules=[rule | {"replicas": {"consumersPerReplica": 2}}])
    shown = series(Reader(settings, moving(settings, EVENLY), replicas=1), shadowed(ORDERS))

    assert shown["wait_seconds required"] == pytest.approx(160 * 30 / 200)


def test_a_group_without_an_objective_has_no_required_number_in_its_shadow() -> None:
    settings = by_rule()
    shown = series(Reader(settings, moving(settings, EVENLY), replicas=1), shadowed(ORDERS))

    assert (shown["replicas required"], shown["changes_total required"]) == (1, 0)
    assert "wait_seconds required" not in shown or shown["wait_seconds required"] == 0


def test_without_the_annotation_nothing_is_shown() -> None:
    assert series(Reader(HINTED, moving(HINTED, EVENLY)), shadowed(ORDERS, **{SHADOW: "false"})) == {}
