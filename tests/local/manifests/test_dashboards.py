"""The JSON of the shipped dashboards; that Prometheus has data for their queries is shown end to end."""

from local.demo.dashboard_pictures import DASHBOARDS, dashboard_of
from local.manifests.check import MANIFESTS


def test_every_shipped_dashboard_has_a_picture() -> None:
    shipped = {file.stem for file in (MANIFESTS / "dashboards").glob("config-map-dashboard-*.yaml")}
    pictures = {file.stem for file in (MANIFESTS.parent / "docs").glob("dashboard-*.png")}

    assert shipped == {f"config-map-dashboard-{name}" for name in DASHBOARDS}
    assert pictures == {f"dashboard-{name}" for name in DASHBOARDS}


def test_every_number_has_thresholds_of_its_own() -> None:
    """Without them, Grafana shows each number from 80 on in red, such as the seconds until a certificate ends."""
    panels = [panel for name in DASHBOARDS for panel in dashboard_of(name)["panels"]]
    without = [each["title"] for each in panels if "thresholds" not in each["fieldConfig"]["defaults"]]

    assert without == [each["title"] for each in panels if each["type"] == "timeseries"]
