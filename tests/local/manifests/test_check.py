"""The shipped manifests: they hold together, and agree with what the commands take."""

import re
import shutil
import subprocess
import sys
import tomllib
from datetime import UTC, datetime
from pathlib import Path

import pytest
import yaml
from typer.main import get_group

from apiservice.__main__ import app
from apiservice.tls.issuing import serving_manifests
from local.manifests.check import MANIFESTS, load, problems, read
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


def test_the_check_says_one_line_and_ends_with_0() -> None:
    run = subprocess.run(
        [sys.executable, "-m", "local.manifests.check"], cwd=ROOT, capture_output=True, text=True, check=False
    )

    assert (run.returncode, run.stderr) == (0, "")
    assert re.fullmatch(r"\d+ manifests agree .*\n", run.stdout)


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


def test_a_schema_of_the_values_that_lacks_a_setting_is_a_problem(tmp_path: Path) -> None:
    folder = Path(shutil.copytree(MANIFESTS, tmp_path / "manifests"))
    file = folder / "values.schema.json"
    file.write_text(file.read_text().replace('"offsetReset"', '"offsetRest"'))

    (problem,) = problems(folder)
    assert problem.startswith("values.schema.json: differs from the settings' models")


@pytest.mark.parametrize(
    ("old", "new", "said"),
    [
        ("replicas: 2", "replicas: 3", "README.md: differs from values.yaml"),
        ("port: 6443 # kube", "port: 6443\n# kube", "values.yaml: `port` has no comment"),
    ],
)
def test_a_page_of_the_values_that_is_out_of_date_is_a_problem(tmp_path: Path, old: str, new: str, said: str) -> None:
    folder = Path(shutil.copytree(MANIFESTS, tmp_path / "manifests"))
    file = folder / "values.yaml"
    assert old in file.read_text()
    file.write_text(file.read_text().replace(old, new))

    assert any(problem.startswith(said) for problem in problems(folder))


def test_every_alert_leads_to_its_section() -> None:
    rules = read(MANIFESTS / "monitoring/prometheus-rule.yaml")["spec"]["groups"][0]["rules"]
    page = (ROOT / "docs" / "alerts.md").read_text()

    assert re.findall(r"^## (.+)$", page, re.MULTILINE) == [rule["alert"] for rule in rules]
    for rule in rules:
        assert rule["annotations"]["runbook_url"] == f"docs/alerts.md#{rule['alert'].lower()}"
