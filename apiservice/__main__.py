"""The command line: `serve`, `validate` and `certificates`.

Each command imports what it needs, so that `--help` is fast."""

import ctypes
import datetime
import logging
import os
import re
import sys
import time
from enum import StrEnum
from pathlib import Path
from typing import Annotated, Any

import typer

from adapter.command_line import new_command, run, version, whole_number

LABEL = re.compile("[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?")  # RFC 1123: names of namespaces and Services

app = new_command("Kafka consumer lag for the native Kubernetes autoscaler.")
port = whole_number(0, 65535)


def seconds(text: str | float) -> float:
    """Parses a duration of an option; a default is a number already."""
    from adapter.settings.types import seconds_of  # noqa: PLC0415 - see above

    try:
        return text if isinstance(text, float) else seconds_of(text)
    except ValueError as error:
        raise typer.BadParameter(str(error)) from error


class LogLevel(StrEnum):
    DEBUG = "debug"
    INFO = "info"
    WARNING = "warning"
    ERROR = "error"


@app.command()
def serve(  # noqa: PLR0913, PLR0917 - one for each flag
    config: Annotated[Path | None, typer.Option(metavar="FILE", help="Settings file (YAML).")] = None,
    bootstrap_servers: Annotated[
        str | None, typer.Option(metavar="HOST:PORT[,HOST:PORT]", help="Watch this one cluster, instead of --config.")
    ] = None,
    bind_address: Annotated[
        str,
        typer.Option(
            metavar="ADDRESS",
            help="Address of the HTTPS server; :: means IPv6 and IPv4, as far as the machine has them.",
        ),
    ] = "::",
    secure_port: Annotated[
        int, typer.Option(parser=port, metavar="PORT", help="Port of the HTTPS server; 0 chooses a free one.")
    ] = 6443,
    tls_cert_file: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE", help="PEM file with the serving certificate and its chain; reloaded when it changes."
        ),
    ] = None,
    tls_private_key_file: Annotated[
        Path | None, typer.Option(metavar="FILE", help="PEM file with the certificate's private key.")
    ] = None,
    cert_dir: Annotated[
        Path | None,
        typer.Option(
            metavar="FOLDER",
            help="Folder for a self-signed certificate if no files are given. Default: the adapter manages "
            "certificates in the Secret SERVICE-serving or, outside a pod, a temporary folder.",
        ),
    ] = None,
    service: Annotated[
        str | None,
        typer.Option(
            metavar="[NAMESPACE/]NAME[:PORT]",
            help="Service through which kube-apiserver reaches this process. Default in a pod: kafka-lag-adapter:443.",
        ),
    ] = None,
    register: Annotated[  # noqa: FBT002 - typer's way to declare a flag
        bool, typer.Option(help="Create the APIService where there is none. Only with certificates from the Secret.")
    ] = True,
    kubeconfig: Annotated[
        Path | None, typer.Option(metavar="FILE", help="Kubeconfig file, required outside a cluster.")
    ] = None,
    metrics_bind_address: Annotated[
        str, typer.Option(metavar="ADDRESS", help="Address of the plain HTTP server for /metrics and health.")
    ] = "::",
    metrics_port: Annotated[
        int, typer.Option(parser=port, metavar="PORT", help="Port of the plain HTTP server; 0 chooses a free one.")
    ] = 8080,
    last_commits_config_map: Annotated[
        str | None,
        typer.Option(
            metavar="[NAMESPACE/]NAME",
            help="ConfigMap that keeps the last commits of groups over restarts. Default: they are not kept.",
        ),
    ] = None,
    shutdown_delay_duration: Annotated[
        float,
        typer.Option(
            parser=seconds,
            metavar="DURATION",
            help="After SIGTERM, serve for this long without being ready, such as 10s; default: 0s.",
            show_default=False,
        ),
    ] = 0.0,
    log_level: Annotated[
        LogLevel, typer.Option(metavar="LEVEL", help="Lowest level that is logged: debug, info, warning or error.")
    ] = LogLevel.INFO,
) -> None:
    """Read consumer lag from the brokers and serve it as external metrics, until SIGTERM."""
    log_to_stderr(log_level)
    # numpy multiplies no matrices here, so its threads would only cost memory.
    os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
    _share_one_heap()
    from apiservice import serving  # noqa: PLC0415 - see above

    flags = serving.Flags(
        config=config,
        bootstrap_servers=bootstrap_servers,
        bind_address=bind_address,
        secure_port=secure_port,
        tls_cert_file=tls_cert_file,
        tls_private_key_file=tls_private_key_file,
        cert_dir=cert_dir,
        service=service,
        register=register,
        kubeconfig=kubeconfig,
        metrics_bind_address=metrics_bind_address,
        metrics_port=metrics_port,
        last_commits_config_map=last_commits_config_map,
        shutdown_delay_duration=shutdown_delay_duration,
    )
    serving.run(flags, version())


