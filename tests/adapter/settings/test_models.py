"""Settings: what is accepted, and that all problems are reported at once, each with its place."""

from pathlib import Path

import pytest

from adapter.errors import shown
from adapter.location import FORMS
from adapter.metrics.definitions import SERVED
from adapter.settings.file import parse
from adapter.settings.security import Protocol
from tests.support import samples
from tests.support.samples import settings_problems

VALUES = ", ".join(dict.fromkeys(SERVED.values()))
DNS_LABEL = "must be at most 63 lower-case letters, digits and '-', with a letter or digit at both ends"
UPSTREAM = {"service": "keda", "namespace": "keda", "caFile": "/absent/ca.crt"}


def test_what_is_left_out_has_its_default() -> None:
    settings = samples.settings()

    assert (settings.collection.interval, settings.collection.max_age) == (10.0, 60.0)
    assert settings.clusters[0].security.protocol is Protocol.PLAINTEXT


@pytest.mark.parametrize("named", [{"group": "a", "topics": ["b"]}, {"group": "a"}, {"groups": "a.*", "topics": ["b"]}])
@pytest.mark.parametrize("reset", ["latest", "earliest"])
def test_an_offset_reset_that_changes_what_counts_makes_other_settings(named: dict[str, object], reset: str) -> None:
    without, with_it = (samples.settings(rules=[{**named, **more}]) for more in ({}, {"offsetReset": reset}))
    counts = [[one.rules[0].counts_from_start(is_named=it) for it in (False, True)] for one in (without, with_it)]

    assert counts[0] == ["group" in named and "topics" in named, True]
    assert counts[1] == [reset == "earliest"] * 2
    assert counts[0] == counts[1] or without != with_it


def test_internal_topics_are_not_watched_and_every_other_name_is() -> None:
    collection = samples.settings().collection

    assert not collection.topics.watches("__consumer_offsets")
    assert collection.topics.watches("orders")
    assert collection.groups.watches("__group")


def test_patterns_match_whole_names_and_exclusion_wins() -> None:
    names = {"include": ["bill", "ship.*"], "exclude": ["ship-old"]}
    watches = samples.settings(collection={"groups": names}).collection.groups.watches

    assert [name for name in ("bill", "billing", "shipping", "ship-old", "old") if watches(name)] == [
        "bill",
        "shipping",
    ]


def test_all_problems_are_reported_at_once_each_with_its_place() -> None:
    found = settings_problems(
        clusters=[samples.cluster("main"), {"name": "eu", "bootstrapServers": ["kafka"]}],
        collection={"interval": 10, "groups": {"include": ["("]}},
        rules=[{"group": "a"}, {}, {"group": "b", "offsetReset": "newest", "isolaton": "x"}],
        metrics=[{"name": "-x", "value": "lag", "group": "", "cluster": "eu"}],
        colection={},
    )

    assert sorted(problem.split(": ", 1)[0] for problem in found) == [
        "clusters[1].bootstrapServers[0]",
        "colection",
        "collection.groups.include[0]",
        "collection.interval",
        "metrics[0].group",
        "metrics[0].name",
        "rules[1]",
        "rules[2].isolaton",
        "rules[2].offsetReset",
    ]


def test_patterns_keep_their_flags_and_numbers_to_themselves() -> None:
    names = {"include": ["(?i)bill", "(?x)ship  # ped", r"(a)\1", r"(?P<x>b)(?P=x)", r"(?P<x>c)(?P=x)"]}
    watches = samples.settings(collection={"groups": names}).collection.groups.watches

    assert [name for name in ("BILL", "SHIP", "ship", "aa", "ab", "bb", "cc", "bc") if watches(name)] == [
        *("BILL", "ship", "aa", "bb", "cc")
    ]


@pytest.mark.parametrize(
    ("pattern", "words"),
    [("a{99999999999999999999}", "repetition number is too large"), ("(" * 5000 + ")" * 5000, "recursion")],
)
def test_a_pattern_beyond_what_can_be_compiled_is_refused(pattern: str, words: str) -> None:
    (problem,) = settings_problems(collection={"groups": {"include": [pattern]}})

    assert problem.startswith(f"collection.groups.include[0]: {shown(pattern)} is not a regular expression: ")
    assert words in problem


