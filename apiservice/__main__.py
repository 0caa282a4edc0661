"""The command line: `serve`, `top`, `explain`, `doctor`, `validate` and `certificates`.

Each command imports what it needs, so that `--help` is fast."""

import datetime
import logging
from inspect import signature
from pathlib import Path
from typing import Annotated, Any, Literal

import typer

from adapter.command_line import new_command, run, version, whole_number
from apiservice import signals
from apiservice.flags import BootstrapServers, Config, DoctorFlags, Flags, Output, seconds

app = new_command("Kafka consumer lag for the native Kubernetes autoscaler.")


@app.command()
def serve(**options: Any) -> None:  # noqa: ANN401 - see Flags
    """Read consumer lag from the brokers and serve it as external and custom metrics, until SIGTERM."""
    flags, asked_to_end = Flags(**options), signals.noted()
    from apiservice import serving  # noqa: PLC0415 - see above
    from apiservice.logs import log_to_stderr  # noqa: PLC0415 - see above

    log_to_stderr(flags.log_level, flags.log_format)
    serving.run(flags, version(), asked_to_end)


serve.__signature__ = signature(Flags)  # type: ignore[attr-defined]  # typer makes the options of it


@app.command()
def top(
    config: Config = None,
    bootstrap_servers: BootstrapServers = None,
    interval: Annotated[
        float, typer.Option(parser=seconds, metavar="DURATION", show_default="2s", help="Time between two cycles.")
    ] = 2.0,
    after: Annotated[
        float,
        typer.Option(
            parser=seconds, metavar="DURATION", show_default="0s", help="Read for so long before the first table."
        ),
    ] = 0.0,
    *,
    once: Annotated[bool, typer.Option("--once", help="Show the groups once and end.")] = False,
    output: Annotated[Output, typer.Option(metavar="FORMAT", help="table, json or csv.")] = "table",
) -> None:
    """Show all groups, the most urgent first, without any Kubernetes cluster."""
    from apiservice.commands import top as command  # noqa: PLC0415 - see above

    if interval < 0.5:
        raise typer.BadParameter("must be at least 500ms", param_hint="--interval")
    logging.disable()  # what goes wrong is in the table, and lines in between would tear it
    command.run(
        command.Options(
            config=config,
            bootstrap_servers=bootstrap_servers,
            interval=interval,
            after=after,
            once=once,
            output=output,
        )
    )


@app.command()
def explain(
    group: Annotated[str, typer.Argument(metavar="GROUP", hidden=True)],  # else its type of Python is shown
    config: Config = None,
    bootstrap_servers: BootstrapServers = None,
    kubeconfig: Annotated[
        Path | None, typer.Option(metavar="FILE", help="Kubeconfig file, to show the HPAs that ask for the group.")
    ] = None,
    output: Annotated[Literal["text", "json"], typer.Option(metavar="FORMAT", help="text or json.")] = "text",
) -> None:
    """Explain the lag of the consumer group GROUP, partition by partition, and what HPAs make of it."""
    from apiservice.commands import explain as command  # noqa: PLC0415 - see above

    command.run(group, config, bootstrap_servers, kubeconfig, output)


@app.command()
def doctor(**options: Any) -> None:  # noqa: ANN401 - see DoctorFlags
    """Check what stands between the brokers, this adapter and an HPA; status 1 if something is wrong."""
    from apiservice.commands import doctor as command  # noqa: PLC0415 - see above

    logging.disable()  # what goes wrong is in the checks
    command.run(DoctorFlags(**options))


doctor.__signature__ = signature(DoctorFlags)  # type: ignore[attr-defined]  # as above


@app.command()
def validate(config: Annotated[Path, typer.Option(metavar="FILE", help="Settings file (YAML).")]) -> None:
    """Report every problem of a settings file, without a cluster and without opening the files that it names."""
    from adapter.metrics.definitions import SERVED  # noqa: PLC0415 - see above
    from adapter.settings.file import load  # noqa: PLC0415 - see above

    load(config, SERVED, opens_files=False)
    typer.echo(f"{config}: valid")


@app.command()
def certificates(
    namespace: Annotated[str, typer.Option(metavar="NAMESPACE", help="Namespace of the Service.")],
    service: Annotated[str, typer.Option(metavar="NAME", help="Name of the Service.")] = "kafka-lag-adapter",
    days: Annotated[
        int, typer.Option(parser=whole_number(1, 36500), metavar="DAYS", help="Validity of the certificate.")
    ] = 365,
    *,
    custom_metrics: Annotated[
        bool, typer.Option("--custom-metrics", help="Print the APIServices of custom metrics too.")
    ] = False,
) -> None:
    """Print a serving Secret and the APIService that trusts it, to pipe into `kubectl apply -f -`."""
    from adapter.settings.types import DNS_LABEL  # noqa: PLC0415 - see above
    from apiservice.api_group import API_GROUPS, EXTERNAL  # noqa: PLC0415 - see above
    from apiservice.tls.issuing import serving_manifests  # noqa: PLC0415 - see above

    for flag, name in (("--namespace", namespace), ("--service", service)):
        if not DNS_LABEL.fullmatch(name):
            raise typer.BadParameter(f"{name!r} is not a valid name of a Kubernetes object", param_hint=flag)
    groups, now = (API_GROUPS if custom_metrics else (EXTERNAL,)), datetime.datetime.now(datetime.UTC)
    typer.echo(serving_manifests(namespace, service, days, now, groups), nl=False)


def main(arguments: list[str] | None = None) -> None:
    run(app, "kafka-lag-adapter", arguments)


if __name__ == "__main__":
    main()