@app.command()
def validate(config: Annotated[Path, typer.Option(metavar="FILE", help="Settings file (YAML).")]) -> None:
    """Report every problem of a settings file, without a cluster and without opening the files that it names."""
    from adapter.settings.file import load  # noqa: PLC0415 - see above

    load(config, opens_files=False)
    typer.echo(f"{config}: valid")


@app.command()
def certificates(
    namespace: Annotated[str, typer.Option(metavar="NAMESPACE", help="Namespace of the Service.")],
    service: Annotated[str, typer.Option(metavar="NAME", help="Name of the Service.")] = "kafka-lag-adapter",
    days: Annotated[
        int, typer.Option(parser=whole_number(1, 36500), metavar="DAYS", help="Validity of the certificate.")
    ] = 365,
) -> None:
    """Print a serving Secret and the APIService that trusts it, to pipe into `kubectl apply -f -`."""
    for flag, name in (("--namespace", namespace), ("--service", service)):
        if not LABEL.fullmatch(name):
            raise typer.BadParameter(f"{name!r} is not a valid name of a Kubernetes object", param_hint=flag)
    from apiservice.tls.issuing import serving_manifests  # noqa: PLC0415 - see above

    typer.echo(serving_manifests(namespace, service, days, datetime.datetime.now(datetime.UTC)), nl=False)


def _share_one_heap() -> None:
    """Makes all threads share one heap: glibc's heap per thread would waste about 3 MB."""
    if sys.platform == "linux":
        set_option = getattr(ctypes.CDLL(None), "mallopt", None)  # other C libraries lack it
        if set_option is not None:
            set_option(ctypes.c_int(-8), ctypes.c_int(1))  # M_ARENA_MAX


class EventFormatter(logging.Formatter):
    """One line for each event, and indented lines for its traceback: words of other servers may have line breaks."""

    def formatMessage(self, record: logging.LogRecord) -> str:  # noqa: N802 - the library's name
        return " ".join(super().formatMessage(record).splitlines())

    def formatException(self, ei: Any) -> str:  # noqa: N802, ANN401 - as above
        return "\n".join(f"  {line}" for line in super().formatException(ei).splitlines())


def log_to_stderr(level: LogLevel) -> None:
    formatter = EventFormatter("%(asctime)s.%(msecs)03dZ %(levelname)s %(name)s: %(message)s", "%Y-%m-%dT%H:%M:%S")
    formatter.converter = time.gmtime
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(formatter)
    # Other packages' lines repeat what we log as events, and at DEBUG they contain passwords and tokens.
    logging.basicConfig(level=logging.CRITICAL, handlers=[handler], force=True)
    for package in ("adapter", "apiservice"):
        logging.getLogger(package).setLevel(level.value.upper())


def main(arguments: list[str] | None = None) -> None:
    run(app, "kafka-lag-adapter", arguments)


if __name__ == "__main__":
    main()