@pytest.mark.parametrize(
    ("parts", "problem"),
    [
        ({"clusters": []}, "clusters: must not be empty"),
        ({"clusters": [{"name": "main"}]}, "clusters[0].bootstrapServers: is missing"),
        ({"collection": {"interval": "0s"}}, "collection.interval: is '0s'; must be between 1s and 1h"),
        (
            {"collection": {"interval": "1"}},
            "collection.interval: is '1'; must be a duration such as 10s, 1m30s or 30d",
        ),
        (
            {"collection": {"interval": "9s5"}},
            "collection.interval: is '9s5'; must be a duration such as 10s, 1m30s or 30d",
        ),
        (
            {"collection": {"interval": "9" * 400 + "s"}},
            f"collection.interval: is '{'9' * 79}…; must be a duration such as 10s, 1m30s or 30d",
        ),
        ({"rules": [{"group": "x" * 40_000}]}, f"rules[0].group: is '{'x' * 79}…; must have at most 8191 characters"),
        ({"collection": {"maxAge": "10s"}}, "collection: maxAge (10s) must be longer than interval (10s)"),
        ({"rules": [{}]}, "rules[0]: needs either group (a name) or groups (a regular expression)"),
        ({"rules": [{"group": "a", "topics": []}]}, "rules[0].topics: must not be empty"),
        ({"rules": [{"group": "a", "topics": ["x y"]}]}, "rules[0].topics[0]: 'x y' is not a valid topic name"),
        ({"rules": {"group": "a"}}, "rules: is {'group': 'a'}; must be a list"),
        ({"rules": ["a"]}, "rules[0]: is 'a'; must be a mapping"),
        (
            {"rules": [{"group": "a", "offset_reset": "latest"}]},
            "rules[0].offset_reset: is not a known key; did you mean 'offsetReset'?",
        ),
        ({"rules": [{"group": "a", "xyzzy": "secret"}]}, "rules[0].xyzzy: is not a known key"),
        (
            {"rules": [{"group": "a", "offsetReset": "newest"}]},
            "rules[0].offsetReset: is 'newest'; must be 'latest' or 'earliest'",
        ),
        (
            {"rules": [{"group": "a", "offsetReset": "Earlyest"}]},
            "rules[0].offsetReset: is 'Earlyest'; must be 'latest' or 'earliest'; did you mean 'earliest'?",
        ),
        (
            {"clusters": [samples.cluster("main") | {"security": {"mecanism": "PLAIN"}}]},
            "clusters[0].security.mecanism: is not a known key; did you mean 'mechanism'?",
        ),
        (
            {"clusters": [samples.cluster("main") | {"name": 5}]},
            "clusters[0].name: is 5; must be text; put it in quotes",
        ),
        (
            {"rules": [{"group": "a", "offsetResetPolicy": "latest"}]},
            "rules[0].offsetResetPolicy: is not a known key; did you mean 'offsetReset'?",
        ),
        (
            {"rules": [{"consumerGroup": "a", "group": "a"}]},
            "rules[0].consumerGroup: is not a known key; did you mean 'group'?",
        ),
        ({"clusters": [samples.cluster("main") | {"name": b"\x80"}]}, "clusters[0].name: is b'\\x80'; must be text"),
        ({"metrics": [{"name": "x", "value": "lag"}]}, "metrics[0].group: is missing"),
        (
            {"history": {"retention": "30d"}},
            "history: no other key has an effect without location",
        ),
        (
            {"history": {"location": "/history", "flushInterval": "9s"}},
            "history.flushInterval: is '9s'; must be between 10s and 1h",
        ),
        (
            {"history": {"location": "/history", "flushInterval": "61m"}},
            "history.flushInterval: is '61m'; must be between 10s and 1h",
        ),
        (
            {"history": {"location": "/history", "retention": "23h"}},
            "history.retention: is '23h'; must be between 1d and 3650d",
        ),
        (
            {"upstream": {**UPSTREAM, "service": "Keda.svc"}},
            f"upstream.service: 'Keda.svc' {DNS_LABEL}",
        ),
        ({"upstream": {**UPSTREAM, "port": 0}}, "upstream.port: is 0; must be at least 1"),
        ({"upstream": {**UPSTREAM, "insecure": True}}, "upstream.insecure: is not a known key"),
        ({"upstream": {**UPSTREAM, "cafile": "x"}}, "upstream.cafile: is not a known key; did you mean 'caFile'?"),
        (
            {"upstream": UPSTREAM},
            "upstream: caFile /absent/ca.crt cannot be read: No such file or directory",
        ),
        ({"upstream": {**UPSTREAM, "caFile": __file__}}, f"upstream: caFile {__file__} contains no PEM certificates"),
        ({"upstream": {"service": "a", "namespace": "b"}}, "upstream.caFile: is missing"),
        ({"history": {"location": "/"}}, "history.location: '/' must be a folder of its own, without '..'"),
        ({"history": {"location": "s3://B"}}, "history.location: 's3://B' is not a valid bucket"),
        ({"history": {"location": "s3://KEY:SE/CRET@b/h"}}, "history.location: …@b/h' is not a valid bucket"),
        ({"history": {"location": "gs://K:SECRET@b/h"}}, "history.location: …@b/h' is not a valid bucket"),
        (
            {"history": {"location": "s3://bucket/a//b"}},
            "history.location: 's3://bucket/a//b': the prefix must be parts of letters, digits, '-', '_', '.' and '='",
        ),
        (
            {"history": {"location": "history"}},
            f"history.location: 'history' is neither an absolute path nor {FORMS}",
        ),
        ({"autoscalers": {"scaleToZero": "yes"}}, "autoscalers.scaleToZero: is 'yes'; must be true or false"),
        ({"customMetrics": {"register": "true"}}, "customMetrics.register: is 'true'; must be true or false"),
        (
            {"history": {"location": "hdfs://name/h"}},
            f"history.location: 'hdfs://name/h' is neither a path nor {FORMS}",
        ),
    ],
)  # fmt: skip
def test_a_problem_is_one_sentence_with_its_place(parts: dict[str, object], problem: str) -> None:
    assert settings_problems(**parts) == (problem,)


