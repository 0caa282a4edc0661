"""The demo's steps where they go wrong; that they go right is watched end to end."""

from pathlib import Path
from typing import Any, cast

import pytest

from local import downloads
from local.demo import scenario, screen
from local.demo.scenario import Names, Sight, Stage, StepFailed
from local.kafka.broker import Kafka
from local.kubernetes.control_plane import ControlPlane

UNREADABLE = Sight(targets="<unknown>/1k (avg)", replicas=0, ready=0, pods=0, lag=None, trouble="503 no broker answers")


class FakePlane:
    """Answers as kube-apiserver does for one moment of the demo."""

    def __init__(self, average: str | None, lags: list[str]) -> None:
        self._average = average
        self._lags = lags

    def get(self, path: str) -> dict[str, Any]:
        if "deployments" in path:
            return {"status": {"replicas": 2, "readyReplicas": 1}}
        if "pods" in path:
            return {"items": [{}, {}, {}]}
        current = {} if self._average is None else {"averageValue": self._average}
        metric = {"type": "External", "external": {"target": {"averageValue": "1k"}, "current": current}}
        return {"spec": {"metrics": [metric]}, "status": {"currentMetrics": [metric]}}

    def raw(self, _path: str) -> tuple[int, bytes]:
        items = ",".join(f'{{"value":"{lag}"}}' for lag in self._lags)
        return (200, f'{{"items":[{items}]}}'.encode()) if self._lags else (503, b"no broker answers\n")


def seen(average: str | None, *lags: str) -> Sight:
    return scenario.look(cast("ControlPlane", FakePlane(average, list(lags))), Names())


@pytest.fixture
def stage(monkeypatch: pytest.MonkeyPatch) -> Stage:
    """Nothing behind it; steps give up at once."""
    monkeypatch.setattr(scenario, "STEP_SECONDS", 0.0)
    monkeypatch.setattr(scenario, "DRAIN_SECONDS", 0.0)
    monkeypatch.setattr(scenario, "LOOK_SECONDS", 0.0)
    monkeypatch.setattr(scenario, "produce", lambda *_: None)
    return Stage(cast("Kafka", None), cast("ControlPlane", None), Names(), show=lambda _: None)


def seeing(monkeypatch: pytest.MonkeyPatch, sight: Sight) -> None:
    monkeypatch.setattr(scenario, "look", lambda _plane, _names: sight)


def test_a_lag_is_the_sum_of_what_is_served() -> None:
    assert seen("333334m", "10k", "7") == Sight(targets="333334m/1k (avg)", replicas=2, ready=1, pods=3, lag=10_007)


def test_an_error_instead_of_a_lag_is_no_zero() -> None:
    assert (seen("0").lag, seen("0").trouble) == (None, "503 no broker answers")


def test_replicas_that_do_not_wake_are_a_failed_step_that_says_what_was_served(
    stage: Stage, monkeypatch: pytest.MonkeyPatch
) -> None:
    seeing(monkeypatch, UNREADABLE)

    with pytest.raises(StepFailed, match="the lag is unknown; asked for the lag, kube-apiserver says: 503 no broker"):
        scenario.wake(stage)


def test_a_pod_that_is_about_to_end_is_waited_for(stage: Stage, monkeypatch: pytest.MonkeyPatch) -> None:
    ending = Sight(targets="0/1k (avg)", replicas=0, ready=0, pods=1, lag=0)
    seeing(monkeypatch, ending)

    with pytest.raises(StepFailed, match="in vain for 0 replicas after the last message"):
        scenario.drain(stage)


def test_a_failed_step_is_status_1_and_one_sentence(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def fail(*_: object, **_options: object) -> None:
        raise StepFailed("waited 60 s in vain for 3 ready replicas")

    monkeypatch.setattr("sys.argv", ["local.demo.__main__"])
    monkeypatch.setattr(downloads, "main", lambda _: 0)
    monkeypatch.setattr(screen, "_show", fail)

    assert screen.main() == 1
    assert capsys.readouterr().err == "The demo failed: waited 60 s in vain for 3 ready replicas\n"


def test_a_failed_step_shows_what_the_pods_said_before_their_logs_are_deleted(
    stage: Stage, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def start(_screen: object, _running: object, home: Path, **_options: object) -> tuple[Stage, None]:
        log = home / "pod-logs/demo/billing-1/consumer.log"
        log.parent.mkdir(parents=True)
        log.write_text("first\n" + "not committed\n" * 15)
        return stage, None

    def fail(*_: object) -> None:
        raise StepFailed("waited 60 s in vain for 3 ready replicas")

    monkeypatch.setattr("sys.argv", ["local.demo.__main__"])
    monkeypatch.setattr(downloads, "main", lambda _: 0)
    monkeypatch.setattr(screen, "_start", start)
    # The servers that other tests of this process share go on running.
    monkeypatch.setattr(screen, "stop_all", lambda: None)
    monkeypatch.setattr(scenario, "fall_asleep", fail)

    assert screen.main() == 1
    printed = capsys.readouterr().out
    assert printed.count("  billing-1: not committed\n") == 15
    assert "first" not in printed


def test_what_a_machine_lacks_is_said_before_anything_starts(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sys.argv", ["local.demo.__main__"])
    monkeypatch.setattr(downloads, "main", lambda _: 2)
    monkeypatch.setattr(screen, "_show", lambda *_, **_options: pytest.fail("started"))

    assert screen.main() == 2
