"""The command line: progress as a line that lives on a terminal and plain lines elsewhere; its place."""

import importlib.metadata
import io
import re
import subprocess
import sys
from pathlib import Path
from unittest.mock import Mock

import pytest
import typer
from rich.console import Console
from typer.testing import CliRunner

from apiservice.__main__ import app as serving
from spark.cli import _progress, main
from spark.cli import app as reporting
from spark.errors import said_by
from spark.shutdown import Ending


def test_on_a_terminal_the_stage_under_way_stands_in_a_line_that_is_cleared_at_the_end() -> None:
    shown = io.StringIO()
    with _progress(Console(file=shown, force_terminal=True, highlight=False, width=80)) as (say, _):
        say("reading [the] tables")
        say("deciding")
    stays, *lives = shown.getvalue().split("deciding")

    assert "reading [the] tables\n" in stays
    assert lives[0].startswith("\n")
    assert len(lives) >= 2, "once as a line that stays, and once beside the spinner"
    assert lives[-1].endswith("\x1b[2K")


def test_elsewhere_each_stage_is_a_plain_line(capsys: pytest.CaptureFixture[str]) -> None:
    with _progress(Console(file=io.StringIO(), force_terminal=False)) as (say, show):
        say("reading [the] tables")
        say("deciding")

    assert show is None, "nothing takes the place of a line"
    assert capsys.readouterr().err == "reading [the] tables\ndeciding\n"


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (("reprot",), "No such command 'reprot'. Did you mean 'report'?"),
        (("compact",), "Missing option '--history'"),
        (("compact", "--histroy", "x"), "No such option: --histroy (Possible options: --history)"),
        (
            ("compact", "--history", "x", "--driver-memory", "lots"),
            "--driver-memory: is 'lots'; must be a size such as 4g or 512m",
        ),
        (
            ("report", "--history", "x", "--output", "y", "--threshold", "0"),
            "--threshold: is '0'; must be a whole number of at least 1",
        ),
        (
            ("compact", "--history", "x", "--until", "soon"),
            "--until: is 'soon'; must be a time such as 2026-11-20T07:00",
        ),
        (("compact", "--history", __file__), f"{__file__} is not a folder"),
        (("compact", "--history", "s3://bucket/x"), "s3://bucket/x: no region is given; set AWS_REGION"),
    ],
)
def test_arguments_that_cannot_be_meant_are_refused_in_one_line(
    arguments: tuple[str, ...], sentence: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(sys, "argv", ["kafka-lag-report", *arguments])
    monkeypatch.setattr("spark.cli.Ending", lambda: Mock(spec=Ending))  # signals belong to pytest
    for name in ("AWS_REGION", "AWS_DEFAULT_REGION", "AWS_ENDPOINT_URL", "AWS_ENDPOINT_URL_S3"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("AWS_CONFIG_FILE", "/none")
    with pytest.raises(SystemExit) as ended:
        main()

    assert ended.value.code == 2
    assert capsys.readouterr() == ("", f"kafka-lag-report: {sentence}\n")


@pytest.mark.parametrize(
    ("error", "sentence"),
    [
        (PermissionError(13, "Permission denied", "/history/hourly"), "/history/hourly: Permission denied"),
        (
            PermissionError(13, "Failed to open local file '/history/x'. Detail: [errno 13] Permission denied"),
            "Failed to open local file '/history/x': Permission denied",
        ),
        (OSError("the socket is closed\nand more"), "the socket is closed"),
    ],
)
def test_a_failure_of_the_system_is_a_sentence_without_its_number(error: OSError, sentence: str) -> None:
    assert said_by(error) == sentence


@pytest.mark.parametrize("command", [serving, reporting])
def test_help_names_every_value_and_shows_no_type_of_python(command: typer.Typer) -> None:
    shown = [
        CliRunner().invoke(command, [str(each.name or each.callback.__name__), "--help"]).output
        for each in command.registered_commands
        if each.callback
    ]

    assert all("Usage: " in each for each in shown)
    assert not [line for each in shown for line in each.splitlines() if "<" in line]


def test_both_commands_have_one_version(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setattr(sys, "argv", ["kafka-lag-report", "--version"])
    with pytest.raises(SystemExit) as ended:
        main()

    assert not ended.value.code
    assert capsys.readouterr().out == f"{importlib.metadata.version('kafka-lag-adapter')}\n"


def test_no_module_beside_main_hides_one_of_the_standard_library() -> None:
    """spark-submit runs `spark/__main__.py` by its path, which puts that folder first on the module path."""
    beside = {path.stem for path in (Path(__file__).parents[2] / "spark").iterdir()}

    assert "cli" in beside
    assert not beside & sys.stdlib_module_names


def test_without_pyspark_the_command_names_the_image_that_has_it() -> None:
    code = "import sys; sys.modules['pyspark'] = None; from spark.__main__ import main; main()"
    ended = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)

    assert ended.returncode == 2
    assert re.match(r"kafka-lag-report: pyspark\S* is not installed; use the image that `docker build", ended.stderr)
