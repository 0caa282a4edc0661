"""Decides in which pod a member of a group runs.

By its `group.instance.id`, else by its `client.id`, that is the pod's name or begins with it; else by its address. Of
several pods that fit by name, as `web-1` and `web-1-0` do for `web-1-0-consumer`, the longest name is meant."""

import re
from collections import Counter
from collections.abc import Collection, Iterable, Mapping

from adapter.cluster.groups import Client
from apiservice.pods.pod import Pod, address_of

_END_OF_NAME = re.compile(r"[^A-Za-z0-9]|$")
"""What may follow a pod's name, so that `web-10` does not begin with `web-1`."""


def pods_of(clients: Iterable[Client], pods: Collection[Pod]) -> dict[Client, str]:
    """Returns the name of each member's pod; members that run elsewhere are absent. `pods` are all of a namespace."""
    names = frozenset(pod.name for pod in pods)
    longest = max(map(len, names), default=0)
    by_address = _by_address(pods)
    found: dict[Client, str] = {}
    for client in clients:
        named = _named(client.instance, names, longest) or _named(client.client, names, longest)
        pod = named or by_address.get(address_of(client.host))
        if pod is not None:
            found[client] = pod
    return found


def _named(text: str, names: Collection[str], longest: int) -> str | None:
    """Looks up each beginning, because there may be thousands of pods."""
    ends = range(min(len(text), longest), 0, -1)
    return next((text[:end] for end in ends if _END_OF_NAME.match(text, end) and text[:end] in names), None)


def _by_address(pods: Iterable[Pod]) -> Mapping[str, str]:
    """Returns the pods with an address that no other one has: two of one address are a node's network, or a mistake."""
    held = [(address, pod.name) for pod in pods for address in set(pod.addresses)]
    counts = Counter(address for address, _ in held)
    return {address: name for address, name in held if counts[address] == 1}
