"""The flags of `serve` and `doctor`: typer reads from the fields how to parse and describe them.

Imports nothing heavy, so that `--help` is fast."""

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

import typer

from adapter.command_line import whole_number

if TYPE_CHECKING:
    from adapter.settings.models import Settings

LogLevel = Literal["debug", "info", "warning", "error"]
LogFormat = Literal["text", "json"]
Output = Literal["table", "json", "csv"]

TWICE = "--config and --bootstrap-servers cannot be used together"

port = whole_number(0, 65535)


def seconds(text: str | float) -> float:
    """Parses a duration of an option; a default is a number already."""
    from adapter.settings.types import seconds_of  # noqa: PLC0415 - see the module

    try:
        return text if isinstance(text, float) else seconds_of(text)
    except ValueError as error:
        raise typer.BadParameter(str(error)) from error


Config = Annotated[Path | None, typer.Option(metavar="FILE", help="Settings file (YAML).")]
BootstrapServers = Annotated[
    str | None, typer.Option(metavar="HOST:PORT[,HOST:PORT]", help="Watch this one cluster, instead of --config.")
]


def given_settings(config: Path | None, bootstrap_servers: str | None) -> "Settings":
    """Returns the settings that these flags give. Raises SettingsInvalid."""
    from adapter.errors import SettingsInvalid  # noqa: PLC0415 - see the module
    from adapter.metrics.definitions import SERVED  # noqa: PLC0415 - see the module
    from adapter.settings import file  # noqa: PLC0415 - see the module

    match config, bootstrap_servers:
        case None, None:
            raise SettingsInvalid(("--config FILE or --bootstrap-servers HOST:PORT is required",))
        case Path(), None:
            return file.load(config, SERVED)
        case None, str():
            return file.from_bootstrap_servers(bootstrap_servers)
    raise SettingsInvalid((TWICE,))


@dataclass(frozen=True, slots=True, kw_only=True)
class Flags:
    config: Config = None
    bootstrap_servers: BootstrapServers = None
    bind_address: Annotated[
        str, typer.Option(metavar="ADDRESS", help="Address of the HTTPS server; :: means IPv6 and IPv4.")
    ] = "::"
    secure_port: Annotated[
        int, typer.Option(parser=port, metavar="PORT", help="Port of the HTTPS server; 0 chooses a free one.")
    ] = 6443
    tls_cert_file: Annotated[
        Path | None, typer.Option(metavar="FILE", help="PEM certificate and its chain; reloaded when it changes.")
    ] = None
    tls_private_key_file: Annotated[
        Path | None, typer.Option(metavar="FILE", help="PEM file with the certificate's private key.")
    ] = None
    cert_dir: Annotated[
        Path | None,
        typer.Option(
            metavar="FOLDER",
            help="Folder for a self-signed certificate if no files are given. Default: the adapter manages "
            "certificates in the Secret SERVICE-serving or, outside a pod, a temporary folder.",
        ),
    ] = None
    service: Annotated[
        str | None,
        typer.Option(
            metavar="[NAMESPACE/]NAME[:PORT]",
            help="Service through which kube-apiserver reaches this process. Default in a pod: kafka-lag-adapter:443.",
        ),
    ] = None
    register: Annotated[
        bool, typer.Option(help="Create the APIService where there is none. Only with certificates from the Secret.")
    ] = True
    kubeconfig: Annotated[
        Path | None, typer.Option(metavar="FILE", help="Kubeconfig file, required outside a cluster.")
    ] = None
    metrics_bind_address: Annotated[
        str, typer.Option(metavar="ADDRESS", help="Address of the plain HTTP server for /metrics and health.")
    ] = "::"
    metrics_port: Annotated[
        int, typer.Option(parser=port, metavar="PORT", help="Port of the plain HTTP server; 0 chooses a free one.")
    ] = 8080
    last_commits_config_map: Annotated[
        str | None, typer.Option(metavar="[NAMESPACE/]NAME", help="ConfigMap that keeps last commits over restarts.")
    ] = None
    shutdown_delay_duration: Annotated[
        float, typer.Option(parser=seconds, metavar="DURATION", show_default="0s", help="Time to serve after SIGTERM.")
    ] = 0.0
    log_level: Annotated[
        LogLevel, typer.Option(metavar="LEVEL", help="Lowest level that is logged: debug, info, warning or error.")
    ] = "info"
    log_format: Annotated[
        LogFormat,
        typer.Option(metavar="FORMAT", help="text, or json: one object for each line, with a count of its kind."),
    ] = "text"


@dataclass(frozen=True, slots=True, kw_only=True)
class DoctorFlags:
    """Those of `doctor`."""

    config: Config = None
    bootstrap_servers: BootstrapServers = None
    kubeconfig: Annotated[
        Path | None, typer.Option(metavar="FILE", help="Kubeconfig file, to check Kubernetes and HPAs as well.")
    ] = None
    hpa: Annotated[
        str | None, typer.Option(metavar="NAME", help="Check this HPA instead of all that read metrics of the adapter.")
    ] = None
    namespace: Annotated[
        str | None,
        typer.Option(
            "--namespace", "-n", metavar="NAMESPACE", help="Namespace of the HPAs. Default: all; with --hpa, default."
        ),
    ] = None
    service: Annotated[
        str | None,
        typer.Option(metavar="[NAMESPACE/]NAME", help="Service of the adapter, if its name is not kafka-lag-adapter."),
    ] = None
    after: Annotated[
        float, typer.Option(parser=seconds, metavar="DURATION", show_default="0s", help="Watch commits for so long.")
    ] = 0.0
    category: Annotated[
        list[str] | None, typer.Option(metavar="NAME", help="Show only the checks of this category; may be repeated.")
    ] = None
    pre: Annotated[bool, typer.Option("--pre", help="Check what an installation needs, before it.")] = False
    output: Annotated[Literal["text", "json"], typer.Option(metavar="FORMAT", help="text or json.")] = "text"
