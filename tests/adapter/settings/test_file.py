"""The settings file, and the flag that stands for one."""

from pathlib import Path

import pytest

from adapter.errors import SettingsInvalid
from adapter.metrics.definitions import SERVED
from adapter.settings.file import from_bootstrap_servers, load
from adapter.settings.models import Isolation

WHOLE_FILE = """
clusters:
  - name: main
    bootstrapServers: [kafka-0:9092, "[::1]:9093"]
collection:
  interval: 5s
  maxAge: 1m30s
  groups: {include: ['bill.*'], exclude: ['billing-test']}
rules:
  - {group: billing, topics: [orders], offsetReset: earliest, isolation: read_committed}
  - {groups: '.*'}
metrics:
  - {name: billing-backlog, value: records_lag_max, group: 'Billing Service/eu', topics: [orders]}
"""


def test_a_whole_file_is_read(tmp_path: Path) -> None:
    path = tmp_path / "settings.yaml"
    path.write_text(WHOLE_FILE)
    settings = load(path, SERVED)

    assert settings.clusters[0].bootstrap_servers == ("kafka-0:9092", "[::1]:9093")
    assert (settings.collection.interval, settings.collection.max_age) == (5.0, 90.0)
    assert settings.rules[0].isolation is Isolation.READ_COMMITTED
    assert settings.rules[0].offset_reset == "earliest"
    assert settings.metrics[0].value == "records_lag_max"
    assert settings.metrics[0].group == "Billing Service/eu"


def load_text(tmp_path: Path, text: str | bytes) -> tuple[str, ...]:
    path = tmp_path / "settings.yaml"
    path.write_bytes(text if isinstance(text, bytes) else text.encode())
    with pytest.raises(SettingsInvalid) as caught:
        load(path, SERVED)
    return tuple(problem.removeprefix(f"{path}: ") for problem in caught.value.problems)


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("clusters: [\n", "line 2, column 1: expected the node content, but found '<stream end>'"),
        ("clusters: 1\nclusters: 2\n", "line 2, column 1: the key 'clusters' occurs twice"),
        (b"\xff\xfe\xff", "is not UTF-8 text"),
        ("", "must be a mapping with at least `clusters`"),
        ("- a\n", "must be a mapping with at least `clusters`"),
        ("{}", "clusters: is missing"),
        ("{[a, b]: c}", "line 1, column 2: found unhashable key"),
        ("clusters: !!python/object:os.system []", "could not determine a constructor"),
        ("clusters: []\nrules: !!bool maybe", "line 2, column 8: YAML cannot read this value: 'maybe'"),
        ("clusters: " + "9" * 5000, "line 1, column 11: YAML cannot read this value"),
        ("[" * 20_000, "is nested too deeply"),
        ("clusters: \0", "contains the character U+0000, which YAML forbids"),
    ],
)
def test_a_file_that_is_no_settings_file_is_refused_with_its_path(
    tmp_path: Path, text: str | bytes, words: str
) -> None:
    (problem,) = load_text(tmp_path, text)

    assert words in problem


def test_a_file_that_does_not_exist_is_refused(tmp_path: Path) -> None:
    with pytest.raises(SettingsInvalid, match=r"absent.yaml: No such file or directory"):
        load(tmp_path / "absent.yaml", SERVED)


def test_problems_of_a_file_begin_with_its_path(tmp_path: Path) -> None:
    path = tmp_path / "settings.yaml"
    path.write_text("clusters: []\nrule: []\n")
    with pytest.raises(SettingsInvalid) as caught:
        load(path, SERVED)

    assert caught.value.problems == (
        f"{path}: clusters: must not be empty",
        f"{path}: rule: is not a known key; did you mean 'rules'?",
    )


def test_every_problem_is_in_one_message_whatever_its_kind(tmp_path: Path) -> None:
    problems = load_text(
        tmp_path,
        """
        clusters:
          - {name: main, bootstrapServers: [kafka-0:9092]}
          - {name: main, bootstrapServers: [kafka]}
        collection: {interval: 2026-13-45}
        rule: []
        metrics:
          - {name: backlog, group: billing, value: lagg, cluster: eu}
          - {name: Backlog, value: lag, cluster: main}
          - 5
        """,
    )

    assert sorted(problem.split(": ")[0] for problem in problems) == [
        "clusters[1].bootstrapServers[0]",
        "clusters[1].name",
        "collection.interval",
        "metrics[0].cluster",
        "metrics[0].value",
        "metrics[1].group",
        "metrics[1].name",
        "metrics[2]",
        "rule",
    ]


def test_bootstrap_servers_mean_one_cluster_named_main() -> None:
    settings = from_bootstrap_servers("kafka-0:9092, kafka-1:9092,")

    assert settings.clusters[0].name == "main"
    assert settings.clusters[0].bootstrap_servers == ("kafka-0:9092", "kafka-1:9092")


@pytest.mark.parametrize(
    ("text", "problems"),
    [
        ("kafka", ("--bootstrap-servers: 'kafka' is not HOST:PORT",)),
        (",", ("--bootstrap-servers: does not name a server",)),
        ("a, b:1, c", ("--bootstrap-servers: 'a' is not HOST:PORT", "--bootstrap-servers: 'c' is not HOST:PORT")),
    ],
)
def test_invalid_bootstrap_servers_are_reported_with_their_flag(text: str, problems: tuple[str, ...]) -> None:
    with pytest.raises(SettingsInvalid) as caught:
        from_bootstrap_servers(text)

    assert caught.value.problems == problems
