"""One pod, as a frozen value made of the JSON of v1."""

import ipaddress
from collections.abc import Mapping
from dataclasses import dataclass
from sys import intern
from typing import Any

_ENDED = {"Succeeded", "Failed"}

Json = Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Pod:
    name: str
    labels: Mapping[str, str]
    addresses: tuple[str, ...]
    """Those that are the pod's alone: none with hostNetwork, or once it has ended."""


def pod_of(pod: Json) -> Pod:
    metadata, spec, status = pod["metadata"], pod.get("spec") or {}, pod.get("status") or {}
    labels = {intern(key): intern(text) for key, text in (metadata.get("labels") or {}).items()}
    listed = [each.get("ip") for each in status.get("podIPs") or ()] or [status.get("podIP")]
    is_alone = not spec.get("hostNetwork") and status.get("phase") not in _ENDED
    found = (address_of(text) for text in listed if text and is_alone)
    return Pod(intern(metadata["name"]), labels, tuple(each for each in found if each))


def address_of(text: str) -> str:
    """Returns an address in its usual form, as Java writes `/10.1.2.3` and `/0:0:0:0:0:0:0:1`; empty if it is none."""
    try:
        return str(ipaddress.ip_address(text.rpartition("/")[2]))
    except ValueError:
        return ""
