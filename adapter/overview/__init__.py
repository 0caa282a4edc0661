"""All groups at once, as people and dashboards look at them: columns, and series for Prometheus."""
