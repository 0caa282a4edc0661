"""The image: what it is made of, and that it agrees with the package and the manifests."""

import re
from typing import NamedTuple

from local.manifests.check import MANIFESTS, read

ROOT = MANIFESTS.parent


class Step(NamedTuple):
    """One instruction of a Dockerfile."""

    word: str
    rest: str


def _steps() -> list[Step]:
    text = (ROOT / "Dockerfile").read_text().replace("\\\n", " ")
    lines = [line.strip() for line in text.splitlines() if line.strip() and not line.startswith("#")]
    return [Step(*line.split(maxsplit=1)) for line in lines]


def _rest(word: str) -> list[str]:
    return [step.rest for step in _steps() if step.word == word]


def test_every_base_image_is_the_pinned_argument() -> None:
    image = re.fullmatch(r"PYTHON_IMAGE=python:(\d+\.\d+)-slim-bookworm", _rest("ARG")[0])

    own = {line.partition(" AS ")[2] for line in _rest("FROM")}

    assert image
    assert {line.split()[0] for line in _rest("FROM")} - own == {"${PYTHON_IMAGE}"}
    assert tuple(map(int, image[1].split("."))) >= (3, 11)


def test_the_image_runs_as_the_user_of_the_deployment() -> None:
    pod = read(MANIFESTS / "base/deployment.yaml")["spec"]["template"]["spec"]["securityContext"]

    # Two: the report's, and the adapter's, which the image with a history shares.
    assert _rest("USER") == [f"{pod['runAsUser']}:{pod['runAsGroup']}"] * 2
    for stage in " ".join(step.word for step in _steps()).split("FROM"):
        assert "RUN" not in stage.partition("USER")[2]
    assert [line.split()[0] for line in _rest("FROM")][-2:] == ["adapter"] * 2


def test_everything_that_is_copied_exists_and_is_let_in() -> None:
    copied = [source for rest in _rest("COPY") if "--from" not in rest for source in rest.split()[:-1]]
    let_in = [line[1:] for line in (ROOT / ".dockerignore").read_text().splitlines() if line.startswith("!")]

    assert [source for source in copied if not (ROOT / source).exists()] == []
    assert sorted(copied) == sorted(let_in)


def test_nothing_is_installed_without_hashes_or_from_elsewhere() -> None:
    runs = [rest for rest in _rest("RUN") if " pip " in rest]

    assert runs
    assert [run for run in runs if "--require-hashes" not in run and "--no-index" not in run] == []


def test_every_required_package_is_pinned_and_hashed() -> None:
    for name in ("runtime", "history", "build", "spark"):
        text = (ROOT / "requirements" / f"{name}.txt").read_text().replace("\\\n", " ")
        lines = [line for line in text.splitlines() if line.strip() and not line.startswith("#")]

        assert lines
        assert [line for line in lines if "==" not in line or "--hash=sha256:" not in line] == []
