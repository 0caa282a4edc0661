"""A Prometheus on 127.0.0.1 that scrapes what it is given every second, and promtool; both from Debian's package.

The commands on PATH are used if they are there, and otherwise apt-get brings the package, which is not installed."""

import contextlib
import shutil
import subprocess
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import urllib3
import yaml

from local.downloads import cached
from local.manifests.check import MANIFESTS, read
from local.processes import Process, RigError, free_port, start, wait_until
from local.steps import run_step

PACKAGE = "prometheus"
NEEDS_BYTES = 150 * 1024**2
START_TIMEOUT_SECONDS = 180.0


@dataclass(frozen=True, slots=True)
class Prometheus:
    process: Process
    url: str

    def query(self, expression: str) -> list[tuple[dict[str, str], float]]:
        """Returns labels and value of each series now; raises RigError if the expression is refused."""
        document = self._get("query", {"query": expression})
        return [(each["metric"], float(each["value"][1])) for each in document["result"]]

    def query_range(
        self, expression: str, begin: float, end: float, step_seconds: float
    ) -> list[tuple[dict[str, str], list[tuple[float, float]]]]:
        """Returns labels of each series, and Unix times with values; raises RigError if the expression is refused."""
        asked = {"query": expression, "start": str(begin), "end": str(end), "step": str(step_seconds)}
        found = self._get("query_range", asked)["result"]
        return [(each["metric"], [(at, float(value)) for at, value in each["values"]]) for each in found]

    def targets(self) -> dict[str, str]:
        """Returns the error of each job's last scrape; empty if it worked."""
        return {each["labels"]["job"]: each["lastError"] for each in self._get("targets", {})["activeTargets"]}

    def _get(self, path: str, fields: Mapping[str, str]) -> dict[str, Any]:
        answer = urllib3.request("GET", f"{self.url}/api/v1/{path}", fields=fields, timeout=30.0, retries=False)
        document = answer.json()
        if document["status"] != "success":
            raise RigError(f"Prometheus refuses {dict(fields)}: {document['error']}")
        data: dict[str, Any] = document["data"]
        return data


@contextlib.contextmanager
def prometheus(home: Path, jobs: Sequence[Mapping[str, Any]], rules: Path | None = None) -> Iterator[Prometheus]:
    """Runs one with these `scrape_configs`, and with a file of rules. Raises RigError."""
    home.mkdir(parents=True)
    configuration = home / "prometheus.yml"
    document = {
        "global": {"scrape_interval": "1s", "evaluation_interval": "1s"},
        "scrape_configs": list(jobs),
        "rule_files": [] if rules is None else [str(rules)],
    }
    configuration.write_text(yaml.safe_dump(document))
    port = free_port()
    flags = {
        "config.file": configuration,
        "storage.tsdb.path": home / "data",
        "web.listen-address": f"127.0.0.1:{port}",
    }
    command = [str(_programs()[0]), *(f"--{flag}={value}" for flag, value in flags.items())]
    with start("Prometheus", command, log=home / "prometheus.log") as process:
        running = Prometheus(process, f"http://127.0.0.1:{port}")
        wait_until(lambda: _is_ready(running), "Prometheus", START_TIMEOUT_SECONDS, alive=[process])
        yield running


def shipped_alerts(folder: Path) -> Path:
    """Returns the shipped alerts in a file of the folder; they do not wait until they fire."""
    spec = read(MANIFESTS / "monitoring/prometheus-rule.yaml")["spec"]
    for rule in (rule for group in spec["groups"] for rule in group["rules"]):
        rule.pop("for", None)
    file = folder / "alerts.yml"
    file.write_text(yaml.safe_dump(spec))
    return file


def problems_of_metrics(text: bytes) -> str:
    """Returns what `promtool check metrics` says of a page of metrics; empty if it is content."""
    return _promtool("check", "metrics", given=text)


def problems_of_rules(tests: Path) -> str:
    """Returns what `promtool test rules` says of a file with tests; empty if all pass."""
    return _promtool("test", "rules", str(tests))


def _promtool(*arguments: str, given: bytes | None = None) -> str:
    ended = subprocess.run([str(_programs()[1]), *arguments], input=given, capture_output=True, check=False)
    output = (ended.stdout + ended.stderr).decode()
    return output if ended.returncode != 0 or "check" in arguments else ""


def _is_ready(running: Prometheus) -> bool:
    try:
        return urllib3.request("GET", f"{running.url}/-/ready", timeout=5.0, retries=False).status == 200
    except urllib3.exceptions.HTTPError:
        return False  # not listening yet


def _programs() -> tuple[Path, Path]:
    """Returns prometheus and promtool."""
    found = [shutil.which(name) for name in ("prometheus", "promtool")]
    if found[0] and found[1]:
        return Path(found[0]), Path(found[1])
    programs = cached("prometheus-of-debian", NEEDS_BYTES, _bring) / "usr/bin"
    return programs / "prometheus", programs / "promtool"


def _bring(target: Path) -> None:
    if shutil.which("apt-get") is None:
        raise RigError("Prometheus is neither on PATH nor can Debian's package be had: there is no apt-get.")
    log = target.with_name("log")
    what = "downloading Prometheus, Debian's package (19 MB; some seconds)"
    run_step(what, ["apt-get", "download", PACKAGE], log, cwd=target.parent)
    (package,) = target.parent.glob(f"{PACKAGE}_*.deb")
    run_step("unpacking Prometheus", ["dpkg-deb", "--extract", str(package), str(target)], log)
