"""The part of the chart's values.schema.json that describes the settings, made from the adapter's own models.

`python -m local.manifests.values_schema` writes it anew; `make check` reports a file that is out of date.
"""

import json
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from adapter.metrics.definitions import DEFINITIONS
from adapter.settings.models import Settings

FILE = "values.schema.json"
SCHEMA = Path(__file__).resolve().parents[2] / "manifests" / FILE
NOT_NEEDED = {"default", "description", "format", "ge", "le", "title"}


def with_settings(text: str) -> str:
    """Returns the schema with the definitions and top-level values of the settings as the models have them."""
    schema = json.loads(text)
    settings = _plain(Settings.model_json_schema(by_alias=True))
    settings["$defs"]["NamedMetric"]["properties"]["value"]["enum"] = [metric.name for metric in DEFINITIONS]
    schema["$defs"] = settings["$defs"]
    schema["properties"] |= settings["properties"]
    return json.dumps(schema, indent=2) + "\n"


def problems(file: Path) -> Iterator[str]:
    text = file.read_text(encoding="utf-8")
    if with_settings(text) != text:
        yield f"{file.name}: differs from the settings' models; `python -m local.manifests.values_schema` writes it"


def _plain(schema: Any) -> Any:  # noqa: ANN401 - JSON
    """Without what only documents."""
    if isinstance(schema, list):
        return [_plain(each) for each in schema]
    if not isinstance(schema, dict):
        return schema
    return {
        key: {name: _plain(each) for name, each in value.items()} if key == "properties" else _plain(value)
        for key, value in schema.items()
        if key not in NOT_NEEDED
    }


def main() -> int:
    SCHEMA.write_text(with_settings(SCHEMA.read_text(encoding="utf-8")), encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
