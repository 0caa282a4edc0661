"""Every alert fires when it should, and only then: Prometheus's own promtool evaluates the shipped rules."""

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
import yaml

from local.manifests.check import MANIFESTS, read
from local.prometheus import problems_of_rules

pytestmark = pytest.mark.e2e  # the package of Prometheus is downloaded

RULES = read(MANIFESTS / "monitoring/prometheus-rule.yaml")["spec"]
Series = dict[str, str]
"""A series, and its values a minute apart, in promtool's notation."""
MINUTES = 40
STEADY = f"x{MINUTES}"


@dataclass(frozen=True)
class Case:
    fires: Series
    quiet: Series


def group(**values: str) -> Series:
    """Of one group that two replicas of the adapter show."""
    labels = 'namespace="lag", cluster="main", group="billing"'
    return {
        f'kafka_consumergroup_{name}{{{labels}, pod="{pod}"}}': value for pod in "ab" for name, value in values.items()
    }


def of_topics(**topics: dict[str, str]) -> Series:
    return {
        name.replace("{", f'{{topic="{topic}", '): value
        for topic, values in topics.items()
        for name, value in group(**values).items()
    }


def own(name: str, value: str, **labels: str) -> Series:
    """Of the adapter's own metrics."""
    text = ", ".join(f'{key}="{each}"' for key, each in {"namespace": "lag", **labels}.items())
    return {f"kafka_lag_adapter_{name}{{{text}}}": value}


def condition(name: str, status: str) -> Series:
    return own("condition", f"1{STEADY}", condition=name, status=status)


EXTERNAL = "v1beta1.external.metrics.k8s.io"
CASES = {
    "KafkaLagAdapterAbsent": Case({}, own("age_seconds", f"3{STEADY}", cluster="main")),
    "KafkaLagAdapterValuesOld": Case(
        own("age_seconds", f"50{STEADY}", cluster="main"), own("age_seconds", f"40{STEADY}", cluster="main")
    ),
    "KafkaLagAdapterCyclesFail": Case(
        own("cycles_total", f"0+1{STEADY}", cluster="main", outcome="failed"),
        own("cycles_total", f"0+1{STEADY}", cluster="main", outcome="partial"),
    ),
    "KafkaLagAdapterCredentialsNotUsed": Case(condition("credentials", "false"), condition("credentials", "true")),
    "KafkaLagAdapterReadsFail": Case(
        own("reads_total", f"0+4{STEADY}", code="503", metric="x"),
        own("reads_total", f"0+4{STEADY}", code="404", metric="x"),
    ),
    "KafkaLagAdapterFallbackUsed": Case(condition("fallbacks", "false"), condition("fallbacks", "true")),
    "KafkaLagAdapterUpstreamUnavailable": Case(condition("upstream", "false"), condition("upstream", "unknown")),
    "KafkaLagAdapterSettingsNotInForce": Case(condition("settings", "false"), condition("settings", "true")),
    "KafkaLagAdapterCertificateExpires": Case(
        own("certificate_expiration_timestamp_seconds", f"{13 * 86400}x80", certificate="serving"),
        own("certificate_expiration_timestamp_seconds", f"{15 * 86400}x80", certificate="serving"),
    ),
    "KafkaLagAdapterCollectionStale": Case(
        own("last_success_timestamp_seconds", f"0{STEADY}", cluster="main"),
        own("last_success_timestamp_seconds", f"0+60{STEADY}", cluster="main"),
    ),
    "KafkaLagAdapterApiServiceUnavailable": Case(
        own("api_service", f"1{STEADY}", api_service=EXTERNAL, state="ours")
        | own("api_service", f"0{STEADY}", api_service=EXTERNAL, state="available"),
        # Somebody else's, which is another alert.
        own("api_service", f"0{STEADY}", api_service=EXTERNAL, state="ours")
        | own("api_service", f"0{STEADY}", api_service=EXTERNAL, state="available"),
    ),
    "KafkaLagAdapterApiServiceLost": Case(
        own("api_service", "1x10 0x30", api_service=EXTERNAL, state="ours"),
        own("api_service", f"0{STEADY}", api_service=EXTERNAL, state="ours"),
    ),
    "KafkaLagAdapterConflict": Case(
        own("hpa_events_total", "0x30 1x10", reason="ScaleToZeroConflict"),
        own("hpa_events_total", "0x30 1x10", reason="ScaledToZero"),
    ),
    "KafkaLagAdapterHpaAtMaximum": Case(
        own("hpa_at_maximum", f"1{STEADY}", hpa_namespace="shop", hpa="billing"),
        own("hpa_at_maximum", f"0{STEADY}", hpa_namespace="shop", hpa="billing"),
    ),
    "KafkaLagAdapterGroupUnknown": Case(group(known=f"0{STEADY}"), group(known="0x5 1x40")),
    "KafkaLagAdapterGroupNotConsumed": Case(
        group(consumption_rate=f"0{STEADY}", production_rate=f"5{STEADY}", lag=f"7{STEADY}"),
        group(consumption_rate=f"1{STEADY}", production_rate=f"5{STEADY}", lag=f"7{STEADY}"),
    ),
    "KafkaLagAdapterGroupWithoutMembers": Case(
        group(members=f"0{STEADY}", lag=f"7{STEADY}"), group(members=f"0{STEADY}", lag=f"0{STEADY}")
    ),
    "KafkaLagAdapterGroupStuck": Case(
        group(consumption_rate=f"0{STEADY}", members=f"2{STEADY}", lag=f"7{STEADY}"),
        group(consumption_rate=f"0{STEADY}", members=f"0{STEADY}", lag=f"7{STEADY}"),
    ),
    "KafkaLagAdapterGroupRebalances": Case(
        # Seen again just before the end, as by an adapter that has just started.
        group(rebalancing=f"1{STEADY}"),
        group(rebalancing="1x8 0 1x8 0 _x16 1x8"),
    ),
    "KafkaLagAdapterGroupDataLoss": Case(
        group(seconds_to_data_loss=f"7200{STEADY}"), group(seconds_to_data_loss=f"86400{STEADY}")
    ),
    "KafkaLagAdapterHistoryNotWritten": Case(
        own("history_writer", f"0{STEADY}", pod="a") | own("history_writer", f"0{STEADY}", pod="b"),
        own("history_writer", f"0{STEADY}", pod="a") | own("history_writer", f"1{STEADY}", pod="b"),
    ),
    "KafkaLagAdapterHistoryLost": Case(
        own("history_dropped_rows_total", "0x30 9x10"), own("history_dropped_rows_total", f"9{STEADY}")
    ),
}


