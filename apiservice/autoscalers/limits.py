"""Which HPAs would have more replicas if they were allowed to, as a metric of the adapter."""

from collections.abc import Callable, Iterable, Iterator

from prometheus_client.metrics_core import GaugeMetricFamily

from apiservice.autoscalers.autoscaler import Autoscaler

LIMITED, TOO_MANY = "ScalingLimited", "TooManyReplicas"
"""Type and reason of the condition with which the HPA controller says so."""


class LimitedHpas:
    """A collector of prometheus_client."""

    def __init__(self, hpas: Callable[[], Iterable[Autoscaler]]) -> None:
        self._hpas = hpas

    def collect(self) -> Iterator[GaugeMetricFamily]:
        text = "1 if an HPA on our metrics is at its maxReplicas and wants more, 0 if it is not."
        family = GaugeMetricFamily("kafka_lag_adapter_hpa_at_maximum", text, labels=("hpa_namespace", "hpa"))
        for hpa in self._hpas():
            family.add_metric(hpa.place, float(_wants_more(hpa)))
        yield family


def _wants_more(hpa: Autoscaler) -> bool:
    return any(each.type == LIMITED and each.status == "True" and each.reason == TOO_MANY for each in hpa.conditions)
