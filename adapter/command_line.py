"""What the commands have in common: the look of their help, their version and their errors."""

import importlib.metadata
import re
import sys
from collections.abc import Callable
from typing import Annotated, NoReturn

import typer
from typer.exceptions import TyperException

from adapter.errors import AdapterError


def new_command(description: str) -> typer.Typer:
    """Returns a command with `--version`, to which subcommands can be added."""
    command = typer.Typer(
        help=description,
        add_completion=False,
        no_args_is_help=True,
        pretty_exceptions_enable=False,
        rich_markup_mode=None,
    )

    @command.callback(help=description)
    def common(
        _is_version_asked: Annotated[  # noqa: FBT002 - typer's way to declare a flag
            bool, typer.Option("--version", callback=_show_version, is_eager=True, help="Show the version and exit.")
        ] = False,
    ) -> None:
        pass

    return command


def run(command: typer.Typer, name: str, arguments: list[str] | None = None) -> None:
    """Runs the command and ends the process; every problem of its arguments is one line on standard error."""
    try:
        sys.exit(command(arguments, prog_name=name, standalone_mode=False))
    except TyperException as error:
        context = getattr(error, "ctx", None)
        if context is not None and str(error) == context.get_help():
            typer.echo(error, err=True)
            sys.exit(2)
        _end(name, _sentence_of(error))
    except AdapterError as error:
        _end(name, str(error))


def whole_number(lowest: int, highest: int | None = None) -> Callable[[str], int]:
    """Returns a parser of an option's text."""
    limits = f"of at least {lowest}" if highest is None else f"from {lowest} to {highest}"

    def number(text: str | int) -> int:
        if not re.fullmatch(r"[0-9]{1,18}", str(text)) or not lowest <= int(text) <= (highest or int(text)):
            raise typer.BadParameter(f"is {str(text)!r}; must be a whole number {limits}")
        return int(text)

    return number


def version() -> str:
    return importlib.metadata.version("kafka-lag-adapter")


def _show_version(is_asked: bool) -> None:  # noqa: FBT001 - typer's way to call it
    if is_asked:
        typer.echo(version())
        raise typer.Exit


def _sentence_of(error: TyperException) -> str:
    """Words a refused value like a problem of the settings file."""
    text = error.format_message().replace("Value error, ", "").removesuffix(".")
    refused = re.fullmatch(r"Invalid value for '?(--[a-z-]+)[^:]*: (.*)", text, re.DOTALL)
    return f"{refused[1]}: {refused[2]}" if refused else text


def _end(name: str, text: str) -> NoReturn:
    for line in text.splitlines():
        typer.echo(f"{name}: {line}", err=True)
    sys.exit(2)
