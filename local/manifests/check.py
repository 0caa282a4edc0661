"""The shipped manifests, as the kustomization lists them, checked against each other and the code.

`python -m local.manifests.check` is the manifest part of `make check`. It needs no kubectl and no cluster. What it
finds wrong would otherwise be found by a user, one `kubectl apply` at a time."""

import sys
import tomllib
from pathlib import Path
from typing import Any

import yaml

from local.manifests import chart_page, consistency, deployment, report, spark_operator, values_schema
from local.manifests.shipped import KUSTOMIZATION, NAME, Manifest, Shipped, at, placed

RULES = (*consistency.RULES, *deployment.RULES, *report.RULES, *spark_operator.RULES)
MANIFESTS = Path(__file__).resolve().parents[2] / "manifests"
NO_OBJECTS = {"Chart.yaml", "values.yaml", "settings.yaml"}
PATCHES = "patch-*.yaml"
"""JSON patches of components, which kustomize and the chart both apply."""


class Unreadable(Exception):
    """Files without exactly one object. `problems` has all of them, each as `file: what`."""

    def __init__(self, problems: list[str]) -> None:
        super().__init__("\n".join(problems))
        self.problems = problems


def load(folder: Path = MANIFESTS, namespace: str = NAME) -> list[Manifest]:
    """Returns the objects that `folder`'s kustomization lists, in the namespace that kustomize would put them in.

    Their order is one in which they can be applied. The kustomization's `images` are not applied. Raises Unreadable.
    """
    paths = [folder / name for name in read(folder / KUSTOMIZATION)["resources"]]
    found = [load(path, namespace) if path.is_dir() else [placed(read(path), namespace)] for path in paths]
    return [document for documents in found for document in documents]


def read(path: Path) -> Manifest:
    """Returns the one object in a file, listed or not; raises Unreadable."""
    try:
        documents = [*yaml.safe_load_all(path.read_text(encoding="utf-8"))]
    except yaml.YAMLError as error:
        raise Unreadable([f"{path.name}: is no YAML: {' '.join(str(error).split())}"]) from error
    if len(documents) != 1 or not isinstance(documents[0], dict):
        raise Unreadable([f"{path.name}: must hold one object, holds {documents}"])
    needed = ["apiVersion", "kind"] if path.name == KUSTOMIZATION else ["apiVersion", "kind", "metadata.name"]
    missing = [key for key in needed if not isinstance(at(documents[0], key), str)]
    if missing:
        raise Unreadable([f"{path.name}: {key} is missing" for key in missing])
    return documents[0]


def object_files(folder: Path) -> list[Path]:
    """Returns the files with objects and kustomizations, without patches, settings and what only Helm reads."""
    files = [path for path in sorted(folder.rglob("*.yaml")) if path.name not in NO_OBJECTS]
    return [path for path in files if folder / "templates" not in path.parents and not path.match(PATCHES)]


def gather(folder: Path = MANIFESTS) -> Shipped:
    """Returns everything in `folder`, for the rules; raises Unreadable with the problems of every file."""
    patches = {path.relative_to(folder).as_posix(): path for path in folder.rglob(PATCHES)}
    found: dict[str, Any] = {name: yaml.safe_load(path.read_text(encoding="utf-8")) for name, path in patches.items()}
    wrong: list[str] = []
    for path in object_files(folder):
        name = path.relative_to(folder).as_posix()
        try:
            found[name] = read(path)
        except Unreadable as unreadable:
            wrong += [f"{name.removesuffix(path.name)}{problem}" for problem in unreadable.problems]
    if wrong:
        raise Unreadable(wrong)
    return Shipped(found, _version())


def problems(folder: Path = MANIFESTS) -> list[str]:
    """Returns what is wrong with the manifests in `folder`, each as `file: what`; empty if nothing is."""
    try:
        made = (*values_schema.problems(folder / values_schema.FILE), *chart_page.problems(folder))
        return [*judge(gather(folder)), *made]
    except Unreadable as unreadable:
        return unreadable.problems


def judge(shipped: Shipped) -> list[str]:
    """Returns the problems that the rules find."""
    return [problem for rule in RULES for problem in rule(shipped)]


def main(folder: Path = MANIFESTS) -> int:
    found = problems(folder)
    for problem in found:
        print(f"manifests/{problem}", file=sys.stderr)
    if not found:
        print(f"{len(gather(folder).objects)} manifests agree with each other and with the code")
    return 1 if found else 0


def _version() -> str:
    metadata = tomllib.loads((MANIFESTS.parent / "pyproject.toml").read_text(encoding="utf-8"))
    return str(metadata["project"]["version"])


if __name__ == "__main__":
    sys.exit(main())
