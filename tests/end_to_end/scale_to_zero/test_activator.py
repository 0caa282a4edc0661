"""Without the feature gate HPAScaleToZero, on a real kube-apiserver, HPA controller and broker: to zero and back."""

import re
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
import yaml

from apiservice.autoscalers.annotations import ACTIVATION, COOLDOWN, SCALE_TO_ZERO
from local.adapter import EXTERNAL_METRICS, Adapter
from local.downloads import command_line_tools
from local.kafka.broker import Kafka
from local.processes import wait_until
from tests.support.real.asleep import (
    COOLDOWN_SECONDS,
    INTERVAL_SECONDS,
    WAIT_SECONDS,
    Consumer,
    Stage,
    consumer,
    hpa,
    target,
)

PAGE = Path(__file__).parents[3] / "docs/scale-to-zero.md"
COMPLETE = re.compile(r'^kafka_lag_adapter_cycles_total\{cluster="main",outcome="\w+"\} (\S+)$', re.MULTILINE)

NAMES = (
    "activation",
    "steps",
    "released",
    "disabled",
    "replaced",
    "left",
    "switched-off",
    "switched-on",
    "rivals",
    "frozen-asleep",
    "frozen-awake",
    "gitops",
)


@pytest.fixture(scope="module")
def adapter(stage: Stage) -> Iterator[Adapter]:
    stage.prepare(*NAMES)
    with stage.adapter(scaleToZero=True) as running:
        wait_until(running.is_ready, "the adapter to be ready", WAIT_SECONDS, alive=[running.process])
        yield running


def put_to_sleep(one: Consumer) -> None:
    one.wait_for(0, is_marked=True)


def wait_for_cycles(one: Adapter, count: int) -> None:
    """Until so many more have ended, and HPAs have been looked at after each but the last."""

    def cycles() -> float:
        return sum(map(float, COMPLETE.findall(one.get_plain("/metrics")[1].decode())))

    end = cycles() + count
    wait_until(lambda: cycles() >= end, f"{count} cycles", WAIT_SECONDS)


def test_replicas_go_from_one_to_zero_to_three_to_zero_and_to_one(stage: Stage, adapter: Adapter) -> None:
    with consumer(stage, "steps") as one:
        put_to_sleep(one)
        began = time.monotonic()
        one.produce(3000)
        wait_until(lambda: one.replicas > 0, "the scale-up", WAIT_SECONDS)
        seconds = time.monotonic() - began
        print(f"from the first message to the scale-up: {seconds:.2f} s at an interval of {INTERVAL_SECONDS:g} s")
        one.wait_for(3, is_marked=False)
        one.read_until(3000)
        put_to_sleep(one)
        one.produce(1)
        one.wait_for(1, is_marked=False)
        wait_until(lambda: len(one.events()) == 4, "four Events", WAIT_SECONDS)

        assert one.events() == ["ScaledToZero", "ScaledFromZero"] * 2
        assert adapter.process.is_running()


def test_what_waits_up_to_the_activation_wakes_nothing_and_keeps_nothing_awake(stage: Stage, adapter: Adapter) -> None:
    """KEDA's activationLagThreshold and cooldownPeriod, on a StatefulSet."""
    asks = {SCALE_TO_ZERO: "true", COOLDOWN: f"{COOLDOWN_SECONDS}s", ACTIVATION: "5"}
    with consumer(stage, "activation", annotations=asks, kind="StatefulSet") as one:
        one.produce(6)
        wait_for_cycles(adapter, 2 * COOLDOWN_SECONDS)
        assert one.state == (1, False)
        began = time.monotonic()
        one.read_until(1)
        put_to_sleep(one)
        assert time.monotonic() - began >= COOLDOWN_SECONDS
        wait_for_cycles(adapter, 3)
        assert one.state == (0, True)
        one.produce(1)
        one.wait_for(1, is_marked=False)


def sleeping(stage: Stage) -> str:
    """What the command of the page prints."""
    (command,) = re.findall(r"^   (kubectl get hpa .*)$", PAGE.read_text(), re.MULTILINE)
    environment = {
        "PATH": f"{command_line_tools()}:/usr/bin:/bin",
        "KUBECONFIG": str(stage.plane.admin_kubeconfig),
        "HOME": str(stage.home),
    }
    ended = subprocess.run(["bash", "-ec", command], env=environment, capture_output=True, text=True, check=False)
    assert ended.returncode == 0, ended.stderr
    return ended.stdout


def test_what_sleeps_wakes_when_its_annotation_is_removed(stage: Stage, adapter: Adapter) -> None:
    assert adapter.is_ready()
    with consumer(stage, "released") as one:
        put_to_sleep(one)
        assert sleeping(stage) == "default/released\n"
        one.annotate(scale_to_zero=None)
        one.wait_for(1, is_marked=False)
        assert sleeping(stage) == ""


