"""Documents of HPAs as the adapter writes them beside its samples."""

import json
from datetime import datetime
from pathlib import Path
from typing import Any

from tests.support import hpas


def entry(most: int, group: str = "billing", **keys: object) -> dict[str, Any]:
    given = {"cluster": None, "group": group, "topics": ["orders"], "values": ["lag"], "currentReplicas": 2}
    spec = hpas.document(hpas.external(average="500", name="kafka_consumergroup_lag"), most=most)["spec"]
    return {**given, "namespace": "payments", "name": group, "spec": {k: v for k, v in spec.items() if v}, **keys}


def write(root: Path, at: datetime, *entries: dict[str, Any], clusters: tuple[str, ...] = ("main",)) -> Path:
    """A document as the adapter names it."""
    folder = root / "autoscalers" / f"{at:date=%Y-%m-%d}"
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / f"pod-1-2f-{at:%Y%m%dT%H%M%S.%fZ}.json"
    document = {"seenAt": at.isoformat(), "clusters": clusters, "autoscalers": entries}
    path.write_text(json.dumps(document))
    return path
