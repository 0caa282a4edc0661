"""The shipped manifests: they hold together, and agree with what the commands take."""

import re
import shutil
import tomllib
from datetime import UTC, datetime
from pathlib import Path

import pytest
import yaml
from typer.main import get_group

from apiservice.__main__ import app
from apiservice.tls.issuing import serving_manifests
from local.manifests.check import MANIFESTS, RULES, gather, load, main, object_files, problems, read
from local.manifests.shipped import NAME, placed
from spark.cli import app as reports

ROOT = MANIFESTS.parent
DEPLOYMENT = "base/deployment.yaml"
API_SERVICE = "api-service/api-service-external.yaml"
JOB, BUCKET_JOB = "report/cron-job-report.yaml", "report-bucket/cron-job-report.yaml"
COMPACT, REPORT = (f"spark-operator/scheduled-spark-application-{name}.yaml" for name in ("compact", "report"))


def test_the_shipped_manifests_have_no_problem() -> None:
    assert problems() == []


def test_the_certificates_command_prints_the_api_service_of_the_file() -> None:
    text = serving_manifests("lag", read(MANIFESTS / "base/service.yaml")["metadata"]["name"], 1, datetime.now(UTC))

    printed = {found["kind"]: found for found in yaml.safe_load_all(text)}
    assert printed["APIService"]["spec"].pop("caBundle")
    assert printed["APIService"]["spec"] == placed(read(MANIFESTS / API_SERVICE), "lag")["spec"]
    assert printed["Secret"]["metadata"]["namespace"] == "lag"
    labels = read(MANIFESTS / API_SERVICE)["metadata"]["labels"] | {"app.kubernetes.io/managed-by": NAME}
    assert [found["metadata"]["labels"] for found in printed.values()] == [labels, labels]


def test_the_command_line_takes_the_arguments_of_the_deployment() -> None:
    command, *flags = read(MANIFESTS / DEPLOYMENT)["spec"]["template"]["spec"]["containers"][0]["args"]

    params = get_group(app).commands[command].make_context(command, flags).params  # raises on a flag it does not know

    assert params["config"] == Path("/etc/kafka-lag-adapter/settings/settings.yaml")
    assert (params["secure_port"], params["metrics_port"]) == (6443, 8080)
    assert (params["service"], params["tls_cert_file"]) == (NAME, None)


def test_objects_are_loaded_in_the_order_of_the_list() -> None:
    kinds = [found["kind"] for found in load()]

    assert kinds[0] == "Namespace"
    assert kinds.index("ServiceAccount") < kinds.index("Deployment")
    assert "APIService" not in kinds
    assert len(kinds) == 1 + len(read(MANIFESTS / "base/kustomization.yaml")["resources"])


@pytest.mark.parametrize("file", [JOB, BUCKET_JOB])
def test_the_command_line_takes_the_arguments_of_the_report(file: str) -> None:
    pod = read(MANIFESTS / file)["spec"]["jobTemplate"]["spec"]["template"]["spec"]
    for container in (*pod["initContainers"], *pod["containers"]):
        command, *flags = container["args"]
        get_group(reports).commands[command].make_context(command, flags)  # raises on a flag it does not know


@pytest.mark.parametrize("file", [COMPACT, REPORT])
def test_an_application_is_for_the_spark_that_is_pinned_and_takes_its_arguments(file: str) -> None:
    template = read(MANIFESTS / file)["spec"]["template"]
    command, *flags = template["arguments"]
    get_group(reports).commands[command].make_context(command, flags)  # raises on a flag it does not know

    assert f"pyspark=={template['sparkVersion']} " in (ROOT / "requirements" / "spark.txt").read_text()
    assert template["driver"]["env"] == template["executor"]["env"], "each process finds its own way into the bucket"


def test_the_chart_has_the_packages_version() -> None:
    version = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["version"]
    chart = yaml.safe_load((MANIFESTS / "Chart.yaml").read_text())

    assert (chart["name"], chart["version"], chart["appVersion"]) == ("kafka-lag-adapter", version, version)


def test_every_alert_leads_to_its_section() -> None:
    rules = read(MANIFESTS / "monitoring/prometheus-rule.yaml")["spec"]["groups"][0]["rules"]
    page = (ROOT / "docs" / "alerts.md").read_text()

    assert re.findall(r"^## (.+)$", page, re.MULTILINE) == [rule["alert"] for rule in rules]
    for rule in rules:
        assert rule["annotations"]["runbook_url"] == f"docs/alerts.md#{rule['alert'].lower()}"


def test_every_rule_speaks_where_nothing_is_left_of_the_objects_but_kind_and_name(tmp_path: Path) -> None:
    folder = Path(shutil.copytree(MANIFESTS, tmp_path / "manifests"))
    for path in object_files(folder):
        if path.name != "kustomization.yaml":
            path.write_text(f"{{apiVersion: v1, kind: {read(path)['kind']}, metadata: {{name: x}}}}")
    shrunk = gather(folder)

    # The first looks at a patch, which was not shrunk; the second at mounts, and none are left.
    silent = {rule.__name__ for rule in RULES if not [*rule(shrunk)]}
    assert silent == {"tls_secret_is_mounted_where_the_flags_look", "mounted_volumes_are_there"}


def test_the_check_names_each_problem_and_ends_with_1(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    folder = Path(shutil.copytree(MANIFESTS, tmp_path / "manifests"))
    (folder / "service.yaml").write_text("a: b")

    assert main(folder) == 1
    assert "manifests/service.yaml: kind is missing\n" in capsys.readouterr().err