def test_what_sleeps_wakes_when_the_settings_no_longer_allow_it_and_sleeps_again_when_they_do(
    stage: Stage, adapter: Adapter
) -> None:
    with consumer(stage, "disabled") as one:
        put_to_sleep(one)
        adapter.settings.write_text(yaml.safe_dump(stage.settings(scaleToZero=False)))
        one.wait_for(1, is_marked=False)
        wait_for_cycles(adapter, 6)  # twice the cooldown
        assert one.state == (1, False)
        adapter.settings.write_text(yaml.safe_dump(stage.settings(scaleToZero=True)))
        put_to_sleep(one)


def test_a_target_that_is_deleted_while_it_sleeps_is_no_trouble_and_a_new_one_is_awake(
    stage: Stage, adapter: Adapter
) -> None:
    with consumer(stage, "replaced") as one:
        put_to_sleep(one)
        stage.plane.delete([target("replaced")])
        one.produce(1)
        wait_until(lambda: not one.is_marked, "the mark to be gone", WAIT_SECONDS)
        one.read_until(1)
        stage.plane.apply([target("replaced")])
        put_to_sleep(one)
        assert "warn: autoscaler-changes" not in adapter.get_plain("/readyz?verbose")[1].decode()


def test_the_target_of_an_hpa_that_is_deleted_is_woken(stage: Stage, adapter: Adapter) -> None:
    assert adapter.is_ready()
    with consumer(stage, "left") as one:
        put_to_sleep(one)
        stage.plane.delete([hpa("left")])
        wait_until(lambda: one.replicas == 1, "its target to wake", WAIT_SECONDS)


def test_a_target_that_somebody_else_scaled_to_zero_is_left_alone(stage: Stage, adapter: Adapter) -> None:
    assert adapter.is_ready()
    asks_later = {COOLDOWN: f"{COOLDOWN_SECONDS}s"}
    with consumer(stage, "switched-off", annotations=asks_later) as off, consumer(stage, "switched-on") as on:
        off.scale(0)
        off.annotate(scale_to_zero="true")
        off.produce(1)
        put_to_sleep(on)  # what comes after it was seen as well
        on.produce(1)
        on.wait_for(1, is_marked=False)

        assert off.state == (0, False)


def test_two_hpas_on_one_target_are_refused_with_an_event(stage: Stage, adapter: Adapter) -> None:
    assert adapter.is_ready()
    other = {**hpa("rivals"), "metadata": {"name": "rivals-too", "namespace": "default"}}
    stage.plane.apply([other])
    with consumer(stage, "rivals") as one:
        wait_until(lambda: one.events() == ["ScaleToZeroRefused"], "the Event", WAIT_SECONDS)
        stage.plane.delete([other])
        put_to_sleep(one)


def test_a_frozen_broker_neither_puts_to_sleep_nor_wakes(stage: Stage, adapter: Adapter, one_broker: Kafka) -> None:
    path = f"{EXTERNAL_METRICS}/namespaces/default/kafka_consumergroup_lag?labelSelector=group%3D"
    never = {"kafka-lag-adapter/scale-to-zero": "true", "kafka-lag-adapter/cooldown": "24h"}
    with consumer(stage, "frozen-asleep") as asleep, consumer(stage, "frozen-awake", annotations=never) as awake:
        put_to_sleep(asleep)
        one_broker.brokers[0].freeze()
        try:
            wait_until(lambda: stage.plane.raw(f"{path}frozen-awake")[0] == 503, "values to be too old", WAIT_SECONDS)
            awake.annotate(cooldown="0s")
            wait_for_cycles(adapter, 2)
            states = asleep.state, awake.replicas
        finally:
            one_broker.brokers[0].thaw()
        assert states[0] == (0, True)
        assert states[1] > 0
        asleep.produce(1)
        asleep.wait_for(1, is_marked=False)
        put_to_sleep(awake)
        assert adapter.is_ready()


def wait_for_conflicts(one: Consumer, number: int) -> None:
    """By its Events, because the target sleeps again a cycle later."""
    wait_until(lambda: one.events().count("ScaleToZeroConflict") == number, f"conflict {number}", WAIT_SECONDS)


def test_gitops_that_keeps_scaling_up_is_met_with_events_and_then_left_alone(stage: Stage, adapter: Adapter) -> None:
    assert adapter.is_ready()
    with consumer(
        stage, "gitops", annotations={"kafka-lag-adapter/scale-to-zero": "true", "kafka-lag-adapter/cooldown": "0s"}
    ) as one:
        for number in range(3):
            put_to_sleep(one)
            one.scale(1)
            wait_for_conflicts(one, number + 1)
        wait_for_cycles(adapter, 5)

        assert one.state == (1, False)
