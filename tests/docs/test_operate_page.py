"""docs/operate.md shows commands that `python -m local.incidents` runs, so that their output can be recorded anew."""

import re
from pathlib import Path

import pytest

from local.incidents.__main__ import COMMANDS
from local.manifests.shipped import NAME

PAGE = (Path(__file__).parents[2] / "docs/operate.md").read_text()


@pytest.mark.parametrize("incident", COMMANDS)
def test_every_command_of_an_incident_is_run_by_the_program(incident: str) -> None:
    section = PAGE.partition(f"\n## {incident}\n")[2].partition("\n## ")[0]
    shown = re.findall(rf"^\$ {NAME} (.+)$", section, re.MULTILINE)

    assert shown
    assert set(shown) <= set(COMMANDS[incident])


def test_the_page_has_the_incidents_of_the_program() -> None:
    assert re.findall(r"^## (.+)$", PAGE, re.MULTILINE) == [*COMMANDS]
