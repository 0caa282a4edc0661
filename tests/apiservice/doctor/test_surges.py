"""Which rolling updates the HPA controller mistakes for a wanted number of replicas, beside its own arithmetic."""

import numpy as np
import pytest

from adapter.verdicts.controllers import Controllers
from apiservice.doctor.surges import first_raised, surge_of
from tests.support.hpas import external, hpa

TARGET = 1000


@pytest.mark.parametrize(
    ("surge", "tolerance", "first"),
    [(1, 0.1, 9), ("10%", 0.1, 9), ("25%", 0.1, None), (0, 0.1, None), (1, 0.0, None), (2, 0.1, 18), ("25%", 0.2, 4)],
)
def test_an_update_that_adds_few_pods_raises_the_replicas(surge: str | int, tolerance: float, first: int) -> None:
    assert first_raised(1, 50, surge_of(surge), tolerance) == first


def test_a_range_beyond_any_cluster_is_not_walked_through() -> None:
    asked: list[int] = []

    def surge(replicas: int) -> int:
        asked.append(replicas)
        assert len(asked) < 2_000_000
        return replicas

    assert first_raised(1, 2**31 - 1, surge, 0.1) is None


@pytest.mark.parametrize("replicas", range(1, 40))
def test_the_controller_decides_so(replicas: int) -> None:
    """With one additional pod, and just as much lag as the replicas are wanted for."""
    controllers = Controllers([hpa(external(average=str(TARGET)))])
    value = np.array([[1000.0 * TARGET * replicas]])
    spec, pods = np.array([replicas]), np.array([replicas + 1])
    (desired,) = controllers.sync(0.0, value, spec, pods, pods).tolist()

    assert (desired > replicas) == (first_raised(replicas, replicas + 1, surge_of(1), 0.1) == replicas)
