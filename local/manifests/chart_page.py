"""The chart's README.md, made from the comments of its values.yaml.

`python -m local.manifests.chart_page` writes it anew; `make check` reports a page that is out of date, and a value
without a comment.
"""

import json
import re
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import yaml

FOLDER = Path(__file__).resolve().parents[2] / "manifests"
KEY = re.compile(r"(?P<indent> *)(?P<key>\w+):(?P<rest>.*)")
COMMENT = re.compile(r"(?:^| )# (.*)$")
GROUP = object()
"""The default of a value that has values of its own."""
PAGE = """# {name}

{description}

```
helm upgrade --install {name} . --namespace {name} --create-namespace --values my-values.yaml
helm test {name} --namespace {name}
helm uninstall {name} --namespace {name}
```

`helm test` reads discovery through the aggregator. `helm uninstall` leaves the volume claim of a history, and the
Secrets that you created. docs/install.md in the repository has every way to install, docs/settings.yaml every setting.

## Values

Unknown keys are refused. A key that you set to `null` loses its default, also within `podSecurityContext` and the
probes.

| value | default | what it is |
|---|---|---|
{rows}

`python -m local.manifests.chart_page` writes this page from values.yaml.
"""


def page(folder: Path) -> str:
    """Returns the page of the chart in this folder."""
    chart = yaml.safe_load((folder / "Chart.yaml").read_text(encoding="utf-8"))
    rows = "\n".join(f"| {name} | {default} | {text} |" for name, default, text in _rows(folder))
    return PAGE.format(name=chart["name"], description=chart["description"], rows=rows)


def problems(folder: Path) -> Iterator[str]:
    yield from (f"values.yaml: {name} has no comment" for name, _, text in _rows(folder) if not text)
    if (folder / "README.md").read_text(encoding="utf-8") != page(folder):
        yield "README.md: differs from values.yaml; `python -m local.manifests.chart_page` writes it"


def comments(text: str) -> dict[str, str]:
    """Returns the comment of each key, by its path such as `image.tag`: the lines above it, then that of its line."""
    found: dict[str, str] = {}
    parents: list[str] = []
    above: list[str] = []
    for line in text.splitlines():
        comment = COMMENT.findall(line)
        if key := KEY.fullmatch(line):
            parents = [*parents[: len(key["indent"]) // 2], key["key"]]
            found[".".join(parents)] = " ".join([*above, *comment])
        above = [*above, *comment] if line.lstrip().startswith("#") else []
    return found


def _rows(folder: Path) -> Iterator[tuple[str, str, str]]:
    """Yields name, default and comment of each value, as cells of a table."""
    text = (folder / "values.yaml").read_text(encoding="utf-8")
    schema = json.loads((folder / "values.schema.json").read_text(encoding="utf-8"))
    said = comments(text)
    for path, value in _values(yaml.safe_load(text), schema):
        default = "" if value is GROUP else f"`{json.dumps(value, ensure_ascii=False)}`"
        if said[path] or value is not GROUP:
            yield f"`{path}`", default.replace("|", "\\|"), said[path].replace("|", "\\|")


def _values(values: Mapping[str, Any], schema: Mapping[str, Any], parent: str = "") -> Iterator[tuple[str, Any]]:
    """Descends where the chart's own schema lists the keys; what is Kubernetes' or the settings' is one value."""
    for key, value in values.items():
        path, own = f"{parent}{key}", schema["properties"][key]
        if own.get("properties") and own.get("additionalProperties") is False and value:
            yield path, GROUP
            yield from _values(value, own, f"{path}.")
        else:
            yield path, value


def main() -> int:
    (FOLDER / "README.md").write_text(page(FOLDER), encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