@pytest.mark.parametrize(
    ("given", "location"),
    [
        ("/var/lib/history/", "/var/lib/history"),
        ("s3://bucket/lag/history/", "s3://bucket/lag/history"),
        ("s3a://bucket/lag", "s3://bucket/lag"),
        ("gs://my_bucket.example", "gs://my_bucket.example"),
        ("abfss://lag@acme.dfs.core.windows.net/history/", "abfss://lag@acme.dfs.core.windows.net/history"),
    ],
)
def test_a_history_is_kept_in_a_folder_or_a_bucket(given: str, location: str) -> None:
    history = samples.settings(history={"location": given, "flushInterval": "1m", "retention": "7d"}).history

    assert (history.location, history.flush_interval, history.retention) == (location, 60.0, 7 * 86_400.0)


def test_a_file_is_no_place_for_a_history(tmp_path: Path) -> None:
    (tmp_path / "file").touch()

    assert settings_problems(history={"location": f"{tmp_path}/file"}) == (
        f"history.location: '{tmp_path}/file' is a file, not a folder",
    )


def test_no_history_is_kept_unless_a_location_is_given() -> None:
    history = samples.settings(history={}).history

    assert (history.location, history.flush_interval, history.retention) == (None, 300.0, 30 * 86_400.0)


def metric(name: str, **more: object) -> dict[str, object]:
    return {"name": name, "value": "lag", "group": "billing", **more}


@pytest.mark.parametrize(
    ("metrics", "problem"),
    [
        (
            [metric("backlog", value="lagg")],
            f"metrics[0].value: is 'lagg'; must be one of {VALUES}; did you mean 'lag'?",
        ),
        (
            [metric("backlog"), metric("Backlog")],
            "metrics[1].name: 'backlog' is also the name of metrics[0]",
        ),
        (
            [metric("Kafka_ConsumerGroup_Lag")],
            "metrics[0].name: 'Kafka_ConsumerGroup_Lag' is the name of a built-in metric",
        ),
        ([metric("records-lag-max")], "metrics[0].name: 'records-lag-max' is the name of a built-in metric"),
        ([metric("backlog", cluster="eu")], "metrics[0].cluster: 'eu' is not one of the clusters main"),
        ([metric("status")], "metrics[0].name: 'status' is reserved for Kubernetes' own paths below a namespace"),
    ],
)
def test_names_of_metrics_are_unique_in_any_case_and_clusters_exist(
    metrics: list[dict[str, object]], problem: str
) -> None:
    assert settings_problems(metrics=metrics) == (problem,)


@pytest.mark.parametrize("name", ["-backlog", "back log", "back/log", "backlog-", "ümlaut", "x" * 300])
def test_a_name_that_cannot_be_asked_for_is_refused(name: str) -> None:
    (problem,) = settings_problems(metrics=[metric(name)])

    assert problem.startswith("metrics[0].name: ")


@pytest.mark.parametrize("name", ["", "my cluster", "eu/west", "-eu", "x" * 64, "eu\n"])
def test_a_cluster_that_no_selector_can_name_is_refused(name: str) -> None:
    (problem,) = settings_problems(clusters=[{**samples.cluster("main"), "name": name}])

    assert problem.startswith(f"clusters[0].name: {name!r} must be a valid label value")


def test_with_several_clusters_a_named_metric_must_say_which() -> None:
    clusters = [samples.cluster("main"), samples.cluster("eu")]

    assert settings_problems(clusters=clusters, metrics=[metric("backlog")]) == (
        "metrics[0].cluster: is missing; there are several clusters",
    )
    assert samples.settings(clusters=clusters, metrics=[metric("backlog", cluster="eu")]).metrics[0].cluster == "eu"


@pytest.mark.parametrize("server", ["kafka", "kafka:0", "kafka:70000", "user@kafka:9092", "kafka:9092/x", "::1:9092"])
def test_a_server_that_is_not_host_and_port_is_refused(server: str) -> None:
    found = settings_problems(clusters=[{"name": "main", "bootstrapServers": [server]}])

    assert found == (f"clusters[0].bootstrapServers[0]: {server!r} is not HOST:PORT",)


def test_settings_are_frozen() -> None:
    with pytest.raises(ValueError, match="frozen"):
        samples.settings().rules = ()


def test_an_upstream_needs_no_file_where_files_are_not_opened() -> None:
    clusters = [{"name": "main", "bootstrapServers": ["kafka:9092"]}]
    found = parse({"clusters": clusters, "upstream": UPSTREAM}, SERVED, opens_files=False).upstream

    assert found is not None
    assert (found.host, found.port) == ("keda.keda.svc", 443)