def expected(alert: str, series: Series, *, fires: bool) -> dict[str, Any]:
    """A test in promtool's form: how many alerts of that name fire at the end."""
    minutes = 80 if alert == "KafkaLagAdapterCertificateExpires" else MINUTES
    firing = f'count(ALERTS{{alertname="{alert}", alertstate="firing"}}) > bool 0 or vector(0)'
    samples = [{"labels": "{}", "value": float(fires)}]
    return {
        "name": f"{alert} {'fires' if fires else 'is quiet'}",
        "interval": "1m",
        "input_series": [{"series": name, "values": values} for name, values in series.items()],
        "promql_expr_test": [{"expr": firing, "eval_time": f"{minutes}m", "exp_samples": samples}],
    }


ONE_TOPIC_UNKNOWN = group(members=f"2{STEADY}") | of_topics(
    orders={"consumption_rate": f"0{STEADY}", "production_rate": f"5{STEADY}", "lag": f"7{STEADY}"},
    returns={"production_rate": f"5{STEADY}", "lag": f"7{STEADY}"},
)
"""A group consumes nothing of one topic, and nobody knows how much of the other one."""


def test_each_alert_fires_when_it_should_and_not_otherwise(tmp_path: Path) -> None:
    tests = [
        expected(alert, series, fires=fires)
        for alert, case in CASES.items()
        for fires, series in ((True, case.fires), (False, case.quiet))
    ]
    consuming = ("KafkaLagAdapterGroupNotConsumed", "KafkaLagAdapterGroupStuck")
    tests += [expected(alert, ONE_TOPIC_UNKNOWN, fires=False) for alert in consuming]
    (tmp_path / "rules.yaml").write_text(yaml.safe_dump(RULES))
    file = tmp_path / "tests.yaml"
    file.write_text(yaml.safe_dump({"rule_files": ["rules.yaml"], "evaluation_interval": "1m", "tests": tests}))

    assert problems_of_rules(file) == ""


def test_every_alert_has_its_case_and_says_what_to_do() -> None:
    rules = RULES["groups"][0]["rules"]

    assert [*CASES] == [rule["alert"] for rule in rules]
    summaries = {rule["alert"]: rule["annotations"]["summary"] for rule in rules}
    assert [alert for alert, summary in summaries.items() if ". " not in summary and ": " not in summary] == []
