"""The JSON of the shipped dashboards; that Prometheus has data for their queries is shown end to end."""

from local.manifests.check import MANIFESTS
from local.manifests.dashboards import dashboards

SHIPPED = dashboards(".*")


def test_every_shipped_dashboard_has_a_picture() -> None:
    pictures = {file.stem for file in (MANIFESTS.parent / "docs").glob("dashboard-*.png")}

    assert set(SHIPPED) == {"overview", "group", "adapter"}
    assert pictures == {f"dashboard-{name}" for name in SHIPPED}


def test_every_number_has_thresholds_of_its_own() -> None:
    """Without them, Grafana shows each number from 80 on in red, such as the seconds until a certificate ends."""
    panels = [panel for dashboard in SHIPPED.values() for panel in dashboard["panels"]]
    without = [each["title"] for each in panels if "thresholds" not in each["fieldConfig"]["defaults"]]

    assert without == [each["title"] for each in panels if each["type"] == "timeseries"]
