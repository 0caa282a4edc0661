"""Pure: whether the HPA controller takes the additional pods of a rolling update for replicas that are wanted.

With `AverageValue`, it divides by all pods of the target, and while the ratio is within the tolerance, it wants as many
replicas as there are pods: https://github.com/kubernetes/kubernetes/issues/123296."""

from collections.abc import Callable

_ROUNDING = 1e-9
_MOST_REPLICAS = 150_000
"""Kubernetes supports no more pods in a cluster; `maxReplicas` may be 2^31 - 1."""


def surge_of(text: str | int) -> Callable[[int], int]:
    """Returns replicas -> the pods that a Deployment with this `maxSurge`, such as 1 or `25%`, adds in an update."""
    share = str(text).removesuffix("%")
    if share == str(text):
        return lambda _: int(share)
    return lambda replicas: -(-replicas * int(share) // 100)


def first_raised(least: int, most: int, surge: Callable[[int], int], tolerance: float) -> int | None:
    """Returns the smallest number of replicas in the range at which an update with just enough of them raises it."""
    counts = range(max(least, 1), min(most, _MOST_REPLICAS))
    return next((n for n in counts if surge(n) > 0 and n / (n + surge(n)) >= 1 - tolerance - _ROUNDING), None)
