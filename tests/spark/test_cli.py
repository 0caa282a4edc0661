"""The command line: progress as a line that lives on a terminal and plain lines elsewhere; its place."""

import io
import sys
from pathlib import Path

import pytest
from rich.console import Console

from spark.cli import _progress


def test_on_a_terminal_the_stage_under_way_stands_in_a_line_that_is_cleared_at_the_end() -> None:
    shown = io.StringIO()
    with _progress(Console(file=shown, force_terminal=True, highlight=False, width=80)) as say:
        say("reading [the] tables")
        say("deciding")
    stays, *lives = shown.getvalue().split("deciding")

    assert "reading [the] tables\n" in stays
    assert lives[0].startswith("\n")
    assert len(lives) >= 2, "once as a line that stays, and once beside the spinner"
    assert lives[-1].endswith("\x1b[2K")


def test_elsewhere_each_stage_is_a_plain_line(capsys: pytest.CaptureFixture[str]) -> None:
    with _progress(Console(file=io.StringIO(), force_terminal=False)) as say:
        say("reading [the] tables")
        say("deciding")

    assert capsys.readouterr().err == "reading [the] tables\ndeciding\n"


def test_no_module_beside_main_hides_one_of_the_standard_library() -> None:
    """spark-submit runs `spark/__main__.py` by its path, which puts that folder first on the module path."""
    beside = {path.stem for path in (Path(__file__).parents[2] / "spark").iterdir()}

    assert "cli" in beside
    assert not beside & sys.stdlib_module_names
